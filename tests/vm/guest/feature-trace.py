# SPDX-License-Identifier: LGPL-2.1-or-later
"""feature-trace.py INSTANCE SECONDS [BUFFER_KB]: what the kernel says of features, in JSON, a line a wake-up:
{"woke_ns": …, "lines": […]}, and at the end {"wakeups": N, "empty": N}. Clock: CLOCK_MONOTONIC. BUFFER_KB: reads nothing before
the end, so that a buffer of that size overflows. The instance is removed at the end."""
import json
import os
import select
import sys
import time

TRACING = "/sys/kernel/tracing/instances/"
FILTERS = {"nvme_setup_cmd": "qid == 0 && (opcode == 9 || opcode == 10)", "nvme_complete_rq": "qid == 0"}

instance, seconds, size = TRACING + sys.argv[1], float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None


def write(name, text):
    with open(f"{instance}/{name}", "w", encoding="utf-8") as file:
        file.write(text)


def read(pipe):
    text = b""
    try:
        while chunk := os.read(pipe, 65536):
            text += chunk
    except BlockingIOError:
        pass
    return text.decode().splitlines()


os.mkdir(instance)
write("trace_clock", "mono")
write("buffer_percent", "0")
if size:
    write("buffer_size_kb", size)
for event, condition in FILTERS.items():
    write(f"events/nvme/{event}/filter", condition)
    write(f"events/nvme/{event}/enable", "1")
pipe = os.open(instance + "/trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
poll, wakeups, empty = select.epoll(), 0, 0
poll.register(pipe, select.EPOLLIN)
print(json.dumps({"armed_ns": time.monotonic_ns()}), flush=True)
end = time.monotonic() + seconds
if size:
    time.sleep(seconds)
    for line in read(pipe):
        print(json.dumps({"lines": [line]}))
while not size and (left := end - time.monotonic()) > 0:
    if poll.poll(left):
        woke = time.monotonic_ns()
        lines = read(pipe)
        wakeups, empty = wakeups + 1, empty + (not lines)
        print(json.dumps({"woke_ns": woke, "lines": lines}), flush=True)
os.close(pipe)
os.rmdir(instance)
print(json.dumps({"wakeups": wakeups, "empty": empty}), flush=True)
