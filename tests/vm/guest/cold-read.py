# SPDX-License-Identifier: LGPL-2.1-or-later
"""cold-read.py DEVICE TRIALS IDLE_SECONDS TITLE: reads 4 KiB after each idle period, past the page cache, and prints p50 and p99."""
import mmap
import os
import sys
import time

device, trials, idle, title = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
block = mmap.mmap(-1, 4096)         # page aligned, as O_DIRECT wants it
disk = os.open(device, os.O_RDONLY | os.O_DIRECT)
taken = []
for trial in range(trials):
    time.sleep(idle)
    began = time.monotonic()
    os.preadv(disk, [block], 4096 * trial)
    taken.append((time.monotonic() - began) * 1000)
taken.sort()
print(f"{title:<24} p50 {taken[trials // 2]:6.1f} ms   p99 {taken[-1]:6.1f} ms   ({trials} reads)")
