# SPDX-License-Identifier: LGPL-2.1-or-later
"""nvmepolicyctl against the service: what it prints, its exit codes, and how `run` treats its command."""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time
import unittest

import dbus.service

import bus
from bus import CONTROLLER, CTL, MANAGER, NAME, NOBODY, PATIENCE_S, ROOT

LOOSE_US = 1_000_000  # more than any profile asks for


class CtlTestCase(bus.TestCase):
    def setUp(self):
        super().setUp()
        self.unread = {}

    def environment(self):
        return {"PATH": os.environ["PATH"], "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address, "TERM": "dumb", **bus.SANITIZER}

    def started(self, command, **more):
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def ctl(self, *words, code=0, program=CTL, **more):
        """What it prints: where it is to fail, on standard error."""
        done = subprocess.run([program, *words], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def line(self, stream, seconds=PATIENCE_S):
        """The next line; past the buffer of `stream`, which would hide from select() what is there."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.unread.get(stream, b""):
            ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
            more = os.read(stream.fileno(), 1 << 16) if ready else b""
            self.assertTrue(more, f"no line within {seconds} s, or its end; {self.unread.get(stream)}")
            self.unread[stream] = self.unread.get(stream, b"") + more
        line, _, self.unread[stream] = self.unread[stream].partition(b"\n")
        return line.decode() + "\n"

    def held(self):
        """(profile or latency, controller, reason) of each hold."""
        return [(str(h["Profile"]) if "Profile" in h else int(h["MaxWakeLatencyMicroseconds"]), str(h.get("Controller", "all")),
                 str(h["Reason"])) for h in self.holds()]

    def become(self, *held):
        bus.wait_for(lambda: self.held() == list(held), what=f"{held}, found {self.held()}")


class WithoutAService(CtlTestCase):
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
        done = subprocess.run([CTL, "status"], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn("looking at the drives directly, without the daemon\n", done.stderr)


class TheCommandLine(CtlTestCase):
    def test_contradictions_are_usage_errors(self):
        self.assertIn("say what to hold", self.ctl("hold", code=2))
        self.assertIn("--for needs --max-latency", self.ctl("hold", "--profile", "performance", "--for", "/", code=2))
        self.assertIn("has no unit", self.ctl("hold", "--max-latency", "5", code=2))
        self.assertIn("No such file", self.ctl("hold", "--max-latency", "5ms", "--for", "/no/such", code=1))

    def test_run_has_exit_codes_of_its_own(self):
        self.assertIn("after --", self.ctl("run", "--max-latency", "5ms", code=125))
        self.assertIn('unknown word "true"', self.ctl("run", "true", code=125))
        self.assertIn("say what to hold", self.ctl("run", "--", "true", code=125))


class Asking(CtlTestCase):
    drives = ["samsung-980-pro", "crucial-p5-500gb"]

    def test_documents_are_those_of_the_service(self):
        self.start()
        self.assertEqual(json.loads(self.ctl("status", "--json")), json.loads(self.call(ROOT, MANAGER, "Describe")))
        self.assertEqual(json.loads(self.ctl("show", "nvme1", "--json")),
                         json.loads(self.call(self.controller(1), CONTROLLER, "Describe")))
        self.assertEqual(json.loads(self.ctl("plan", "--json"))["changes"], [])
        self.assertRegex(self.ctl("status"), r"nvme0 +live .* yes\n")

    def test_texts_are_those_of_a_look_where_there_is_nothing_to_do(self):
        self.configure('[profiles.balanced]\nmax_wake_latency = "100ms"\n')  # which is what the kernel starts with
        self.start()
        look = ["--simulate", str(self.drive_directory), "--config", str(self.directory / "nvmepolicyd.toml")]
        for words in (["status"], ["show", "nvme0"], ["explain", "nvme0"], ["plan"]):
            self.assertEqual(self.ctl(*words), self.ctl(*words, *look), words)

    def test_plan_says_what_a_reconcile_would_change(self):
        # The story writes 0 within a few seconds, and theirs stays until somebody says reconcile.
        self.start("--story", "foreign-writer")
        bus.wait_for(lambda: json.loads(self.ctl("plan", "--json"))["changes"], 60, "a change")
        change = json.loads(self.ctl("plan", "--json"))["changes"][0]
        self.assertEqual(list(change), ["object", "attribute", "from", "to", "through", "origin", "reason"])
        self.assertEqual((change["attribute"], change["from"], change["to"], change["through"]),
                         ("power/pm_qos_latency_tolerance_us", "0", "25000", None))

    def test_an_unknown_controller_is_answered_with_those_there_are(self):
        self.start()
        for name in ("nvme9", "nvme0/", "nvme0-"):
            self.assertIn(f'there is no controller "{name}"', self.ctl("show", name, code=1))
        self.assertIn("there are nvme0, nvme1\n", self.ctl("explain", "nvme9", code=1))

    def test_profiles(self):
        self.start()
        self.assertEqual(self.ctl("profile", "get"), "balanced\n")
        self.assertEqual(self.ctl("profile", "list", "--names"), "balanced\nperformance\npower-saver\n")
        self.ctl("profile", "set", "performance")
        self.assertEqual((self.active(), self.ctl("profile", "get")), ("performance", "performance\n"))
        self.ctl("profile", "set", "balanced")
        self.manager("HoldProfile", "sss", "performance", "", "")
        self.assertEqual(self.ctl("profile", "list"),
                         "   PROFILE      ON AC  ON BATTERY\n"
                         "   balanced     25 ms  100 ms      set; a hold asks for another\n"
                         "*  performance  0      10 ms\n"
                         "   power-saver  any    any\n")
        self.assertIn('profile: "fast": there is none of that name', self.ctl("profile", "set", "fast", code=1))

    def test_what_the_service_says_is_passed_on(self):
        self.start()
        self.ctl("reconcile")
        self.configure('[daemon]\nprfile = "balanced"\n')
        self.assertIn("daemon.prfile", self.ctl("reload", code=1))
        self.assertIn("nvme7", self.ctl("breaker", "clear", "nvme7", code=1))

    def test_whoever_may_not_is_told_so_with_exit_code_4(self):
        self.start()
        program = self.directory / "nvmepolicyctl"  # the build tree may be nobody else's business
        shutil.copy(CTL, program)
        for words in (["profile", "set", "performance"], ["reconcile"], ["reload"], ["breaker", "clear", "nvme0"],
                      ["hold", "--profile", "performance"]):
            self.assertTrue(self.ctl(*words, code=4, program=program, user=NOBODY, group=NOBODY, extra_groups=[],
                                     cwd="/").startswith("nvmepolicyctl: not authorized: "), words)
        self.assertIn("the command was not started", self.ctl(
            "run", "--max-latency", "5ms", "--", "true", code=125, program=program, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"))
        self.assertEqual(self.ctl("profile", "get", program=program, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"),
                         "balanced\n")

    def test_a_service_that_hangs_is_no_service_that_does_not_run(self):
        daemon = self.start()
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            before = time.monotonic()
            for asked in [self.started([CTL, *words]) for words in (["status"], ["status", "--json"], ["show", "nvme0"], ["explain", "nvme0"],
                                                                    ["plan"], ["holds"], ["profile", "get"])]:
                out, said = asked.communicate(timeout=PATIENCE_S)
                self.assertEqual((asked.returncode, out, said), (1, "", "nvmepolicyctl: nvmepolicyd runs, but does not answer\n"), asked.args)
            self.assertLess(time.monotonic() - before, 6.5)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        self.assertIn("nvme0", self.ctl("status"))


class Foreign(dbus.service.Object):
    """What the service cannot be brought to do: documents of another version, and a hold that ends before its call is answered."""
    text = ""
    cookie = 0
    ends = None  # which cookie, before the call is answered

    @dbus.service.method(MANAGER, out_signature="s")
    def Describe(self):
        return self.text

    @dbus.service.method(MANAGER, in_signature="otss", out_signature="u")
    def HoldLatency(self, controller, latency, reason, application):
        self.cookie += 1
        if self.ends:
            self.HoldReleased(self.ends)
        return self.cookie

    @dbus.service.signal(MANAGER, signature="u")
    def HoldReleased(self, cookie):
        pass


class AnotherService(CtlTestCase):
    ENDED = ("nvmepolicyctl: somebody else has ended the hold of a wake latency of at most 5 ms on all drives; "
             "the command goes on without it\n")

    def setUp(self):
        super().setUp()
        self.service = Foreign(self.connection, ROOT)
        self.connection.request_name(NAME)

    def waiting(self):
        """`run` is another process, and the service is this one: nothing may be waited for but by turning the loop."""
        run = self.started([CTL, "run", "--max-latency", "5ms", "--", "sh", "-c", "echo ready; read x"], stdin=subprocess.PIPE)
        bus.wait_for(lambda: select.select([run.stdout], [], [], 0)[0])
        return run

    def said(self, run):
        bus.settle(0.3)
        return run.communicate("\n", timeout=PATIENCE_S)[1]

    def test_documents_of_another_version_are_refused(self):
        for text, says in (('{"schema":2}', "schema 2"), ("hello", "no JSON document"), ("[]", "no JSON document")):
            self.service.text = text
            status = self.started([CTL, "status"])
            bus.wait_for(lambda: status.poll() is not None)
            self.assertEqual(status.returncode, 1)
            self.assertIn(says, status.stderr.read())

    def test_a_hold_that_ends_before_its_call_is_answered(self):
        self.service.ends = 1
        self.assertEqual(self.said(self.waiting()), self.ENDED)

    def over_a_restart(self, ends):
        run = self.waiting()
        self.service.ends = ends
        self.connection.release_name(NAME)
        bus.settle(0.1)
        self.connection.request_name(NAME)
        bus.wait_for(lambda: self.service.cookie == 2)
        said = self.said(run)
        self.assertEqual(said.count("nvmepolicyd is back"), 1)
        return said

    def test_the_same_when_it_is_taken_again(self):
        self.assertEqual(self.over_a_restart(ends=2).count(self.ENDED), 1)

    def test_a_cookie_of_the_service_before_is_not_ours(self):
        self.assertNotIn("somebody", self.over_a_restart(ends=1))


class Running(CtlTestCase):
    READY = "echo ready; read x"

    def setUp(self):
        super().setUp()
        self.start()

    def run_ctl(self, *command, hold=("--max-latency", "5ms"), **more):
        return self.started([CTL, "run", *hold, "--", *command], **more)

    def waiting(self, script="echo ready; read x; exit 7", **more):
        run = self.run_ctl("sh", "-c", script, stdin=subprocess.PIPE, **more)
        self.assertEqual(self.line(run.stdout), "ready\n")
        return run

    def test_exit_codes_are_the_commands(self):
        for code in (0, 1, 2, 3, 77, 125):
            self.assertEqual(self.run_ctl("sh", "-c", f"exit {code}").wait(PATIENCE_S), code)
        self.assertEqual(self.run_ctl("/no/such/program").wait(PATIENCE_S), 127)
        self.assertEqual(self.run_ctl("no-such-program").wait(PATIENCE_S), 127)
        self.assertEqual(self.run_ctl("/etc/passwd").wait(PATIENCE_S), 126)

    def test_a_signal_that_ends_the_command_ends_us(self):
        for which in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT):
            self.assertEqual(self.run_ctl("sh", "-c", f"kill -{int(which)} $$").wait(PATIENCE_S), -which)

    def test_signals_are_passed_on(self):
        for which in ("TERM", "HUP", "INT", "USR1"):
            run = self.waiting(f"trap 'exit 42' {which}; echo ready; while :; do sleep 0.05; done")
            run.send_signal(getattr(signal, "SIG" + which))
            self.assertEqual(run.wait(PATIENCE_S), 42, which)

    def test_the_hold_lasts_as_long_as_the_command(self):
        run = self.waiting(self.READY)
        self.assertEqual(self.held(), [(5000, "all", f"sh -c {self.READY}")])
        self.assertEqual(self.tolerance(), 5000)
        self.assertIn("at most 5 ms", self.ctl("holds"))
        hold = json.loads(self.ctl("holds", "--json"))["holds"][0]
        self.assertEqual((hold["profile"], hold["max_wake_latency_us"], hold["controller"], hold["application_id"]),
                         (None, 5000, None, "nvmepolicyctl"))
        run.kill()  # by SIGKILL, while the command goes on
        self.become()
        self.assertEqual(self.ctl("holds"), "no holds\n")

    def test_the_command_inherits_no_descriptor(self):
        run = self.run_ctl("sh", "-c", "ls /proc/self/fd", stdin=subprocess.DEVNULL)
        out, _ = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(out.split(), ["0", "1", "2", "3"])  # 3 is the directory that ls reads

    def test_a_restart_of_the_service_does_not_disturb_the_command(self):
        run = self.waiting()
        held = self.held()
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.start()
            self.become(*held)
        self.daemon.stop()
        self.start()
        self.become(*held)
        _, said = run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 7)
        self.assertEqual((said.count("nvmepolicyd has ended"), said.count("nvmepolicyd is back"), said.count("somebody")), (1, 1, 0))

    def test_a_lost_bus_does_not_disturb_the_command(self):
        run = self.waiting()
        self.bus.kill()
        self.assertIn("the command goes on", self.line(run.stderr))
        run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 7)

    def test_somebody_else_ends_the_hold_and_the_command_goes_on(self):
        run = self.waiting()
        self.manager("Release", "u", self.holds()[0]["Cookie"])
        self.assertEqual(self.line(run.stderr), "nvmepolicyctl: somebody else has ended the hold of a wake latency of at most 5 ms on "
                         "all drives; the command goes on without it\n")
        # Nobody takes it again behind the back of whoever ended it.
        self.daemon.stop()
        self.start()
        bus.settle(0.5)
        self.assertEqual(self.held(), [])
        _, said = run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual((run.returncode, said), (7, ""))

    def test_of_two_that_are_held_the_other_stays_and_comes_back(self):
        run = self.waiting(hold=("--max-latency", "5ms", "--profile", "performance", "--reason", "game"))
        self.assertEqual(self.held(), [("performance", "all", "game"), (5000, "all", "game")])
        self.manager("Release", "u", self.holds()[0]["Cookie"])
        self.assertIn("has ended the hold of profile performance, or ", self.line(run.stderr))
        self.become((5000, "all", "game"))
        self.daemon.kill()
        self.start()
        self.become((5000, "all", "game"))
        # The new service's cookies are other ones.
        self.manager("Release", "u", self.holds()[0]["Cookie"])
        self.become()
        _, said = run.communicate("\n", timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 7)
        self.assertEqual(said.count("somebody else has ended the hold of a wake latency"), 1)

    def test_others_holds_and_others_signals_are_nothing_to_us(self):
        run = self.waiting()
        cookie = int(self.holds()[0]["Cookie"])
        other = self.manager("HoldLatency", "otss", ROOT, 1000, "", "")
        self.manager("Release", "u", other)
        actor = self.actor(NOBODY)
        name = next(str(h["Sender"]) for h in self.holds())
        for to in ({"to": name}, {}):
            actor.send("signal", path=ROOT, interface=MANAGER, member="HoldReleased", signature="u", arguments=[cookie], **to)
            actor.answer()
        bus.settle(0.3)
        self.assertEqual(len(self.held()), 1)
        self.assertEqual(run.communicate("\n", timeout=PATIENCE_S)[1], "")

    def test_hold_ends_by_a_signal(self):
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            hold = self.started([CTL, "hold", "--profile", "performance", "--reason", "game"])
            self.assertEqual(self.line(hold.stdout), "holding profile performance; Ctrl-C ends it\n")
            self.assertEqual(self.held(), [("performance", "all", "game")])
            hold.send_signal(which)
            self.assertEqual(hold.wait(PATIENCE_S), 0)
            self.become()

    def test_hold_ends_with_exit_code_1_when_somebody_else_ends_it(self):
        hold = self.started([CTL, "hold", "--max-latency", "5ms", "--profile", "performance"])
        self.line(hold.stdout)
        self.manager("Release", "u", self.holds()[1]["Cookie"])
        self.assertEqual(hold.wait(PATIENCE_S), 1)
        self.assertEqual(hold.stderr.read(),
                         "nvmepolicyctl: somebody else has ended the hold of a wake latency of at most 5 ms on all drives\n")
        self.become()

    def test_hold_ends_with_exit_code_1_when_the_configuration_loses_its_profile(self):
        self.configure('[profiles.game]\nmax_wake_latency = "1ms"\n')
        self.ctl("reload")
        hold = self.started([CTL, "hold", "--profile", "game"])
        self.line(hold.stdout)
        self.configure("")
        self.ctl("reload")
        self.assertEqual(hold.wait(PATIENCE_S), 1)
        self.assertIn("taken the profile out of the configuration", hold.stderr.read())

    def test_hold_outlasts_a_restart(self):
        hold = self.started([CTL, "hold", "--profile", "performance", "--reason", "game"])
        self.line(hold.stdout)
        self.daemon.stop()
        self.start()
        self.become(("performance", "all", "game"))
        hold.send_signal(signal.SIGINT)
        self.assertEqual(hold.wait(PATIENCE_S), 0)


class Monitoring(CtlTestCase):
    def monitor(self, *options):
        """It has no line to say that it listens: it does once it hears of a change."""
        monitor = self.started([CTL, "monitor", "--json", *options])
        end = time.monotonic() + PATIENCE_S
        while not select.select([monitor.stdout], [], [], 0.2)[0]:
            self.assertLess(time.monotonic(), end)
            self.manager("Release", "u", self.manager("HoldLatency", "otss", ROOT, LOOSE_US, "", ""))
        while select.select([monitor.stdout], [], [], 0.5)[0]:
            os.read(monitor.stdout.fileno(), 1 << 16)
        return monitor

    def event(self, monitor, **wanted):
        """The next event with these."""
        while True:
            event = json.loads(self.line(monitor.stdout))
            if wanted.items() <= event.items():
                return {k: v for k, v in event.items() if k != "time"}

    def test_changes_are_printed_as_they_come_and_over_restarts(self):
        self.start()
        monitor = self.monitor()
        for _ in range(2):
            self.ctl("profile", "set", "performance")
            self.assertEqual(self.event(monitor, property="ActiveProfile"),
                             {"event": "property-changed", "object": ROOT, "name": None, "property": "ActiveProfile",
                              "value": "performance"})
            self.assertEqual(self.event(monitor, property="LatencyToleranceMicroseconds"),
                             {"event": "property-changed", "object": self.controller(), "name": "nvme0",
                              "property": "LatencyToleranceMicroseconds", "value": 0})
            self.ctl("profile", "set", "balanced")
            cookie = int(self.manager("HoldLatency", "otss", ROOT, 1000, "", ""))
            self.manager("Release", "u", cookie)
            self.assertEqual(self.event(monitor, event="hold-released"), {"event": "hold-released", "cookie": cookie})
            self.daemon.kill()
            self.assertEqual(self.event(monitor, event="service-vanished"), {"event": "service-vanished"})
            self.start()
            self.assertEqual(self.event(monitor, event="service-appeared"), {"event": "service-appeared"})
        monitor.send_signal(signal.SIGTERM)
        self.assertEqual(monitor.wait(PATIENCE_S), 0)

    def test_somebody_else_writes(self):
        monitor = self.started([CTL, "monitor", "--json"])
        self.assertIn("waiting for it", self.line(monitor.stderr))
        self.start("--story", "foreign-writer")
        self.assertEqual(self.event(monitor, event="value-overridden"),
                         {"event": "value-overridden", "object": self.controller(), "name": "nvme0",
                          "attribute": "power/pm_qos_latency_tolerance_us", "ours": "25000", "theirs": "0", "writer": None})

    def test_thousands_of_changes_do_not_make_it_grow(self):
        self.start()
        monitor = self.monitor()
        seen = 0

        def change(times):
            nonlocal seen
            for _ in range(times):
                for profile in ("performance", "balanced"):
                    self.manager("SetProfile", "s", profile)
                    while True:
                        event = json.loads(self.line(monitor.stdout))
                        seen += event.get("event") == "property-changed"
                        if event.get("property") == "ActiveProfile" and event["value"] == profile:
                            break

        def memory_kb():
            return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{monitor.pid}/status").read_text().splitlines()
                        if line.startswith("VmRSS"))
        change(50)
        before = memory_kb()
        change(250)
        self.assertGreater(seen, 1000)
        self.assertLess(memory_kb() - before, 512)
        print(f"{seen} changes, {before} kB resident before and {memory_kb()} kB after")

    def test_it_ends_when_nobody_reads(self):
        self.start()
        monitor = self.monitor()
        monitor.stdout.close()
        self.assertEqual(monitor.wait(PATIENCE_S), 0)
        self.assertEqual(monitor.stderr.read(), "")
        monitor.stdout = open(os.devnull)


if __name__ == "__main__":
    unittest.main()
