# SPDX-License-Identifier: LGPL-2.1-or-later
"""daemon.follow = "power-profiles-daemon": under either of its names, whenever it comes, whatever it says, and never its master."""
import os
import subprocess
import unittest

import bus
from bus import CACHE, PROPERTIES, PYTHON, ROOT, SOURCE, failure

OLD, NEW = "net.hadess.PowerProfiles", "org.freedesktop.UPower.PowerProfiles"


class Played:
    """profiles_mock.py"""

    def __init__(self, address, profile, *names):
        self.process = subprocess.Popen([PYTHON, "-B", SOURCE / "tests/edge/profiles_mock.py", address, profile, *names],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Follow(bus.TestCase):
    configuration = '[daemon]\nfollow = "power-profiles-daemon"\nprofile = "balanced"\n'

    def play(self, profile, *names):
        played = Played(self.bus.address, profile, *names)
        self.addCleanup(lambda: played.process.poll() is None and played.kill())
        return played

    def become(self, profile, tolerance):
        bus.wait_for(lambda: self.base() == profile, what=f"{profile}, found {self.base()}")
        bus.wait_for(lambda: self.tolerance() == tolerance, what=f"{tolerance}, found {self.tolerance()}")
        self.assertEqual(self.active(), profile)

    def stays(self, profile, seconds=1.0):
        bus.settle(seconds)
        self.assertEqual(self.base(), profile)

    def test_either_name_there_at_the_start(self):
        for name in (OLD, NEW):
            with self.subTest(name):
                played = self.play("performance", name)
                self.start()
                self.become("performance", 0)
                played.say("power-saver")
                self.become("power-saver", bus.NO_CONSTRAINT)
                played.say("balanced")
                self.become("balanced", 25_000)
                self.daemon.stop()
                played.kill()
                bus.wait_for(lambda: not self.connection.name_has_owner(bus.NAME))

    def test_both_names_as_the_newer_versions_have(self):
        played = self.play("performance", OLD, NEW)
        changes = self.record("PropertiesChanged")
        self.start()
        self.become("performance", 0)
        played.say("power-saver")
        self.become("power-saver", bus.NO_CONSTRAINT)
        bus.settle(0.5)
        self.assertEqual([str(v["BaseProfile"]) for _, _, v in bus.changes(changes, ROOT) if "BaseProfile" in v][-1], "power-saver")

    def test_the_mock_of_dbusmock(self):
        self.mock("power_profiles_daemon", {"ActiveProfile": "performance"})
        self.start()
        self.become("performance", 0)
        self.connection.call_blocking(OLD, "/net/hadess/PowerProfiles", PROPERTIES, "Set", "ssv",
                                      (OLD, "ActiveProfile", "power-saver"))
        self.become("power-saver", bus.NO_CONSTRAINT)

    def test_it_comes_late(self):
        self.start()
        self.become("balanced", 25_000)
        self.play("performance", NEW)
        self.become("performance", 0)

    def test_another_takes_over(self):
        self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        second = self.play("power-saver", OLD)  # as tuned-ppd: the name goes from one to the other
        self.become("power-saver", bus.NO_CONSTRAINT)
        second.say("balanced")
        self.become("balanced", 25_000)

    def test_what_the_earlier_owner_says_counts_no_more(self):
        first = self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        self.play("power-saver", OLD)
        self.become("power-saver", bus.NO_CONSTRAINT)
        first.say("performance")
        self.stays("power-saver")

    def test_an_unknown_profile_changes_nothing_and_is_named_once(self):
        played = self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        for _ in range(3):
            played.say("custom")
        self.stays("performance")
        self.assertEqual(self.tolerance(), 0)
        self.assertEqual(self.daemon.log().count("custom"), 1)
        played.say("balanced")
        self.become("balanced", 25_000)

    def test_strange_profiles(self):
        played = self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        for strange in ("x" * 100_000, "\x1b[31mred", "%s", "Balanced", "../x"):
            played.say(strange)
        self.stays("performance")
        self.assertNotIn("\x1b", self.daemon.log())
        self.assertLess(len(self.daemon.log()), 20_000)
        self.assertTrue(self.daemon.running())

    def test_a_property_that_is_only_invalidated(self):
        played = self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        played.say("invalidate power-saver")
        self.become("power-saver", bus.NO_CONSTRAINT)

    def test_its_owner_leaves(self):
        played = self.play("performance", NEW)
        self.start()
        self.become("performance", 0)
        played.kill()
        self.become("balanced", 25_000)
        self.play("power-saver", NEW)
        self.become("power-saver", bus.NO_CONSTRAINT)

    def test_its_owner_restarts_quickly(self):
        changes = self.record("PropertiesChanged")
        played = self.play("performance", NEW)
        self.start()
        self.become("performance", 0)
        before = len(changes)
        played.kill()
        self.play("performance", NEW)
        self.stays("performance", 3)
        print("restart of the followed service, values of BaseProfile meanwhile:",
              [str(v["BaseProfile"]) for _, _, v in bus.changes(changes[before:], ROOT) if "BaseProfile" in v])

    def test_it_does_not_answer(self):
        played = self.play("performance", NEW)
        played.say("hang")
        self.start()
        self.become("balanced", 25_000)
        played.say("power-saver")
        self.become("power-saver", bus.NO_CONSTRAINT)

    def test_setting_a_profile_is_refused_with_the_reason(self):
        self.start()
        self.assertEqual(self.error("SetProfile", "s", "performance"), failure("Failed"))
        self.assertIn("power-profiles-daemon", self.message)
        self.play("power-saver", OLD)
        self.become("power-saver", bus.NO_CONSTRAINT)
        self.assertEqual(self.error("SetProfile", "s", "performance"), failure("Failed"))
        self.assertEqual(self.error("SetProfile", "s", "nosuch") in (failure("Failed"), failure("NoSuchProfile")), True)
        self.stays("power-saver", 0.3)

    def test_holds_go_on_while_following(self):
        played = self.play("balanced", OLD)
        self.start()
        actor = self.actor()
        self.assertIsInstance(actor.call("HoldProfile", "sss", "performance", "", ""), int)
        played.say("power-saver")
        bus.wait_for(lambda: self.base() == "power-saver")
        self.assertEqual((self.active(), self.tolerance(), len(self.holds())), ("performance", 0, 1))
        actor.kill()
        self.become("power-saver", bus.NO_CONSTRAINT)

    def test_signals_of_somebody_else_are_ignored(self):
        self.play("balanced", OLD, NEW)
        self.start()
        self.become("balanced", 25_000)
        ours = str(self.connection.get_name_owner(bus.NAME))
        import dbus
        for uid in (0, bus.NOBODY):
            spoof = self.actor(uid)
            for name in (OLD, NEW):
                for to in (ours, None):
                    spoof.send("signal", path="/" + name.replace(".", "/"), interface=PROPERTIES, member="PropertiesChanged",
                               to=to, signature="sa{sv}as", arguments=[name, {"ActiveProfile": "performance"}, []])
                    spoof.answer()
                    spoof.send("signal", path="/org/freedesktop/DBus", interface="org.freedesktop.DBus", to=to,
                               member="NameOwnerChanged", signature="sss", arguments=[name, ":1.1", spoof.name])
                    spoof.answer()
        self.stays("balanced")
        self.assertEqual(self.tolerance(), 25_000)
        self.assertNotIn("performance", self.daemon.log())

    def test_without_follow_nobody_is_listened_to(self):
        self.configure("")
        played = self.play("performance", OLD, NEW)
        self.start()
        played.say("power-saver")
        self.stays("balanced")
        self.assertIsNone(self.error("SetProfile", "s", "performance"))

    def test_what_is_followed_is_not_kept_over_a_restart(self):
        self.play("performance", OLD)
        self.start()
        self.become("performance", 0)
        bus.settle(0.3)
        path = self.state / "profile.json"
        self.assertNotIn("performance", path.read_text() if path.exists() else "")

    def test_it_is_neither_started_nor_set(self):
        services = self.directory / "services"
        services.mkdir()
        for name in (OLD, NEW):
            (services / f"{name}.service").write_text(
                f"[D-BUS Service]\nName={name}\nExec=/bin/sh -c 'echo started >>{self.directory}/started'\nUser=root\n")
        self.bus.stop()
        self.limits = f"<servicedir>{services}</servicedir>"
        (self.directory / "socket").unlink(missing_ok=True)
        self.bus = self.start_bus()
        self.connection = self.bus.connect()
        self.assertIn(OLD, [str(name) for name in self.connection.list_activatable_names()] if hasattr(
            self.connection, "list_activatable_names") else [OLD])
        self.start()
        self.stays("balanced", 2)
        self.assertFalse((self.directory / "started").exists())
        self.assertNotIn("Activating", self.bus.log())
        played = self.play("performance", OLD)
        self.become("performance", 0)
        played.kill()
        self.become("balanced", 25_000)
        self.assertNotIn("Activating", self.bus.log())

    def test_reload_begins_and_ends_to_follow(self):
        self.configure("")
        self.play("performance", OLD)
        self.start()
        self.become("balanced", 25_000)
        self.configure(self.configuration)
        self.assertIsNone(self.error("Reload"))
        self.become("performance", 0)
        self.configure("")
        self.assertIsNone(self.error("Reload"))
        self.become("balanced", 25_000)

    def test_the_real_power_profiles_daemon(self):
        package = CACHE / "power-profiles-daemon"
        program = next(package.glob("usr/libexec/power-profiles-daemon"), None)
        self.assertIsNotNone(program, "get it first: tests/vm/fetch-kernels")
        polkit = self.polkit()
        polkit.do("AllowUnknown", "b", True)
        state = self.directory / "power-profiles-daemon"
        state.mkdir()
        # Its own tests' way to keep it from this machine's processor and from what it has saved.
        real = bus.Process([program, "--verbose"], self.directory / "real.log",
                           env={"PATH": os.environ["PATH"], "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address,
                                "UMOCKDEV_DIR": str(state), "LD_LIBRARY_PATH": ":".join(str(p) for p in package.glob("usr/lib/*"))})
        self.addCleanup(real.stop)
        self.start()
        bus.wait_for(lambda: self.connection.name_has_owner(OLD) or not real.running(), what="power-profiles-daemon")
        self.assertTrue(real.running(), real.log())
        for profile, tolerance in (("power-saver", bus.NO_CONSTRAINT), ("balanced", 25_000)):
            self.connection.call_blocking(OLD, "/net/hadess/PowerProfiles", PROPERTIES, "Set", "ssv", (OLD, "ActiveProfile", profile))
            self.become(profile, tolerance)
        real.kill()
        self.become("balanced", 25_000)


if __name__ == "__main__":
    unittest.main()
