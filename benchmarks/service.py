#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the running service costs: time until READY=1, memory, wake-ups when nothing happens.

    benchmarks/service.py BUILD-DIRECTORY [--mappings]

On four simulated drives, so that the numbers are the service's own. --mappings also lists whose memory it is.
"""
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DRIVES = ["crucial-p5-500gb", "kioxia-kbg40-256gb", "samsung-990-evo-plus-4tb", "wd-black-sn750"]
STARTS = 50
SETTLES_S = 2
IDLE_S = 20


class Service:
    """Started as systemd does it, and stopped at the end."""

    def __init__(self, program, drives, directory):
        path = f"{directory}/notify"
        pathlib.Path(path).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(10)
            begun = time.monotonic()
            self.process = subprocess.Popen([program, "--simulate", drives], env={"NOTIFY_SOCKET": path},
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while b"READY=1" not in notify.recv(4096).split(b"\n"):
                pass
            self.ready_ms = (time.monotonic() - begun) * 1000

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}")

    def rollup(self):
        """/proc/PID/smaps_rollup, in kB."""
        return {line.split(":")[0]: int(line.split()[1])
                for line in self.proc("smaps_rollup").read_text().splitlines()[1:]}

    def mappings(self):
        """PSS by file, in kB."""
        pss = {}
        for line in self.proc("smaps").read_text().splitlines():
            words = line.split()
            if "-" in words[0]:
                name = words[5] if len(words) > 5 else "[anonymous]"
            elif words[0] == "Pss:":
                pss[name] = pss.get(name, 0) + int(words[1])
        return sorted(((size, name) for name, size in pss.items() if size), reverse=True)

    def switches(self):
        """How often any of its threads went to sleep, which is once more than it woke up."""
        return sum(int(line.split()[1]) for task in self.proc("task").iterdir()
                   for line in (task / "status").read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--mappings"]):
        sys.exit(__doc__)
    program = f"{sys.argv[1]}/bin/nvmepolicyd"
    source = pathlib.Path(__file__).parent.parent / "tests/drives"
    with tempfile.TemporaryDirectory() as directory:
        drives = f"{directory}/drives"
        os.mkdir(drives)
        for name in DRIVES:
            shutil.copy(source / f"{name}.json", drives)

        ready = []
        for _ in range(STARTS):
            with Service(program, drives, directory) as service:
                ready.append(service.ready_ms)

        with Service(program, drives, directory) as service:
            time.sleep(SETTLES_S)
            memory, mappings = service.rollup(), service.mappings()
            before = service.switches()
            time.sleep(IDLE_S)
            wakeups = service.switches() - before

    rows = [
        (f"READY=1 after exec, median of {STARTS}", f"{statistics.median(ready):.1f} ms"),
        ("  fastest, slowest", f"{min(ready):.1f} ms, {max(ready):.1f} ms"),
        ("PSS", f"{memory['Pss']} kB"),
        ("  of it private (USS)", f"{memory['Private_Clean'] + memory['Private_Dirty']} kB"),
        ("  of it anonymous", f"{memory['Pss_Anon']} kB"),
        (f"wake-ups in {IDLE_S} s without events", f"{wakeups}"),
    ]
    for what, value in rows:
        print(f"{what:<42} {value:>18}")
    if "--mappings" in sys.argv:
        for size, name in mappings:
            print(f"{size:8} kB  {name}")


main()
