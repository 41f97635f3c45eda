# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scenario file: a JSON object with a list of drives, each on a TCP port of its own.

    {"name": …, "seed": 1, "faults": [rule, …], "subsystems": [{
        "nqn": …, "model": …, "serial": …, "firmware": …, "vid": "0x144d", "version": "1.4",
        "apsta": 1, "vwc": 1, "npss": 4,              npss may disagree with the number of power states
        "power_states": [ … as in a drive file … ],
        "real_latency_factor": 0.78, "wake_jitter": 0.01, "idle_scale": 1.0,
        "timing": {"read_us": 80, "write_us": 20, "flush_us": 500, "admin_us": 0},
        "namespaces": [{"nsid": 1, "size_mib": 8}],
        "port": 4420, "cntlid": 1, "late": false}]}   late: the rig does not connect it by itself

`scenario-from-drives` writes such files.
"""
from .namespace import Namespace
from .power import PowerState
from .protocol import FEATURE_WRITE_CACHE


def version_register(version):
    major, minor, *rest = [int(x) for x in str(version).split(".")]
    return major << 16 | minor << 8 | (rest[0] if rest else 0)


class Drive:
    """One subsystem with one controller at a time, reached over one port."""

    def __init__(self, facts, port_base):
        self.nqn = facts["nqn"]
        self.model, self.firmware = facts.get("model", "softnvme"), facts.get("firmware", "1.0")
        self.serial = facts.get("serial", "SOFT0001")
        self.vendor_id = int(str(facts.get("vid", "0x0000")), 0)
        self.version = version_register(facts.get("version", "1.4"))
        factor = facts.get("real_latency_factor", 0.78)
        self.states = [PowerState(p, factor) for p in facts.get("power_states", [{"max_power_w": 8.0}])]
        self.npss = facts.get("npss", len(self.states) - 1)
        self.apsta, self.vwc = facts.get("apsta", 0), facts.get("vwc", 0)
        self.idle_scale, self.wake_jitter = facts.get("idle_scale", 1.0), facts.get("wake_jitter", 0.01)
        timing = facts.get("timing", {})
        self.read_us, self.write_us, self.flush_us, self.admin_us = \
            (timing.get(k, 0) for k in ("read_us", "write_us", "flush_us", "admin_us"))
        self.namespaces = {n.nsid: n for n in (Namespace(f, self.nqn) for f in facts.get("namespaces", [{}]))}
        self.saved = {}                     # features with the Save bit: they survive a controller reset
        self.defaults = {FEATURE_WRITE_CACHE: int(facts.get("wce", self.vwc & 1))}
        self.port, self.cntlid = facts["port"] + port_base, facts.get("cntlid", 1)
        self.refuse = None                  # new connections: "tcp" closes them, "dnr" rejects Connect for good
        self.controller = None              # the newest one

    def activate(self, firmware, like, apsta):
        """New firmware: what is None stays as it is."""
        if firmware is not None:
            self.firmware = firmware
        if like:
            self.states, self.npss, self.apsta = like.states, like.npss, like.apsta
        if apsta is not None:
            self.apsta = apsta

    def is_called(self, name):
        """True for the whole NQN or its last part."""
        return name in (self.nqn, self.nqn.rpartition(":")[2])
