# SPDX-License-Identifier: LGPL-2.1-or-later
"""kernel_script.py SCRIPT: plays a script on this kernel and prints what can be seen of it from outside.

tests/simulation/kernel_transcript.cpp prints the same of the simulated kernel. One action a line; what comes of it is printed
under it: uevents in their order, then each Set Features 0Ch that a drive got, in theirs. Drives go by slug.

    plug SLUG, unplug SLUG
    reset SLUG                          by reset_controller
    reconnect SLUG                      the drive closes its connections
    pause identify|table|live           the next plug, reset, reconnect or write stops while the drive is asked for Identify, when
    continue                            it has got its table but not accepted it yet, or when it holds it but is not live; what
                                        stands before `continue` happens meanwhile
    write SLUG TEXT                     the tolerance file; \\n, \\t, \\s and \\0 in it are characters
    read SLUG                           the same
    look SLUG                           state, firmware revision, whether there is a tolerance file
                                        these three below a directory that is kept open, also once the drive is unplugged
    get-feature SLUG                    Get Features 0Ch
    open SLUG, close SLUG               keeps the node open; get-feature goes through it then
    firmware SLUG [firmware=REVISION] [like=SLUG] [apsta=0|1]       from the next reset on
    refuse SLUG on|off                  Set Features 0Ch is answered with an error
    lose-table SLUG                     by itself, as firmware may
    parameter NAME VALUE                of nvme_core
"""
import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time

NQN = "nqn.2026-11.org.nvmepolicyd.test:"
CLASS = "/sys/class/nvme/"
TOLERANCE = "power/pm_qos_latency_tolerance_us"
NETLINK_KOBJECT_UEVENT, KERNEL_GROUP = 15, 1
NVME_IOCTL_ADMIN_CMD, GET_FEATURES, APST = 0xc0484e41, 0x0a, 0x0c
REFUSED = 0x4002
# Number of queues, 07h, is what fabrics drivers ask for between the table and live.
PAUSES = {"identify": {"op": "identify", "cns": 1}, "table": {"op": "set_features", "fid": APST},
          "live": {"op": "set_features", "fid": 0x07}}
PATIENCE_S = 30


def softnvme(what):
    method, path, body = ("POST", "", what) if what.startswith("{") else ("GET", what, "")
    with socket.create_connection(("10.0.2.2", int(os.environ["SOFTNVME_HTTP"]))) as sock:
        sock.sendall(f"{method} /{path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def do(what, **arguments):
    answer = softnvme(json.dumps({"do": what, **arguments}))
    if not answer["ok"]:
        sys.exit(f"softnvme: {what}: {answer}")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"waited in vain until {what}")
        time.sleep(0.02)


def show_table(apste, entries):
    return f"apste={int(apste)}" + "".join(f" {state}:{raw:#x}" for state, raw in entries if raw)


class Uevents:
    """Those of subsystem nvme, as they come from the kernel."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_KOBJECT_UEVENT)
        self.socket.bind((0, KERNEL_GROUP))
        self.socket.setblocking(False)
        self.waiting = []

    def receive(self):
        while True:
            try:
                message = self.socket.recv(65536)
            except BlockingIOError:
                return
            keys = dict(line.split("=", 1) for line in message.decode().split("\0") if "=" in line)
            if keys.get("SUBSYSTEM") == "nvme":
                self.waiting.append((keys["ACTION"], keys["DEVPATH"].rpartition("/")[2], keys.get("NVME_EVENT", "")))

    def has(self, name, nvme_event):
        self.receive()
        return any(event[1:] == (name, nvme_event) for event in self.waiting)

    def take(self):
        self.receive()
        taken, self.waiting = self.waiting, []
        return taken


class Drive:
    def __init__(self, slug):
        self.slug, self.name, self.directory, self.node = slug, None, None, None

    def state(self):
        try:
            return text_of(CLASS + self.name + "/state")
        except OSError:
            return "gone"

    def found(self):
        """Whether the kernel has a controller for it, which then is this drive's."""
        for name in os.listdir(CLASS):
            if text_of(CLASS + name + "/address").split("trsvcid=")[1].split(",")[0] == port_of(self.slug):
                self.name = name
                self.directory = os.open(CLASS + name, os.O_RDONLY | os.O_DIRECTORY)
                return True
        return False

    def attribute(self, name, text=None):
        """What it reads, what comes of writing it, or the name of the error."""
        try:
            file = os.open(name, os.O_RDONLY if text is None else os.O_WRONLY, dir_fd=self.directory)
            try:
                if text is None:
                    return os.read(file, 4096).decode().rstrip()
                os.write(file, text.encode())
                return "ok"
            finally:
                os.close(file)
        except OSError as error:
            return errno.errorcode[error.errno]


def port_of(slug):
    for path in os.environ["SOFTNVME_LATE"].split():
        nqn, _, port = path.rpartition(",")
        if nqn == NQN + slug:
            return port
    sys.exit("no drive " + slug)


def connect(slug):
    with open("/etc/nvme/hostnqn", encoding="utf-8") as nqn, open("/etc/nvme/hostid", encoding="utf-8") as host:
        options = (f"transport=tcp,traddr=10.0.2.2,trsvcid={port_of(slug)},nqn={NQN}{slug},hostnqn={nqn.read().strip()},"
                   f"hostid={host.read().strip()},nr_io_queues=1,keep_alive_tmo=30,ctrl_loss_tmo=600,reconnect_delay=1")
    node = os.open("/dev/nvme-fabrics", os.O_RDWR)
    try:
        os.write(node, options.encode())
    finally:
        os.close(node)


class Player:
    def __init__(self, lines):
        self.lines, self.next = lines, 0
        self.drives, self.events = {}, Uevents()
        self.log_read_to, self.pausing, self.refusing = 0.0, None, set()

    # --- what happened -------------------------------------------------------------------------------------------------

    def tell(self):
        names = {d.name: d.slug for d in self.drives.values()}
        for action, name, nvme_event in self.events.take():
            print(f"  uevent {action} {names.get(name, name)} {nvme_event}".rstrip())
        for entry in self.log():
            if "entries" in entry:
                entries = [(e["state"], int(str(e["raw"]), 0)) for e in entry["entries"]]
                print(f"  set-features {entry['drive']} {show_table(entry['apste'], entries)} status={entry['status']:#x}")
            self.log_read_to = max(self.log_read_to, entry["t"])
        sys.stdout.flush()

    def log(self):
        return [entry for entry in softnvme("log?n=500") if entry["t"] > self.log_read_to]

    # --- actions -------------------------------------------------------------------------------------------------------

    def play(self):
        while self.next < len(self.lines):
            line = self.lines[self.next]
            self.next += 1
            if not line or line.startswith("#"):
                continue
            print("> " + line)
            if line == "continue":
                return
            verb, subject, rest = (line.split(" ", 2) + ["", ""])[:3]
            action = getattr(self, "do_" + verb.replace("-", "_"))
            if verb in ("parameter", "pause"):
                action(subject, rest)
            else:
                action(self.drives.setdefault(subject, Drive(subject)), rest)
            self.tell()

    def change(self, drive, work, done=lambda: True):
        """Something that leaves the controller in another state, and may pause on the way."""
        failed = []

        def run():
            try:
                work()
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        pausing, self.pausing = self.pausing, None
        if pausing:
            do("fault", rule={**PAUSES[pausing], "drive": drive.slug, "hang_s": PATIENCE_S * 2, "count": 1})
        thread.start()
        if pausing:
            wait_for(f"{drive.slug} pauses at {pausing}",
                     lambda: any(entry.get("ev") == "hang" and entry["drive"] == drive.slug for entry in self.log()))
            if not drive.name:
                drive.found()
            self.tell()
            self.play()
            do("release")
        thread.join()
        if failed:
            sys.exit(f"{drive.slug}: {failed[0]}")
        wait_for(f"{drive.slug} is through", done)

    def do_plug(self, drive, _):
        drive.name = None
        self.change(drive, lambda: connect(drive.slug), drive.found)
        self.tell()
        print(f"  name {drive.name}\n  state {drive.state()}")

    def do_unplug(self, drive, _):
        write(CLASS + drive.name + "/delete_controller", "1")
        # Its number is free again when its subsystem is; a node that is open keeps both.
        wait_for(f"nothing is left of {drive.slug}", lambda: drive.node is not None or not any(
            text_of(f"/sys/class/nvme-subsystem/{name}/subsysnqn") == NQN + drive.slug
            for name in os.listdir("/sys/class/nvme-subsystem")))
        self.tell()
        print(f"  state {drive.state()}")

    def do_reset(self, drive, _):
        self.change(drive, lambda: write(CLASS + drive.name + "/reset_controller", "1"))
        self.tell()
        print(f"  state {drive.state()}")

    def do_reconnect(self, drive, _):
        self.change(drive, lambda: do("drop", drive=drive.slug), lambda: self.events.has(drive.name, "connected"))
        self.tell()
        print(f"  state {drive.state()}")

    def do_pause(self, where, _):
        self.pausing = where

    def do_write(self, drive, text):
        for letters, character in (("\\n", "\n"), ("\\t", "\t"), ("\\s", " "), ("\\0", "\0")):
            text = text.replace(letters, character)
        answers = []
        self.change(drive, lambda: answers.append(drive.attribute(TOLERANCE, text)))
        print("  write " + answers[0])

    def do_read(self, drive, _):
        print("  value " + drive.attribute(TOLERANCE))

    def do_look(self, drive, _):
        print(f"  state {drive.attribute('state')}\n  firmware {drive.attribute('firmware_rev')}")
        print(f"  tolerance file {'absent' if drive.attribute(TOLERANCE, '') == 'ENOENT' else 'there'}")

    def do_open(self, drive, _):
        drive.node = os.open("/dev/" + drive.name, os.O_RDONLY)

    def do_close(self, drive, _):
        os.close(drive.node)
        drive.node = None

    def do_get_feature(self, drive, _):
        table = ctypes.create_string_buffer(256)
        command = bytearray(72)         # struct nvme_admin_cmd of linux/nvme_ioctl.h
        struct.pack_into("<B3x3IQQ3I", command, 0, GET_FEATURES, 0, 0, 0, 0, ctypes.addressof(table), 0, 256, APST)
        try:
            node = os.open("/dev/" + drive.name, os.O_RDONLY) if drive.node is None else drive.node
            try:
                status = fcntl.ioctl(node, NVME_IOCTL_ADMIN_CMD, command)
            finally:
                if drive.node is None:
                    os.close(node)
        except OSError as error:
            print("  feature " + errno.errorcode[error.errno])
            return
        entries = enumerate(struct.unpack("<32Q", table.raw))
        print("  feature " + (f"status={status:#x}" if status else show_table(command[68] & 1, entries)))

    def do_firmware(self, drive, how):
        changed = dict(word.split("=", 1) for word in how.split())
        if "apsta" in changed:
            changed["apsta"] = int(changed["apsta"])
        do("firmware", drive=drive.slug, **changed)

    def do_refuse(self, drive, on):
        (self.refusing.add if on == "on" else self.refusing.discard)(drive.slug)
        do("clear_faults")
        for slug in sorted(self.refusing):
            do("fault", rule={"op": "set_features", "fid": APST, "drive": slug, "status": REFUSED})

    def do_lose_table(self, drive, _):
        do("set_apst_table", drive=drive.slug, apste=0)

    def do_parameter(self, name, value):
        write("/sys/module/nvme_core/parameters/" + name, value)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


with open(sys.argv[1], encoding="utf-8") as script:
    Player(script.read().split("\n")).play()
