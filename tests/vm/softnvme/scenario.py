# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scenario file: a JSON object with a list of drives, each on a TCP port of its own.

Two of them with one NQN are two controllers of one subsystem, each with features of its own; the namespaces are those of the
first, and `name` tells them apart.

    {"name": …, "seed": 1, "faults": [rule, …], "subsystems": [{
        "nqn": …, "model": …, "serial": …, "firmware": …, "vid": "0x144d", "version": "1.4",
        "apsta": 1, "vwc": 1, "npss": 4,              npss may disagree with the number of power states
        "power_states": [ … as in a drive file … ],
        "real_latency_factor": 0.78, "wake_jitter": 0.01, "idle_scale": 1.0,
        "timing": {"read_us": 80, "write_us": 20, "flush_us": 500, "admin_us": 0},
        "namespaces": [{"nsid": 1, "size_mib": 8}],
        "port": 4420, "cntlid": 1, "late": false,     late: the rig does not connect it by itself
        "name": "drive-a",                            default: the last part of the NQN
        "oncs": 28, "lpa": 2, "cmic": 0,              of Identify Controller
        "effects": {"9": 1},                          log page 05h: admin opcode to its entry
        "critical_warning": 0,                        log page 02h
        "also_attached": [],                          controllers of other hosts that CNS 12h and 13h list
        "wce": 0,                                     feature 06h by default; saved: nothing
        "wce_now": 1,                                 its current value until the first reset after the first connect
        "saveable": true, "changeable": true, "per_namespace": false,           what Select 3 says of it
        "clear_commits": false}]}                     whether turning the cache off makes durable what it holds
                                                      (no: the next Flush does)

`scenario-from-drives` writes such files.
"""
from .namespace import Namespace
from .power import PowerState
from .protocol import CHANGEABLE, FEATURE_WRITE_CACHE, PER_NAMESPACE, SAVEABLE

# What control may change of a drive while it runs; name: default.
SETTINGS = {"vwc": 0, "oncs": 0x4 | 0x8 | 0x10, "lpa": 2, "cmic": 0, "critical_warning": 0, "also_attached": [], "saveable": True,
            "changeable": True, "per_namespace": False, "clear_commits": False}
TIMES = ("read_us", "write_us", "flush_us", "admin_us")


def version_register(version):
    major, minor, *rest = [int(x) for x in str(version).split(".")]
    return major << 16 | minor << 8 | (rest[0] if rest else 0)


class Drive:
    """One controller at a time, reached over one port; `siblings`: all of its subsystem, which share its namespaces."""

    def __init__(self, facts, port_base, siblings=None):
        self.nqn = facts["nqn"]
        self.name = facts.get("name", self.nqn.rpartition(":")[2])
        self.siblings = [] if siblings is None else siblings
        self.siblings.append(self)
        self.model, self.firmware = facts.get("model", "softnvme"), facts.get("firmware", "1.0")
        self.serial = facts.get("serial", "SOFT0001")
        self.vendor_id = int(str(facts.get("vid", "0x0000")), 0)
        self.version = version_register(facts.get("version", "1.4"))
        factor = facts.get("real_latency_factor", 0.78)
        self.states = [PowerState(p, factor) for p in facts.get("power_states", [{"max_power_w": 8.0}])]
        self.npss = facts.get("npss", len(self.states) - 1)
        self.apsta = facts.get("apsta", 0)
        for name, default in SETTINGS.items():
            setattr(self, name, facts.get(name, default))
        self.effects = {int(opcode): value for opcode, value in facts.get("effects", {}).items()}
        self.idle_scale, self.wake_jitter = facts.get("idle_scale", 1.0), facts.get("wake_jitter", 0.01)
        timing = facts.get("timing", {})
        for name in TIMES:
            setattr(self, name, timing.get(name, 0))
        if self.siblings[0] is self:
            self.namespaces = {n.nsid: n for n in (Namespace(f, self.nqn) for f in facts.get("namespaces", [{}]))}
        else:
            self.namespaces = self.siblings[0].namespaces
        self.saved = {}                     # features with the Save bit: they survive a controller reset
        self.defaults = {FEATURE_WRITE_CACHE: int(facts.get("wce", self.vwc & 1))}
        self.until_reset = {FEATURE_WRITE_CACHE: facts["wce_now"]} if "wce_now" in facts else {}
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

    def set(self, name, value):
        """Changes one of SETTINGS, TIMES, `wce` (the default) or `effects`; False if there is no such thing."""
        if name == "wce":
            self.defaults[FEATURE_WRITE_CACHE] = value
        elif name == "effects":
            self.effects = {int(opcode): entry for opcode, entry in value.items()}
        elif name in SETTINGS or name in TIMES:
            setattr(self, name, value)
        else:
            return False
        return True

    def write_cache_capabilities(self):
        return SAVEABLE * self.saveable | PER_NAMESPACE * self.per_namespace | CHANGEABLE * self.changeable

    def attached_controllers(self):
        """Controller ids of the subsystem, ascending; one that is not connected counts too."""
        own = {d.controller.cntlid if d.controller else d.cntlid for d in self.siblings}
        return sorted(own | set(self.also_attached))

    def is_called(self, name):
        """True for its name, the whole NQN or its last part."""
        return name in (self.name, self.nqn, self.nqn.rpartition(":")[2])


def drives_of(scenario, port_base):
    subsystems = {}
    return [Drive(facts, port_base, subsystems.setdefault(facts["nqn"], [])) for facts in scenario["subsystems"]]
