#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the running service costs: time until READY=1, memory, wake-ups when nothing happens, and what is asked of it on D-Bus.

    benchmarks/service.py BUILD-DIRECTORY [--mappings]

On four simulated drives, so that the numbers are the service's own, and on a bus of its own; and on 1,000 drives for what grows
with them. --mappings also lists whose memory it is.
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
MANY = 1000
CALLS = 50


class Bus:
    """A dbus-daemon of our own."""

    def __init__(self, directory):
        self.path = f"{directory}/bus"
        self.address = f"unix:path={self.path}"

    def __enter__(self):
        self.process = subprocess.Popen(["dbus-daemon", "--session", f"--address={self.address}", "--nofork", "--nopidfile"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path):
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


class Client:
    """Speaks D-Bus by hand and decodes nothing, so that what is measured is the service and the bus, not a library."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        self.socket.recv(4096)
        self.socket.sendall(b"BEGIN\r\n")
        self.serial = 0
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            data += self.socket.recv(1 << 20 if count - len(data) > 1 << 20 else count - len(data))
        return data

    def call(self, destination, path, interface, member):
        """Returns the size of the reply's body. Without arguments only."""
        def string(text):
            return len(text).to_bytes(4, "little") + text.encode() + b"\0"

        def padded(data):
            return data + b"\0" * (-len(data) % 8)
        self.serial += 1
        fields = b""
        for code, kind, text in ((1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", destination)):
            fields = padded(fields) + bytes([code, 1]) + kind.encode() + b"\0" + string(text)
        self.socket.sendall(padded(b"l\1\0\1" + (0).to_bytes(4, "little") + self.serial.to_bytes(4, "little")
                                   + len(fields).to_bytes(4, "little") + fields))
        while True:
            head = self.exactly(16)
            size, fields = (int.from_bytes(head[at:at + 4], "little") for at in (4, 12))
            self.exactly(fields + -fields % 8)
            self.exactly(size)
            if head[1] == 2:
                return size
            if head[1] == 3:
                raise RuntimeError(f"{member} failed")


def time_calls(client, member):
    took = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        size = client.call("org.nvmepolicy1", "/org/nvmepolicy1", "org.freedesktop.DBus.ObjectManager"
                           if member == "GetManagedObjects" else "org.nvmepolicy1.Manager", member)
        took.append((time.perf_counter() - begun) * 1000)
    return f"{statistics.median(took):.2f} ms", f"{size} bytes"


class Service:
    """Started as systemd does it, and stopped at the end."""

    def __init__(self, program, drives, directory, bus):
        path = f"{directory}/notify"
        pathlib.Path(path).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(10)
            begun = time.monotonic()
            self.process = subprocess.Popen([program, "--bus", bus.address, "--simulate", drives], env={"NOTIFY_SOCKET": path},
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
    with tempfile.TemporaryDirectory() as directory, Bus(directory) as bus:
        drives = f"{directory}/drives"
        os.mkdir(drives)
        for name in DRIVES:
            shutil.copy(source / f"{name}.json", drives)

        ready = []
        for _ in range(STARTS):
            with Service(program, drives, directory, bus) as service:
                ready.append(service.ready_ms)

        with Service(program, drives, directory, bus) as service:
            time.sleep(SETTLES_S)
            memory, mappings = service.rollup(), service.mappings()
            before = service.switches()
            time.sleep(IDLE_S)
            wakeups = service.switches() - before
            few = time_calls(Client(bus.path), "GetManagedObjects")

        many_drives = f"{directory}/many"
        os.mkdir(many_drives)
        for number in range(MANY):
            shutil.copy(source / f"{DRIVES[number % len(DRIVES)]}.json", f"{many_drives}/{number:04}.json")
        with Service(program, many_drives, directory, bus) as service:
            time.sleep(4 * SETTLES_S)
            client = Client(bus.path)
            many, described, many_memory = time_calls(client, "GetManagedObjects"), time_calls(client, "Describe"), service.rollup()

    rows = [
        (f"READY=1 after exec, median of {STARTS}", f"{statistics.median(ready):.1f} ms"),
        ("  fastest, slowest", f"{min(ready):.1f} ms, {max(ready):.1f} ms"),
        ("PSS", f"{memory['Pss']} kB"),
        ("  of it private (USS)", f"{memory['Private_Clean'] + memory['Private_Dirty']} kB"),
        ("  of it anonymous", f"{memory['Pss_Anon']} kB"),
        (f"wake-ups in {IDLE_S} s without events", f"{wakeups}"),
        (f"GetManagedObjects, median of {CALLS}", few[0]),
        ("  its size", few[1]),
        (f"GetManagedObjects with {MANY} drives", many[0]),
        ("  its size", many[1]),
        (f"Describe with {MANY} drives", described[0]),
        ("  its size", described[1]),
        (f"PSS with {MANY} drives", f"{many_memory['Pss']} kB"),
    ]
    for what, value in rows:
        print(f"{what:<42} {value:>18}")
    if "--mappings" in sys.argv:
        for size, name in mappings:
            print(f"{size:8} kB  {name}")


main()
