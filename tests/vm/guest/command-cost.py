# SPDX-License-Identifier: LGPL-2.1-or-later
"""command-cost.py CONTROLLER: what the commands of a look and a write cost by themselves, without a service. Ends at 100000."""
import ctypes
import fcntl
import os
import statistics
import struct
import sys
import time

NVME_IOCTL_ADMIN_CMD = 0xc0484e41
IDENTIFY, GET_FEATURES = 0x06, 0x0a

node = os.open("/dev/" + sys.argv[1], os.O_RDONLY)
tolerance = os.open(f"/sys/class/nvme/{sys.argv[1]}/power/pm_qos_latency_tolerance_us", os.O_WRONLY)


def admin(opcode, cdw10, length):
    """struct nvme_admin_cmd of linux/nvme_ioctl.h"""
    data = ctypes.create_string_buffer(length)
    command = struct.pack("<B3x3IQQ3I", opcode, 0, 0, 0, 0, ctypes.addressof(data), 0, length, cdw10)
    fcntl.ioctl(node, NVME_IOCTL_ADMIN_CMD, bytearray(command.ljust(72, b"\0")))


def median_ms(action):
    took = []
    for turn in range(9):
        began = time.perf_counter()
        action(turn)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


print("bare cost: Identify %.1f ms, Get Features 0Ch %.1f ms, write %.1f ms" % (
    median_ms(lambda turn: admin(IDENTIFY, 1, 4096)), median_ms(lambda turn: admin(GET_FEATURES, 0x0c, 256)),
    median_ms(lambda turn: os.pwrite(tolerance, b"100000" if turn % 2 else b"25000", 0))))
os.pwrite(tolerance, b"100000", 0)
