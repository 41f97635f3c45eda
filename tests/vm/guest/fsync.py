# SPDX-License-Identifier: LGPL-2.1-or-later
"""What fsync costs, and whether it kept its promise.

    fsync.py rate FILE SECONDS [RECORD]   writes 4 KiB and calls fsync, again and again; prints the rate in JSON. FILE is a device
                                          or a file. RECORD gets what was fsynced; it is complete even if the run is killed.
    fsync.py lost FILE RECORD             reads it all again, past the page cache, and prints what is not there
"""
import json
import mmap
import os
import struct
import sys
import time

BLOCK, BLOCKS = 4096, 256
HEAD = struct.Struct("<8sQQ")


def content(run, number):
    return HEAD.pack(b"fsynced!", run, number) * (BLOCK // HEAD.size) + bytes(BLOCK % HEAD.size)


def rate(path, seconds, record_path=os.devnull):
    file = os.open(path, os.O_RDWR if path.startswith("/dev/") else os.O_RDWR | os.O_CREAT)
    run, count, took = time.monotonic_ns(), 0, []
    with open(record_path, "w", encoding="utf-8") as record:
        began = now = time.monotonic()
        while now < began + seconds:
            os.pwrite(file, content(run, count), count % BLOCKS * BLOCK)
            try:
                os.fsync(file)
            except OSError as error:
                print(json.dumps({"error": str(error), "fsyncs": count}))
                return
            ended = time.monotonic()
            took.append(ended - now)
            now = ended
            # Earlier versions of a block do not matter, and a later one that is not fsynced may be there in part.
            record.write(f"{run} {count}\n")
            record.flush()
            count += 1
    took.sort()
    print(json.dumps({"fsyncs": count, "seconds": round(now - began, 3), "per_second": round(count / (now - began), 1),
                      "median_us": round(took[count // 2] * 1e6) if took else None}))


def lost(path, record_path):
    """A block holds the last version that was fsynced, or the next one, which was under way."""
    newest = {}
    with open(record_path, encoding="utf-8") as record:
        for line in record:
            run, number = map(int, line.split())
            newest[number % BLOCKS] = run, number
    last = max((number for _, number in newest.values()), default=-1)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    block, missing = mmap.mmap(-1, BLOCK), []
    for position, (run, number) in sorted(newest.items()):
        os.preadv(file, [block], position * BLOCK)
        if block[:] != content(run, number) and not (number + BLOCKS == last + 1 and block[:] == content(run, last + 1)):
            missing.append(number)
    print(json.dumps({"fsynced": len(newest), "lost": len(missing), "numbers": missing[:8]}))


{"rate": lambda path, seconds, *record: rate(path, float(seconds), *record), "lost": lost}[sys.argv[1]](*sys.argv[2:])
