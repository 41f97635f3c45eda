#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""nvmepolicyctl on a bus of its own, with a mock in the service's place: exit codes, what it prints, and how `run` treats its
command. NVMEPOLICYD_BUILD names the build tree."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("NVMEPOLICYD_BUILD", SOURCE / "build/dev"))
CTL = str(BUILD / "bin/nvmepolicyctl")
DRIVE = str(SOURCE / "tests/drives/samsung-990-evo-plus-4tb.json")
PATIENCE_S = 20


class Bus:
    """A dbus-daemon on a socket of its own."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        socket = f"{self.directory.name}/socket"
        configuration = pathlib.Path(self.directory.name, "bus.conf")
        configuration.write_text(
            f'<busconfig><listen>unix:path={socket}</listen><auth>EXTERNAL</auth><policy context="default"><allow user="*"/>'
            '<allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy></busconfig>')
        self.daemon = subprocess.Popen(["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.daemon.stdout.readline()
        self.environment = dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={socket}", TERM="dumb")

    def stop(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()
        self.directory.cleanup()


class OnABus(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.bus = Bus()
        self.addCleanup(self.bus.stop)

    def service(self, status=""):
        mock = self.started([str(HERE / "ctl_mock.py"), CTL, DRIVE, status])
        self.assertEqual(mock.stdout.readline(), "ready\n")
        return mock

    def started(self, command, **more):
        process = subprocess.Popen(command, env=self.bus.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   **more)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def ctl(self, *words, code=0, **more):
        done = subprocess.run([CTL, *words], env=self.bus.environment, capture_output=True, text=True, timeout=PATIENCE_S, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr


class WithoutAService(OnABus):
    def test_what_needs_it_says_so_with_exit_code_3(self):
        for words in (["profile", "list"], ["profile", "get"], ["profile", "set", "balanced"], ["holds"], ["reconcile"], ["reload"],
                      ["breaker", "clear", "nvme0"], ["hold", "--max-latency", "5ms"]):
            self.assertEqual(self.ctl(*words, code=3),
                             "nvmepolicyctl: nvmepolicyd is not running: nobody has the name org.nvmepolicy1 on the bus\n")

    def test_run_does_not_start_its_command(self):
        self.assertTrue(self.ctl("run", "--max-latency", "5ms", "--", "true", code=125).endswith(
            "on the bus; the command was not started\n"))

    def test_without_a_bus_it_is_the_same(self):
        self.assertIn("there is no bus", self.ctl("reload", "--bus", "unix:path=/no/such/socket", code=3))

    def test_status_looks_itself_and_says_so(self):
        done = subprocess.run([CTL, "status"], env=self.bus.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn("looking at the drives directly, without the daemon\n", done.stderr)


class TheCommandLine(OnABus):
    def test_contradictions_are_usage_errors(self):
        self.assertIn("say what to hold", self.ctl("hold", code=2))
        self.assertIn("--for needs --max-latency", self.ctl("hold", "--profile", "performance", "--for", "/", code=2))
        self.assertIn("has no unit", self.ctl("hold", "--max-latency", "5", code=2))
        self.assertIn("No such file", self.ctl("hold", "--max-latency", "5ms", "--for", "/no/such", code=1))

    def test_run_has_exit_codes_of_its_own(self):
        self.assertIn("after --", self.ctl("run", "--max-latency", "5ms", code=125))
        self.assertIn('unknown word "true"', self.ctl("run", "true", code=125))
        self.assertIn("say what to hold", self.ctl("run", "--", "true", code=125))


class Asking(OnABus):
    def test_texts_are_those_of_a_look(self):
        self.service()
        for words in (["status"], ["status", "--json"], ["show", "nvme0"], ["show", "nvme0", "--json"], ["explain", "nvme0"],
                      ["plan"]):
            self.assertEqual(self.ctl(*words), self.ctl(*words, "--simulate", DRIVE), words)
        self.assertEqual(json.loads(self.ctl("plan", "--json")), json.loads(self.ctl("plan", "--json", "--simulate", DRIVE)))

    def test_an_unknown_controller_is_answered_with_those_there_are(self):
        self.service()
        for name in ("nvme9", "nvme0/", "nvme0-"):
            self.assertIn(f'there is no controller "{name}"', self.ctl("show", name, code=1))
        self.assertIn("there are nvme0\n", self.ctl("explain", "nvme9", code=1))

    def test_documents_of_another_version_are_refused(self):
        for text, says in (('{"schema":2}', "schema 2"), ("hello", "no JSON document"), ("[]", "no JSON document")):
            mock = self.service(text)
            self.assertIn(says, self.ctl("status", code=1))
            mock.kill()
            mock.wait()

    def test_profiles(self):
        self.service()
        self.assertEqual(self.ctl("profile", "get"), "balanced\n")
        self.assertEqual(self.ctl("profile", "list", "--names"), "balanced\nperformance\npower-saver\n")
        self.ctl("profile", "set", "performance")
        self.assertEqual(self.ctl("profile", "list"),
                         "   PROFILE      ON AC  ON BATTERY\n"
                         "   balanced     25 ms  100 ms      set; a hold asks for another\n"
                         "*  performance  0      10 ms\n"
                         "   power-saver  any    any\n")
        self.assertEqual(self.ctl("profile", "set", "forbidden", code=4), "nvmepolicyctl: not authorized: polkit did not say yes\n")
        self.assertEqual(self.ctl("profile", "set", "fast", code=1), 'nvmepolicyctl: nvmepolicyd: there is no profile "fast"\n')

    def test_what_the_service_says_is_passed_on(self):
        self.service()
        self.ctl("reconcile")
        self.assertIn("daemon.prfile: unknown key", self.ctl("reload", code=1))
        self.assertIn("no controller is at", self.ctl("breaker", "clear", "nvme7", code=1))


class Running(OnABus):
    def run_ctl(self, *command, **more):
        return self.started([CTL, "run", "--max-latency", "5ms", "--", *command], **more)

    def test_exit_codes_are_the_commands(self):
        self.service()
        for code in (0, 1, 2, 3, 77, 125):
            self.assertEqual(self.run_ctl("sh", "-c", f"exit {code}").wait(PATIENCE_S), code)
        self.assertEqual(self.run_ctl("/no/such/program").wait(PATIENCE_S), 127)
        self.assertEqual(self.run_ctl("no-such-program").wait(PATIENCE_S), 127)
        self.assertEqual(self.run_ctl("/etc/passwd").wait(PATIENCE_S), 126)

    def test_a_signal_that_ends_the_command_ends_us(self):
        self.service()
        for which in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT):
            self.assertEqual(self.run_ctl("sh", "-c", f"kill -{int(which)} $$").wait(PATIENCE_S), -which)

    def test_signals_are_passed_on(self):
        self.service()
        for which in ("TERM", "HUP", "INT", "USR1"):
            run = self.run_ctl("sh", "-c", f"trap 'exit 42' {which}; echo ready; while :; do sleep 0.05; done")
            run.stdout.readline()
            run.send_signal(getattr(signal, "SIG" + which))
            self.assertEqual(run.wait(PATIENCE_S), 42, which)

    def test_the_hold_lasts_as_long_as_the_command(self):
        mock = self.service()
        run = self.run_ctl("sh", "-c", "echo ready; read x", stdin=subprocess.PIPE)
        self.assertEqual(mock.stdout.readline(), "hold /org/nvmepolicy1 5000 sh -c echo ready; read x\n")
        self.assertIn("at most 5 ms", self.ctl("holds"))
        hold = json.loads(self.ctl("holds", "--json"))["holds"][0]
        self.assertEqual((hold["cookie"], hold["profile"], hold["max_wake_latency_us"], hold["controller"]), (1, None, 5000, None))
        run.kill()  # by SIGKILL, while the command goes on
        self.assertEqual(mock.stdout.readline(), "released 1\n")
        self.assertEqual(self.ctl("holds"), "no holds\n")

    def test_the_command_inherits_no_descriptor(self):
        self.service()
        run = self.run_ctl("sh", "-c", "ls /proc/self/fd", stdin=subprocess.DEVNULL)
        out, _ = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(out.split(), ["0", "1", "2", "3"])  # 3 is the directory that ls reads

    def test_a_restart_of_the_service_does_not_disturb_the_command(self):
        mock = self.service()
        run = self.run_ctl("sh", "-c", "echo ready; sleep 0.1; read x; exit 7", stdin=subprocess.PIPE)
        run.stdout.readline()
        mock.kill()
        mock.wait()
        again = self.service()
        self.assertEqual(again.stdout.readline(), "hold /org/nvmepolicy1 5000 sh -c echo ready; sleep 0.1; read x; exit 7\n")
        _, said = run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 7)
        self.assertEqual(said.count("nvmepolicyd has ended"), 1)

    def test_a_lost_bus_does_not_disturb_the_command(self):
        self.service()
        run = self.run_ctl("sh", "-c", "echo ready; read x; exit 7", stdin=subprocess.PIPE)
        run.stdout.readline()
        self.bus.daemon.kill()
        time.sleep(0.3)
        _, said = run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 7)
        self.assertIn("the command goes on", said)

    def test_hold_ends_by_a_signal(self):
        mock = self.service()
        for which in (signal.SIGINT, signal.SIGTERM):
            hold = self.started([CTL, "hold", "--profile", "performance", "--reason", "game"])
            self.assertEqual(hold.stdout.readline(), "holding profile performance; Ctrl-C ends it\n")
            self.assertEqual(mock.stdout.readline(), "hold performance game\n")
            hold.send_signal(which)
            self.assertEqual(hold.wait(PATIENCE_S), 0)
            self.assertTrue(mock.stdout.readline().startswith("released"))
        self.assertIn("not authorized", self.ctl("hold", "--profile", "forbidden", code=4))


class Monitoring(OnABus):
    def test_changes_are_printed_as_they_come(self):
        mock = self.service()
        monitor = self.started([CTL, "monitor", "--json"])
        time.sleep(0.5)  # it has no line to say that it listens
        self.ctl("profile", "set", "performance")
        self.ctl("reconcile")

        def event():
            return {k: v for k, v in json.loads(monitor.stdout.readline()).items() if k != "time"}
        self.assertEqual(event(), {"event": "property-changed", "object": "/org/nvmepolicy1", "name": None,
                                   "property": "ActiveProfile", "value": "performance"})
        self.assertEqual(event(), {"event": "value-overridden", "object": "/org/nvmepolicy1/controller/nvme0", "name": "nvme0",
                                   "attribute": "power/pm_qos_latency_tolerance_us", "ours": "25000", "theirs": "100000",
                                   "writer": None})
        mock.kill()
        self.assertEqual(event(), {"event": "service-vanished"})
        self.service()
        self.assertEqual(event(), {"event": "service-appeared"})
        monitor.send_signal(signal.SIGTERM)
        self.assertEqual(monitor.wait(PATIENCE_S), 0)

    def test_it_ends_when_nobody_reads(self):
        self.service()
        monitor = self.started([CTL, "monitor"])
        time.sleep(0.3)
        monitor.stdout.close()
        self.assertEqual(monitor.wait(PATIENCE_S), 0)
        self.assertEqual(monitor.stderr.read(), "")
        monitor.stdout = open(os.devnull)


if __name__ == "__main__":
    unittest.main()
