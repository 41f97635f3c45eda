# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bus that is not there, leaves, or has somebody else under our name: a message and an exit code of its own, never an abort. And logind."""
import signal
import unittest

import bus
from bus import NAME

ABORTS = ("terminate called", "Aborted", "what():", "core dumped", "Sanitizer")


class Failures(bus.TestCase):
    def ended(self, daemon, *words):
        self.assertEqual(daemon.exit_code(), bus.EXIT_NO_BUS, daemon.log())
        last = daemon.log()
        for word in words:
            self.assertIn(word, last)
        for word in ABORTS:
            self.assertNotIn(word, last)

    def test_no_bus_at_the_start(self):
        for address in ("unix:path=/nonexistent/socket", "unix:path=" + str(self.directory / "bus.conf")):
            with self.subTest(address):
                self.ended(self.launch(address=address), "D-Bus")

    def test_an_address_that_is_none(self):
        for address in ("nonsense", "", "unix:", "tcp:host=256.1.1.1,port=1", "unix:path=" + "x" * 300):
            with self.subTest(address):
                daemon = bus.Daemon([bus.BUILD / "bin/nvmepolicyd", "--bus", address, "--simulate", self.drive_directory],
                                    self.directory / "nonsense.log", env={**bus.SANITIZER, "RUNTIME_DIRECTORY": str(self.runtime),
                                                                          "STATE_DIRECTORY": str(self.state)})
                self.addCleanup(daemon.stop)
                self.assertIn(daemon.exit_code(), (2, bus.EXIT_NO_BUS))
                for word in ABORTS:
                    self.assertNotIn(word, daemon.log())

    def test_without_a_bus(self):
        daemon = self.launch(address="none")
        bus.wait_for(lambda: "25000" in daemon.log())
        bus.settle(0.5)
        self.assertTrue(daemon.running())
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.exit_code(), 0, daemon.log())

    def test_the_system_bus_by_its_address_in_the_environment(self):
        daemon = self.launch(address="system", environment={"DBUS_SYSTEM_BUS_ADDRESS": self.bus.address})
        bus.wait_for(lambda: self.connection.name_has_owner(NAME))
        self.assertTrue(daemon.running())

    def test_the_session_bus_by_its_address_in_the_environment(self):
        self.launch(address="session", environment={"DBUS_SESSION_BUS_ADDRESS": self.bus.address})
        bus.wait_for(lambda: self.connection.name_has_owner(NAME))

    def test_the_bus_leaves_while_idle(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                daemon = self.start()
                self.bus.kill(how)
                self.ended(daemon, "D-Bus")
                (self.directory / "socket").unlink(missing_ok=True)
                self.bus = self.start_bus()
                self.connection = self.bus.connect()

    def test_the_bus_leaves_in_the_middle_of_calls(self):
        daemon = self.start()
        actors = [self.actor() for _ in range(3)]
        for actor in actors:
            actor.call("HoldProfile", "sss", "performance", "", "")
            for member in ("Plan", "Reconcile", "Describe"):
                actor.begin(member)
        self.bus.kill()
        self.ended(daemon, "D-Bus")

    def test_the_bus_leaves_while_polkit_thinks(self):
        polkit = self.polkit()
        polkit.do("SimulateHang", "b", True)
        daemon = self.start()
        nobody = self.actor(bus.NOBODY)
        nobody.begin("SetProfile", "s", "performance")
        bus.wait_for(lambda: polkit.do("HaveHangingCalls", ""))
        self.bus.kill()
        self.ended(daemon, "D-Bus")

    def test_the_bus_leaves_and_everything_else_happens_at_that_moment(self):
        for order in [signal.SIGHUP] * 12 + [signal.SIGTERM] * 4:  # which of them the loop sees first, is chance
            with self.subTest(order):
                self.configure("")
                daemon = self.start()
                actor = self.actor()
                actor.call("HoldProfile", "sss", "performance", "", "")
                bus.settle(0.3)
                daemon.process.send_signal(signal.SIGSTOP)
                self.bus.kill()
                self.configure('[daemon]\nfollow = "power-profiles-daemon"\n[profiles.balanced]\nmax_wake_latency = "5ms"\n')
                daemon.process.send_signal(order)
                daemon.process.send_signal(signal.SIGCONT)
                self.assertIn(daemon.exit_code(), (0, bus.EXIT_NO_BUS) if order == signal.SIGTERM else (bus.EXIT_NO_BUS,), daemon.log())
                for word in ABORTS:
                    self.assertNotIn(word, daemon.log())
                (self.directory / "socket").unlink(missing_ok=True)
                self.bus = self.start_bus()
                self.connection = self.bus.connect()

    def test_a_stop_puts_values_back_although_the_bus_leaves_meanwhile(self):
        daemon = self.start()
        daemon.process.send_signal(signal.SIGSTOP)
        daemon.process.send_signal(signal.SIGTERM)
        self.bus.kill()
        daemon.process.send_signal(signal.SIGCONT)
        daemon.exit_code()
        self.assertIn("put back", daemon.log())

    def test_a_stop_in_the_middle_of_calls(self):
        polkit = self.polkit()
        polkit.do("SimulateHang", "b", True)
        daemon = self.start()
        nobody, root = self.actor(bus.NOBODY), self.actor()
        nobody.begin("SetProfile", "s", "performance")
        bus.wait_for(lambda: polkit.do("HaveHangingCalls", ""))
        root.begin("Reconcile")
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.exit_code(), 0, daemon.log())
        for word in ABORTS:
            self.assertNotIn(word, daemon.log())

    def test_the_name_is_taken(self):
        self.connection.request_name(NAME)
        self.ended(self.launch(), NAME)

    def test_a_second_service_on_the_bus(self):
        first = self.start()
        (self.directory / "other-run").mkdir()
        second = self.launch(environment={"RUNTIME_DIRECTORY": str(self.directory / "other-run")})
        self.ended(second, NAME)
        self.assertTrue(first.running())
        self.assertEqual(self.active(), "balanced")

    def test_the_name_cannot_be_taken_over(self):
        import dbus
        daemon = self.start()
        found = self.connection.request_name(NAME, dbus.bus.NAME_FLAG_REPLACE_EXISTING | dbus.bus.NAME_FLAG_DO_NOT_QUEUE)
        self.assertEqual(found, dbus.bus.REQUEST_NAME_REPLY_EXISTS)
        self.assertTrue(daemon.running())
        self.assertEqual(self.active(), "balanced")

    def test_a_bus_that_does_not_let_us_have_the_name(self):
        self.bus.stop()
        (self.directory / "socket").unlink(missing_ok=True)
        self.limits = f'<policy context="mandatory"><deny own="{NAME}"/></policy>'
        self.bus = self.start_bus()
        self.ended(self.launch(), NAME)

    def test_once_needs_no_bus(self):
        daemon = bus.Daemon([bus.BUILD / "bin/nvmepolicyd", "--once", "--simulate", self.drive_directory],
                            self.directory / "once.log", env={**bus.SANITIZER, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent",
                                                              "RUNTIME_DIRECTORY": str(self.runtime)})
        self.assertEqual(daemon.exit_code(), 0, daemon.log())


class Sleep(bus.TestCase):
    """PrepareForSleep(false): the machine is awake again, so everything is looked at."""
    def looks(self):
        return self.daemon.worked()

    def sleep_signal(self, actor, going, to=None):
        actor.send("signal", path="/org/freedesktop/login1", interface="org.freedesktop.login1.Manager",
                   member="PrepareForSleep", to=to, signature="b", arguments=[going])
        actor.answer()

    def settled(self):
        bus.settle(1.5)
        return self.looks()

    def test_resume_leads_to_a_look_at_everything(self):
        self.mock("logind")
        self.start()
        before = self.settled()
        emit = lambda going: self.connection.call_blocking(
            "org.freedesktop.login1", "/org/freedesktop/login1", bus.MOCK, "EmitSignal", "sssav",
            ("org.freedesktop.login1.Manager", "PrepareForSleep", "b", [going]))
        emit(True)
        asleep = self.settled()
        emit(False)
        bus.wait_for(lambda: self.looks() != asleep, what="a look at everything")
        print(f"what workers did: {before} before, {asleep} asleep, {self.settled()} awake")
        self.assertEqual(asleep, before)

    def test_somebody_else_says_so(self):
        self.mock("logind")
        self.start()
        before = self.settled()
        ours = str(self.connection.get_name_owner(NAME))
        for uid in (0, bus.NOBODY):
            spoof = self.actor(uid)
            for to in (None, ours):
                self.sleep_signal(spoof, False, to)
        self.assertEqual(self.settled(), before)

    def test_logind_comes_late_and_leaves(self):
        self.start()
        before = self.settled()
        logind = self.mock("logind")
        self.connection.call_blocking(
            "org.freedesktop.login1", "/org/freedesktop/login1", bus.MOCK, "EmitSignal", "sssav",
            ("org.freedesktop.login1.Manager", "PrepareForSleep", "b", [False]))
        bus.wait_for(lambda: self.looks() != before, what="a look at everything")
        logind.kill()
        bus.settle(0.5)
        self.assertTrue(self.daemon.running())


if __name__ == "__main__":
    unittest.main()
