# SPDX-License-Identifier: LGPL-2.1-or-later
"""nvme-command.py NODE COMMAND …: one NVMe command past every tool, and when it was sent, in JSON.

    set FEATURE VALUE     Set Features; --save with the Save bit, --nsid N, --io-uring not by ioctl
    get FEATURE [SELECT]  Get Features
    flush NSID            Flush, an I/O command

`submitted_ns` and `completed_ns` are CLOCK_MONOTONIC, `status` is the NVMe status (0: success), or `errno` has the error's name.
"""
import argparse
import ctypes
import errno
import fcntl
import json
import mmap
import os
import struct
import time

ADMIN_BY_IOCTL, IO_BY_IOCTL, ADMIN_BY_URING = 0xc0484e41, 0xc0484e43, 0xc0484e82
SET_FEATURES, GET_FEATURES, FLUSH = 0x09, 0x0a, 0x00
SETUP, ENTER = 425, 426                             # io_uring system calls
SQE128_CQE32, GETEVENTS, URING_CMD = 1 << 10 | 1 << 11, 1, 46


def command(opcode, nsid, cdw10=0, cdw11=0):
    """struct nvme_passthru_cmd and struct nvme_uring_cmd, which differ in the last word only."""
    return bytearray(struct.pack("<B3xI32x2I", opcode, nsid, cdw10, cdw11).ljust(72, b"\0"))


def by_ioctl(node, request, data):
    began = time.monotonic_ns()
    try:
        status = fcntl.ioctl(node, request, data)
    except OSError as error:
        return {"submitted_ns": began, "completed_ns": time.monotonic_ns(), "errno": errno.errorcode[error.errno]}
    return {"submitted_ns": began, "completed_ns": time.monotonic_ns(), "status": status,
            "result": struct.unpack_from("<I", data, 68)[0]}


def by_uring(node, data):
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    parameters = ctypes.create_string_buffer(struct.pack("<3I", 0, 0, SQE128_CQE32), 120)
    ring = syscall(SETUP, 1, parameters)
    if ring < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
    entries, cq_entries = struct.unpack_from("<2I", parameters, 0)
    sq_head, sq_tail, sq_mask, _, _, _, array = struct.unpack_from("<7I", parameters, 40)
    cq_head, _, cq_mask, _, _, cqes = struct.unpack_from("<6I", parameters, 80)
    submission = mmap.mmap(ring, array + 4 * entries, offset=0)
    completion = mmap.mmap(ring, cqes + 32 * cq_entries, offset=0x8000000)
    requests = mmap.mmap(ring, 128 * entries, offset=0x10000000)
    requests[0:128] = (struct.pack("<BBHiII24xQ", URING_CMD, 0, 0, node, ADMIN_BY_URING, 0, 7) + bytes(8) + data).ljust(128, b"\0")
    (tail,), (mask,) = struct.unpack_from("<I", submission, sq_tail), struct.unpack_from("<I", submission, sq_mask)
    struct.pack_into("<I", submission, array + 4 * (tail & mask), 0)
    began = time.monotonic_ns()
    struct.pack_into("<I", submission, sq_tail, tail + 1)
    if syscall(ENTER, ring, 1, 1, GETEVENTS, None, 0) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_enter")
    ended = time.monotonic_ns()
    (head,), (mask,) = struct.unpack_from("<I", completion, cq_head), struct.unpack_from("<I", completion, cq_mask)
    user_data, status, _, result, _ = struct.unpack_from("<QiIQQ", completion, cqes + 32 * (head & mask))
    assert user_data == 7, user_data
    times = {"submitted_ns": began, "completed_ns": ended}
    return {**times, "errno": errno.errorcode[-status]} if status < 0 else {**times, "status": status, "result": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("command", choices=("set", "get", "flush"))
    parser.add_argument("numbers", nargs="+", type=lambda text: int(text, 0))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--nsid", type=lambda text: int(text, 0), default=0)
    parser.add_argument("--io-uring", action="store_true")
    options = parser.parse_args()
    node = os.open(options.node, os.O_RDONLY)
    first, second = (options.numbers + [0])[:2]
    if options.command == "flush":
        answer = by_ioctl(node, IO_BY_IOCTL, command(FLUSH, first))
    else:
        data = command(SET_FEATURES, options.nsid, first | options.save << 31, second) if options.command == "set" else \
            command(GET_FEATURES, options.nsid, first | second << 8)
        answer = by_uring(node, data) if options.io_uring else by_ioctl(node, ADMIN_BY_IOCTL, data)
    print(json.dumps(answer))


main()
