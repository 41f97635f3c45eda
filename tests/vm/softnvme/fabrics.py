# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fabrics commands: Connect, which makes a controller, and the properties that stand for its registers."""
import struct

from .controller import Controller
from .protocol import (CONNECT, CONNECT_INVALID, DNR, FABRICS_COMMANDS, INVALID_FIELD, INVALID_OPCODE, PROPERTY_GET,
                       PROPERTY_SET, REGISTER_CAP, REGISTER_CC, REGISTER_CSTS, REGISTER_VS)

CAPABILITIES = 127 | 1 << 16 | 30 << 24 | 1 << 37           # 128 entries, contiguous, 15 s, NVM command set


def command(server, queue, sqe, cid, data):
    kind, drive = sqe[4], queue.drive
    name = FABRICS_COMMANDS.get(kind, "fabrics_%02x" % kind)
    fault = server.faults.take(drive, name) or {}
    if fault.get("drop"):
        return server.close(queue, "fault")
    if "status" in fault:
        return queue.respond(cid, fault["status"])
    if kind == CONNECT:
        return connect(server, queue, sqe, cid, data)
    controller = queue.controller
    if controller is None:
        return server.close(queue, "fabrics command before Connect")
    if kind == PROPERTY_GET:
        offset = struct.unpack_from("<I", sqe, 44)[0]
        value = {REGISTER_CAP: CAPABILITIES, REGISTER_VS: drive.version, REGISTER_CC: controller.cc,
                 REGISTER_CSTS: controller.csts}.get(offset)
        return queue.respond(cid, INVALID_FIELD if value is None else 0, value or 0)
    if kind == PROPERTY_SET:
        offset, value = struct.unpack_from("<IQ", sqe, 44)
        if offset == REGISTER_CC:
            if value & 1 and not controller.cc & 1:
                controller.reset_features()
            controller.cc = value
            controller.csts = (value & 1) | (8 if value & 0xc000 else 0)
        return queue.respond(cid)
    queue.respond(cid, INVALID_OPCODE | DNR)


def connect(server, queue, sqe, cid, data):
    drive = queue.drive
    _, qid, sqsize, _, keep_alive_ms = struct.unpack_from("<HHHBxI", sqe, 40)
    cntlid = struct.unpack_from("<H", data, 16)[0]
    nqn, host_nqn = (data[o:o + 256].split(b"\0")[0].decode() for o in (256, 512))
    if nqn != drive.nqn or drive.refuse == "dnr":
        return queue.respond(cid, CONNECT_INVALID | DNR)
    queue.qid, queue.size = qid, sqsize + 1
    if qid == 0:
        in_use = {q.controller.cntlid for q in server.queues if q.controller and q.qid == 0 and q.drive is drive}
        fresh = drive.cntlid
        while fresh in in_use:
            fresh += 16
        queue.controller = drive.controller = Controller(server, drive, fresh, host_nqn, keep_alive_ms)
    elif drive.controller and drive.controller.cntlid == cntlid:
        queue.controller = drive.controller
    else:
        return queue.respond(cid, CONNECT_INVALID | DNR)
    queue.controller.queues[qid] = queue
    queue.controller.note(op="connect", qid=qid, cntlid=queue.controller.cntlid)
    queue.respond(cid, 0, queue.controller.cntlid)
