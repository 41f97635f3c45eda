# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bus of our own, the real service on it, and who else a test needs there.

    class Something(bus.TestCase):
        drives = ["samsung-980-pro"]            # as nvme0, nvme1 …, in this order
        configuration = ""                      # nvmepolicyd.toml
        def test_it(self):
            daemon = self.start()               # waits until it has its name
            self.manager("SetProfile", "s", "performance")

The bus is a dbus-daemon with the rules of Debian's system bus and those of the product (dbus/org.nvmepolicy1.conf). Only what was
started here is ended, by its process id.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import dbus
import dbus.bus
import dbus.mainloop.glib
from gi.repository import GLib

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("NVMEPOLICYD_BUILD", SOURCE / "build/dev"))
CACHE = pathlib.Path(os.environ.get("NVMEPOLICYD_VM_CACHE", "/var/cache/nvmepolicyd-vm"))
PYTHON = "/usr/bin/python3"
CTL = str(BUILD / "bin/nvmepolicyctl")

NAME = "org.nvmepolicy1"
ROOT = "/org/nvmepolicy1"
MANAGER, CONTROLLER, SUBSYSTEM = (f"{NAME}.{kind}" for kind in ("Manager", "Controller", "Subsystem"))
PROPERTIES = "org.freedesktop.DBus.Properties"
OBJECT_MANAGER = "org.freedesktop.DBus.ObjectManager"
MOCK = "org.freedesktop.DBus.Mock"
NO_CONSTRAINT = 2**64 - 1
EXIT_NO_BUS = 3
# The service ends without tearing down, and sdbus-c++ leaks a connection that it could not open: what counts is the rest.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=4"}
NOBODY = 65534
# Under a sanitizer, or on a machine that has other things to do, everything takes longer; what is a promise has its own limit.
PATIENCE_S = 20

# Debian's /usr/share/dbus-1/system.conf, but for who may have the names of those who are played here.
BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={directory}/socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
    {others}
  </policy>
  <policy user="root">
    {owned}
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>
  {limits}
  <include>{product}</include>
</busconfig>
"""
PLAYED = ["org.freedesktop.PolicyKit1", "org.freedesktop.login1", "net.hadess.PowerProfiles",
          "org.freedesktop.UPower.PowerProfiles"]


def wait_for(condition, seconds=PATIENCE_S, what=""):
    """Turns the main loop, so that signals come in, until the condition holds; returns what it returned."""
    context = GLib.MainContext.default()
    deadline = time.monotonic() + seconds
    while True:
        while context.iteration(False):
            pass
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain{': ' + what if what else ''}")
        time.sleep(0.005)


def settle(seconds):
    """Lets signals come in for that long."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, seconds + PATIENCE_S)


class Process:
    """Something that was started here, and what it says."""

    def __init__(self, arguments, log, **options):
        self.log_path = pathlib.Path(log)
        with open(log, "ab") as file:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, **options)
        self.pid = self.process.pid

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def running(self):
        return self.process.poll() is None

    def exit_code(self, seconds=PATIENCE_S):
        return self.process.wait(seconds)

    def kill(self, how=signal.SIGKILL):
        if self.running():
            self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def stop(self):
        if self.running():
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise


class Bus(Process):
    def __init__(self, directory, limits=""):
        self.directory = pathlib.Path(directory)
        self.address = f"unix:path={directory}/socket"
        configuration = self.directory / "bus.conf"
        configuration.write_text(BUS_CONFIGURATION.format(
            directory=directory, limits=limits, product=SOURCE / "dbus/org.nvmepolicy1.conf",
            others="\n    ".join(f'<allow send_destination="{name}"/>' for name in PLAYED),
            owned="\n    ".join(f'<allow own="{name}"/>' for name in PLAYED)), encoding="utf-8")
        super().__init__(["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--nosyslog"],
                         self.directory / "bus.log")
        wait_for(lambda: (self.directory / "socket").exists() or not self.running(), what="dbus-daemon")
        if not self.running():
            raise AssertionError(f"dbus-daemon ended: {self.log()}")

    def connect(self):
        connection = dbus.bus.BusConnection(self.address, mainloop=dbus.mainloop.glib.DBusGMainLoop())
        connection.set_exit_on_disconnect(False)
        return connection


class Daemon(Process):
    """nvmepolicyd, as systemd starts it."""

    def tasks(self):
        return list(pathlib.Path(f"/proc/{self.pid}/task").iterdir())

    def switches_by_task(self):
        """How often each thread went to sleep. Threads come and go, also between being listed and being read."""
        found = {}
        for task in self.tasks():
            try:
                lines = (task / "status").read_text().splitlines()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[int(task.name)] = sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
        return found

    def switches(self):
        """How often any of its threads went to sleep, which is once more than it woke up."""
        return sum(self.switches_by_task().values())

    def worked(self):
        """Of the threads that do something about drives: another value after every look, but no number that grows."""
        return {task: count for task, count in self.switches_by_task().items() if task != self.pid}

    def memory_kb(self, what="Pss"):
        for line in pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()[1:]:
            if line.startswith(what + ":"):
                return int(line.split()[1])
        raise AssertionError(f"no {what}")


class Actor:
    """A client that is a process of its own, perhaps another user's: see client.py."""

    def __init__(self, address, uid=0):
        self.process = subprocess.Popen([PYTHON, "-B", SOURCE / "tests/edge/client.py", address, str(uid)], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.read = b""
        self.name = self.answer()["name"]

    def answer(self, seconds=60):
        """What the client says of the order whose answer is next."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.read:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no answer within {seconds} s")
            more = self.process.stdout.read(1 << 20)
            if not more:
                raise AssertionError("the client has ended")
            self.read += more
        line, _, self.read = self.read.partition(b"\n")
        return json.loads(line)

    def send(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")

    def begin(self, member, signature="", *arguments, interface=MANAGER, path=ROOT, to=NAME):
        """Calls, and does not wait for the answer: that is for result()."""
        self.send("call", to=to, path=path, interface=interface, member=member, signature=signature, arguments=arguments)

    def result(self, seconds=60):
        """What the call returned, or its error as (name, message)."""
        answer = self.answer(seconds)
        return (answer["error"], answer["message"]) if "error" in answer else answer["result"]

    def call(self, *arguments, **where):
        self.begin(*arguments, **where)
        return self.result()

    def error(self, *arguments, **where):
        """The name of the error that the call ends with; None: with none."""
        found = self.call(*arguments, **where)
        return found[0] if isinstance(found, tuple) else None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class TestCase(unittest.TestCase):
    drives = ["samsung-980-pro"]
    configuration = ""
    limits = ""  # of the bus
    maxDiff = None

    def setUp(self):
        self.assertTrue((BUILD / "bin/nvmepolicyd").exists(), f"build it first: no nvmepolicyd in {BUILD}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="nvmepolicyd-edge."))
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)  # other users reach the socket
        self.runtime, self.state, self.drive_directory = (self.directory / name for name in ("run", "state", "drives"))
        for directory in (self.runtime, self.state, self.drive_directory):
            directory.mkdir()
        for number, slug in enumerate(self.drives):
            shutil.copy(SOURCE / f"tests/drives/{slug}.json", self.drive_directory / f"{number:04}.json")
        self.configure(self.configuration)
        self.bus = self.start_bus()
        self.connection = self.bus.connect()
        self.addCleanup(self.connection.close)
        self.logs = []

    def start_bus(self):
        bus = Bus(self.directory, self.limits)
        self.addCleanup(bus.stop)
        return bus

    def configure(self, text):
        (self.directory / "nvmepolicyd.toml").write_text(text, encoding="utf-8")

    # --- who is on the bus ---------------------------------------------------------------------------------------------------

    def launch(self, *options, address=None, environment=None):
        """Starts the service and does not wait."""
        log = self.directory / f"daemon{len(self.logs)}.log"
        self.logs.append(log)
        daemon = Daemon([BUILD / "bin/nvmepolicyd", "--bus", address or self.bus.address, "--simulate", self.drive_directory,
                         "--config", self.directory / "nvmepolicyd.toml", *options], log,
                        env={"PATH": os.environ["PATH"], "RUNTIME_DIRECTORY": str(self.runtime),
                             "STATE_DIRECTORY": str(self.state), **SANITIZER, **(environment or {})})
        self.addCleanup(daemon.stop)
        return daemon

    def start(self, *options, looked=True):
        daemon = self.launch(*options)
        self.daemon = daemon
        wait_for(lambda: self.connection.name_has_owner(NAME) or not daemon.running(), what="its name")
        self.assertTrue(daemon.running(), daemon.log())
        if looked:
            wait_for(lambda: len(self.controllers()) == len(self.drives) and self.looked_at(), what="a look at every drive")
        return daemon

    def looked_at(self):
        return all(interfaces[CONTROLLER]["State"] == "live" and
                   (interfaces[CONTROLLER]["ApstVerified"] or not interfaces[CONTROLLER]["ApstSupported"])
                   for path, interfaces in self.objects().items() if CONTROLLER in interfaces)

    def actor(self, uid=0):
        actor = Actor(self.bus.address, uid)
        self.addCleanup(actor.close)
        return actor

    def mock(self, template, parameters=None):
        """Somebody played by dbusmock; ends with kill()."""
        name = {"polkitd": PLAYED[0], "logind": PLAYED[1], "power_profiles_daemon": PLAYED[2]}[template]
        mock = Process([PYTHON, "-m", "dbusmock", "--system", "--template", template,
                        *(["--parameters", json.dumps(parameters)] if parameters else [])],
                       self.directory / f"{template}.log",
                       env={"PATH": os.environ["PATH"], "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address})
        self.addCleanup(mock.stop)
        wait_for(lambda: self.connection.name_has_owner(name) or not mock.running(), what=name)
        self.assertTrue(mock.running(), mock.log())
        # The name is there a moment before the template is loaded.
        path, interface = MOCKED[template]
        wait_for(lambda: interface in self.answer_or_nothing(name, path), what=template)
        return mock

    def answer_or_nothing(self, name, path):
        try:
            return self.connection.call_blocking(name, path, "org.freedesktop.DBus.Introspectable", "Introspect", "", ())
        except dbus.DBusException:
            return ""

    def polkit(self, allowed=()):
        mock = self.mock("polkitd")
        mock.do = lambda member, signature, *arguments: self.connection.call_blocking(
            PLAYED[0], MOCKED["polkitd"][0], MOCK, member, signature, arguments)
        mock.do("SetAllowed", "as", dbus.Array(allowed, signature="s"))
        return mock

    # --- what is asked of the service ----------------------------------------------------------------------------------------

    def call(self, path, interface, member, signature="", *arguments, timeout=PATIENCE_S):
        return self.connection.call_blocking(NAME, path, interface, member, signature, arguments, timeout=timeout)

    def manager(self, member, signature="", *arguments):
        return self.call(ROOT, MANAGER, member, signature, *arguments)

    def property(self, name, path=ROOT, interface=MANAGER):
        return self.call(path, PROPERTIES, "Get", "ss", interface, name)

    def properties(self, path=ROOT, interface=MANAGER):
        return self.call(path, PROPERTIES, "GetAll", "s", interface)

    def objects(self):
        return self.call(ROOT, OBJECT_MANAGER, "GetManagedObjects")

    def controllers(self):
        return sorted(path for path, interfaces in self.objects().items() if CONTROLLER in interfaces)

    def controller(self, number=0):
        return f"{ROOT}/controller/nvme{number}"

    def tolerance(self, number=0):
        return int(self.property("LatencyToleranceMicroseconds", self.controller(number), CONTROLLER))

    def active(self):
        return str(self.property("ActiveProfile"))

    def base(self):
        return str(self.property("BaseProfile"))

    def holds(self):
        return self.property("ActiveHolds")

    def error(self, member, signature="", *arguments, path=ROOT, interface=MANAGER):
        """The name of the error that a call of root's ends with; None: with none."""
        try:
            self.call(path, interface, member, signature, *arguments)
        except dbus.DBusException as error:
            self.message = error.get_dbus_message()
            return error.get_dbus_name()
        return None

    def record(self, member=None):
        """A list that grows by (path, member, arguments) with every signal of the service's."""
        signals = []

        def add(*arguments, path, member):
            signals.append((str(path), str(member), arguments))
        match = self.connection.add_signal_receiver(add, member, None, NAME, None, path_keyword="path",
                                                    member_keyword="member")
        self.addCleanup(match.remove)
        return signals


MOCKED = {
    "polkitd": ("/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority"),
    "logind": ("/org/freedesktop/login1", "org.freedesktop.login1.Manager"),
    "power_profiles_daemon": ("/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"),
}


def failure(name):
    return f"{NAME}.Error.{name}"


def changes(signals, path=None):
    """Of those that record() wrote down: what PropertiesChanged said, as (path, interface, {name: value})."""
    return [(where, str(arguments[0]), dict(arguments[1])) for where, member, arguments in signals
            if member == "PropertiesChanged" and path in (None, where)]


if __name__ == "__main__":
    sys.exit(__doc__)
