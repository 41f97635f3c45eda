# SPDX-License-Identifier: LGPL-2.1-or-later
"""One controller: its features, its sleep, and what it answers to admin and I/O commands.

A controller lives from Connect on the admin queue until the next such Connect; its counters and its wake log are the
drive's history and pass on. `server` is the event loop: it runs what is due later (`at`) and keeps the log (`note`).
"""
import collections
import struct
import time

from .identify import identify, log_page
from .power import Sleep, entries_of
from .protocol import (ABORT, ADMIN_COMMANDS, COMPARE, DATASET_MANAGEMENT, DNR, EVENT_REQUEST, FEATURE_APST,
                       FEATURE_EVENTS, FEATURE_KEEP_ALIVE, FEATURE_POWER, FEATURE_QUEUES, FEATURE_WRITE_CACHE, FLUSH,
                       GET_FEATURES, GET_LOG, IDENTIFY, INVALID_FIELD, INVALID_NAMESPACE, INVALID_OPCODE, IO_COMMANDS,
                       KEEP_ALIVE, LBA_RANGE, OK, READ, SET_FEATURES, TOO_MANY_EVENT_REQUESTS, WRITE, WRITE_ZEROES)

MAX_IO_QUEUES = 8
HOST_TO_CONTROLLER_DATA = (0x03, FEATURE_APST, 0x0e)    # features whose Set Features carries a buffer


class Controller:
    def __init__(self, server, drive, cntlid, host_nqn, keep_alive_ms):
        self.server, self.drive, self.cntlid, self.host_nqn, self.keep_alive_ms = \
            server, drive, cntlid, host_nqn, keep_alive_ms
        self.cc = self.csts = 0
        self.queues = {}
        self.event_requests = []
        self.counts = collections.Counter()
        self.sleep = Sleep(drive.states, server.rng, drive.idle_scale, drive.wake_jitter)
        if drive.controller:
            self.counts = drive.controller.counts
            self.sleep.inherit_history(drive.controller.sleep)
        self.reset_features()

    def reset_features(self):
        """What CC.EN 0 -> 1 does."""
        self.features = {0x01: 0, 0x04: 0, 0x05: 0, 0x08: 0, 0x0a: 0, FEATURE_EVENTS: 0,
                         FEATURE_KEEP_ALIVE: self.keep_alive_ms, **self.drive.defaults, **self.drive.saved}
        self.sleep.reset()

    def as_json(self):
        return {"cntlid": self.cntlid, "host_nqn": self.host_nqn, "queues": sorted(self.queues),
                "features": {"%02x" % k: v for k, v in self.features.items()},
                "power": self.sleep.as_json(), "counts": dict(self.counts)}

    # --- admin commands ------------------------------------------------------------------------------------------------

    def admin(self, queue, sqe, cid, data):
        """Fetches the data that the command needs, takes a fault, and answers now or later."""
        opcode, (cdw10,) = sqe[0], struct.unpack_from("<I", sqe, 40)
        name = ADMIN_COMMANDS.get(opcode, "admin_%02x" % opcode)
        details = {}
        if opcode in (SET_FEATURES, GET_FEATURES):
            details["fid"] = cdw10 & 0xff
        if opcode == IDENTIFY:
            details["cns"] = cdw10 & 0xff
        if opcode == SET_FEATURES and not data and details["fid"] in HOST_TO_CONTROLLER_DATA:
            length = struct.unpack_from("<I", sqe, 32)[0]
            if length:
                return queue.fetch(cid, length, lambda got: self.admin(queue, sqe, cid, got))

        fault = self.server.faults.take(self.drive, name, **details)
        if fault and fault.get("drop"):
            return self.server.drop(self.drive, "fault")

        def execute():
            return queue.dead or self.admin_now(queue, sqe, cid, data, fault, details)

        delay = self.drive.admin_us / 1e6
        if fault and "hang_s" in fault:
            self.note(ev="hang", op=name, seconds=fault["hang_s"], **details)
            return self.server.hang(delay + fault["hang_s"], execute)
        if delay:
            return self.server.at(time.monotonic() + delay, execute)
        return execute()

    def admin_now(self, queue, sqe, cid, data, fault, details):
        opcode, (nsid,) = sqe[0], struct.unpack_from("<I", sqe, 4)
        cdw10, cdw11, cdw12, cdw13 = struct.unpack_from("<4I", sqe, 40)
        length = struct.unpack_from("<I", sqe, 32)[0]
        name = ADMIN_COMMANDS.get(opcode, "admin_%02x" % opcode)
        entry = {"op": name, **details}
        status, result, out = OK, 0, None
        self.counts[name] += 1
        if "fid" in details:
            self.counts["%s_%02xh" % (name, details["fid"])] += 1

        if opcode == SET_FEATURES and details["fid"] == FEATURE_APST:
            entry.update(apste=cdw11 & 1, entries=entries_of(data.ljust(256, b"\0")))
        if fault and "status" in fault:
            status, entry["fault"] = fault["status"], fault["id"]
        elif opcode == EVENT_REQUEST:
            if len(self.event_requests) < 4:
                self.event_requests.append((queue, cid))
                return
            status = TOO_MANY_EVENT_REQUESTS
        elif opcode == KEEP_ALIVE:
            pass
        elif opcode == ABORT:
            result = 1
        elif opcode == IDENTIFY:
            status, out = identify(self.drive, self.cntlid, details["cns"], nsid, cdw11 >> 24)
        elif opcode == GET_LOG:
            wanted = ((cdw10 >> 16) | (cdw11 & 0xffff) << 16) * 4 + 4
            entry["log_id"] = cdw10 & 0xff
            status, out = log_page(self.drive, cdw10 & 0xff, cdw12 | cdw13 << 32, wanted)
        elif opcode == SET_FEATURES:
            status, result = self.set_feature(cdw10 & 0xff, bool(cdw10 >> 31), cdw11, data)
        elif opcode == GET_FEATURES:
            status, result, out = self.get_feature(cdw10 & 0xff, (cdw10 >> 8) & 7)
        else:
            status = INVALID_OPCODE | DNR

        if opcode != KEEP_ALIVE:
            self.note(**entry, status=status)
        if out is not None and status == OK:
            queue.send_data(cid, out[:length].ljust(length, b"\0"), last_word=False)
        queue.respond(cid, status, result)

    def note(self, **entry):
        self.server.note(drive=self.drive.nqn.rpartition(":")[2], **entry)

    # --- features ------------------------------------------------------------------------------------------------------

    def set_feature(self, feature, save, value, data):
        """(status, result)"""
        if feature == FEATURE_QUEUES:
            most = MAX_IO_QUEUES - 1
            return OK, min(most, value & 0xffff) | min(most, value >> 16) << 16
        if feature == FEATURE_APST:
            if not self.drive.apsta:
                return INVALID_FIELD | DNR, 0
            self.sleep.program(bool(value & 1), data)
            return OK, 0
        if feature == FEATURE_POWER:
            if (value & 0x1f) >= len(self.sleep.states):
                return INVALID_FIELD | DNR, 0
            self.sleep.select(value & 0x1f)
            return OK, 0
        if feature == FEATURE_WRITE_CACHE and not self.drive.vwc & 1:
            return INVALID_FIELD | DNR, 0
        if feature not in self.features and feature not in (0x10, 0x11, 0x81):
            return INVALID_FIELD | DNR, 0
        self.features[feature] = value
        if save:
            self.drive.saved[feature] = value
        return OK, 0

    def get_feature(self, feature, select):
        """(status, result, bytes); select: 0 current, 1 default, 2 saved, 3 supported capabilities"""
        if feature == FEATURE_APST and self.drive.apsta:
            if select == 3:
                return OK, 4, None
            return OK, int(self.sleep.enabled), self.sleep.table
        if feature == FEATURE_POWER:
            return OK, self.sleep.current(), None
        if feature == FEATURE_QUEUES:
            return OK, (MAX_IO_QUEUES - 1) | (MAX_IO_QUEUES - 1) << 16, None
        if feature == FEATURE_WRITE_CACHE and not self.drive.vwc & 1:
            return INVALID_FIELD | DNR, 0, None
        if feature in self.features:
            default = self.drive.defaults.get(feature, 0)
            return OK, {1: default, 2: self.drive.saved.get(feature, default), 3: 5}.get(select, self.features[feature]), None
        return INVALID_FIELD | DNR, 0, None

    # --- I/O commands --------------------------------------------------------------------------------------------------

    def io(self, queue, sqe, cid, data):
        opcode, (nsid,) = sqe[0], struct.unpack_from("<I", sqe, 4)
        name = IO_COMMANDS.get(opcode, "io_%02x" % opcode)
        namespace = self.drive.namespaces.get(nsid)
        if namespace is None and not (opcode == FLUSH and nsid == 0xffffffff):
            return queue.respond(cid, INVALID_NAMESPACE | DNR)
        first, cdw12 = struct.unpack_from("<QI", sqe, 40)
        count = (cdw12 & 0xffff) + 1
        if opcode in (READ, WRITE, COMPARE, WRITE_ZEROES) and first + count > namespace.blocks:
            return queue.respond(cid, LBA_RANGE | DNR)
        fault = self.server.faults.take(self.drive, name) or {}
        if fault.get("drop"):
            return self.server.drop(self.drive, "fault")
        self.counts[name] += 1
        ready = self.sleep.io_start(time.monotonic(), opcode)
        cost = {READ: self.drive.read_us, WRITE: self.drive.write_us, WRITE_ZEROES: self.drive.write_us,
                FLUSH: self.drive.flush_us}.get(opcode, 0) / 1e6

        def finish(got):
            self.sleep.io_end(time.monotonic())
            if queue.dead:
                return
            if fault.get("status"):
                return queue.respond(cid, fault["status"])
            if opcode == READ:
                return queue.send_data(cid, namespace.read(first, count), last_word=True)
            if opcode == WRITE:
                namespace.write(first, got[:count * namespace.block_bytes])
            elif opcode == WRITE_ZEROES:
                namespace.write(first, bytes(count * namespace.block_bytes))
            elif opcode not in (FLUSH, COMPARE, DATASET_MANAGEMENT):
                return queue.respond(cid, INVALID_OPCODE | DNR)
            queue.respond(cid)

        def execute(got):
            when = max(time.monotonic(), ready) + cost + fault.get("hang_s", 0)
            self.server.at(when, lambda: finish(got))

        length = struct.unpack_from("<I", sqe, 32)[0]
        if opcode in (WRITE, COMPARE, DATASET_MANAGEMENT) and not data and length:
            return queue.fetch(cid, length, execute)
        execute(data)
