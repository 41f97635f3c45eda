# SPDX-License-Identifier: LGPL-2.1-or-later
"""A run of the test machine: QEMU, its monitor, and the second serial line that carries the script's output.

Lines of the form `@@vm WORD …@@` on that line are for the host: `start`, `exit CODE`, and `hmp NUMBER COMMAND`, which asks for
a command of the QEMU monitor; its answer appears in the shared directory as hmp.NUMBER.
"""
import os
import re
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from . import CACHE, RigError, image
from .kernels import Kernel
from .target import Target, stop

TIME_LIMIT, GUEST_DIED = 124, 125
# Before QEMU 9.1 a receive queue that runs short of buffers may wait for ever for a notification that the guest has no reason to
# send; it needs merged buffers and notification by index.
NETWORK_CARD = "virtio-net-pci,netdev=net,romfile=,mrg_rxbuf=off,event_idx=off"
COMMAND_LINE = "console=ttyS0 quiet panic=-1 net.ifnames=0 random.trust_cpu=on mitigations=off rdinit=/init"


def monitor(path, command):
    """One command of QEMU's human monitor and its answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(path)
        greeting = b""
        while b"(qemu) " not in greeting:
            greeting += sock.recv(4096)
        sock.sendall(command.encode() + b"\n")
        answer = b""
        while not answer.rstrip().endswith(b"(qemu)"):
            chunk = sock.recv(4096)
            if not chunk:
                break
            answer += chunk
    text = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", answer).decode(errors="replace").replace("\r", "")
    return "\n".join(line for line in text.split("\n")[1:] if not line.startswith("(qemu)"))


class Machine:
    """Options of a run; `run(script)` does it."""

    def __init__(self, kernel, out, *, scenario=None, replacements=(), add=(), append="", qemu="", environment=None,
                 arguments=(), udev=False, systemd=False, time_limit=180.0, memory_mib=1024, processors=1, echo=True):
        self.kernel, self.out = Kernel(kernel), os.path.abspath(out)
        self.scenario, self.replacements, self.add = scenario, list(replacements), list(add)
        self.append, self.qemu, self.time_limit, self.echo = append, shlex.split(qemu), time_limit, echo
        self.environment = {**(environment or {}), "VM_UDEV": str(int(udev)), "VM_SYSTEMD": str(int(systemd)),
                            "VM_KERNEL": kernel, "VM_RELEASE": self.kernel.release}
        self.root_image = os.path.join(CACHE, "root.ext4") if systemd else None
        if systemd and not os.path.exists(self.root_image):
            raise RigError(f"no {self.root_image}: run scripts/setup test (or tests/vm/make-root-image)")
        self.arguments, self.memory_mib, self.processors = arguments, memory_mib, processors
        self.lines, self.seconds_to_start = [], None

    def run(self, script):
        """The script's exit code, TIME_LIMIT or GUEST_DIED."""
        os.makedirs(self.out + "/share", exist_ok=True)
        target = qemu = None
        try:
            if self.scenario:
                target = Target(self.scenario, self.out)
                self.environment.update(target.environment)
            self.write_initramfs(script)
            with open(self.out + "/qemu.err", "w", encoding="utf-8") as errors:
                qemu = subprocess.Popen(self.qemu_command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
            code = self.follow(qemu)
            if target and target.process.poll() is None:
                target.save(self.out)
        finally:
            stop(qemu)
            if target:
                target.stop()
            if os.path.exists(self.out + "/initramfs"):
                os.unlink(self.out + "/initramfs")
            with open(self.out + "/output.txt", "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in self.lines))
        return code

    def write_initramfs(self, script):
        base = image.base_image(self.kernel, self.replacements, bool(self.root_image))
        with tempfile.TemporaryDirectory(dir=self.out) as root:
            os.mkdir(root + "/rig")
            shutil.copy(script, root + "/rig/script")
            os.chmod(root + "/rig/script", 0o755)
            with open(root + "/rig/env", "w", encoding="utf-8") as file:
                for name, value in self.environment.items():
                    file.write(f"export {name}={shlex.quote(value)}\n")
                file.write("set -- " + shlex.join(self.arguments) + "\n")
            # A root image has libraries of its own, which win.
            added = image.Tree(root + "/overlay", root + "/overlay-libraries") if self.root_image else image.Tree(root)
            for what in self.add:
                added.add(what)
            image.Tree(root).pack(self.out + "/overlay")
        image.join([base, self.out + "/overlay"], self.out + "/initramfs")
        os.unlink(self.out + "/overlay")

    def qemu_command(self):
        command_line, root = COMMAND_LINE, []
        if self.root_image:
            command_line += " systemd.show_status=0"
            root = ["-drive", f"file={self.root_image},if=none,id=root,format=raw,snapshot=on",
                    "-device", "virtio-blk-pci,drive=root"]
        return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(self.memory_mib),
                "-smp", str(self.processors), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", self.kernel.image, "-initrd", self.out + "/initramfs", "-append", f"{command_line} {self.append}",
                "-chardev", f"file,id=console,path={self.out}/console.log", "-serial", "chardev:console",
                "-serial", "stdio", "-monitor", f"unix:{self.out}/monitor.sock,server,nowait",
                "-netdev", "user,id=net", "-device", NETWORK_CARD, "-device", "virtio-rng-pci",
                "-fsdev", f"local,id=share,path={self.out}/share,security_model=none",
                "-device", "virtio-9p-pci,fsdev=share,mount_tag=share", *root, *self.qemu]

    def follow(self, qemu):
        """Reads the script's output until it ends."""
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            os.set_blocking(qemu.stdout.fileno(), False)
            selector.register(qemu.stdout, selectors.EVENT_READ)
            rest = b""
            while True:
                left = started + self.time_limit - time.monotonic()
                if left <= 0:
                    return TIME_LIMIT
                if not selector.select(min(left, 1)):
                    if qemu.poll() is not None:
                        return GUEST_DIED
                    continue
                chunk = os.read(qemu.stdout.fileno(), 65536)
                if not chunk:
                    return GUEST_DIED
                *complete, rest = (rest + chunk).split(b"\n")
                for line in complete:
                    line = line.decode(errors="replace").rstrip("\r")
                    request = re.match(r"@@vm (\w+) ?(.*)@@$", line)
                    if not request:
                        self.lines.append(line)
                        if self.echo:
                            print(line, flush=True)
                    elif request[1] == "start":
                        self.seconds_to_start = time.monotonic() - started
                    elif request[1] == "exit":
                        return int(request[2])
                    elif request[1] == "hmp":
                        self.answer_monitor_request(*request[2].split(" ", 1))

    def answer_monitor_request(self, number, command):
        answer = self.out + "/share/hmp." + number
        with open(answer + ".part", "w", encoding="utf-8") as file:
            file.write(monitor(self.out + "/monitor.sock", command))
        os.rename(answer + ".part", answer)

    def tail(self, name, lines=40):
        """The end of console.log, qemu.err, softnvme.log or share/dmesg.txt."""
        path = os.path.join(self.out, name)
        if not os.path.exists(path):
            return ""
        with open(path, errors="replace", encoding="utf-8") as file:
            kept = [line for line in file if "qemu-system-x86_64: terminating on signal 15" not in line]
        return "".join(kept[-lines:]).strip()

    def network_died(self):
        """Whether the guest could no longer reach the host, which answers every connection: no program in the guest can cause that."""
        return "failed to connect socket: -110" in self.tail("console.log", 3)


def print_failure(machine, code):
    """What helps to understand a run that did not end well."""
    reason = {TIME_LIMIT: f"time limit of {machine.time_limit:.0f} s reached", GUEST_DIED: "the guest died"}.get(code)
    if reason:
        print("vm: " + reason, file=sys.stderr)
    kernel_log = "console.log" if reason else "share/dmesg.txt"
    for name in (kernel_log, "qemu.err", "softnvme.log"):
        if machine.tail(name):
            print(f"---- end of {name}\n{machine.tail(name)}", file=sys.stderr)
