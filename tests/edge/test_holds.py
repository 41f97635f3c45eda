# SPDX-License-Identifier: LGPL-2.1-or-later
"""Profiles and holds: what wins, how a hold ends, and what is kept over a restart."""
import json
import threading
import time
import unittest

import bus
from bus import CONTROLLER, MANAGER, ROOT, failure


class Holds(bus.TestCase):
    drives = ["samsung-980-pro", "crucial-p5-500gb"]

    def setUp(self):
        super().setUp()
        self.start()
        self.signals = self.record("HoldReleased")

    def hold_profile(self, actor, profile):
        cookie = actor.call("HoldProfile", "sss", profile, f"for {profile}", "test")
        self.assertIsInstance(cookie, int)
        return cookie

    def hold_latency(self, actor, microseconds, where=ROOT):
        cookie = actor.call("HoldLatency", "otss", where, microseconds, "a game", "org.example.Game")
        self.assertIsInstance(cookie, int)
        return cookie

    def tolerances(self):
        return [self.tolerance(0), self.tolerance(1)]

    def become(self, *tolerances):
        bus.wait_for(lambda: self.tolerances() == list(tolerances), what=f"{tolerances}, found {self.tolerances()}")

    def test_what_a_hold_looks_like(self):
        actor = self.actor()
        first, second, third = (self.hold_profile(actor, "performance"), self.hold_latency(actor, 4000),
                                self.hold_latency(actor, 3000, self.controller(1)))
        holds = [{str(key): value for key, value in hold.items()} for hold in self.holds()]
        self.assertEqual(holds, [
            {"Cookie": first, "Profile": "performance", "Reason": "for performance", "ApplicationId": "test",
             "Sender": actor.name},
            {"Cookie": second, "MaxWakeLatencyMicroseconds": 4000, "Reason": "a game", "ApplicationId": "org.example.Game",
             "Sender": actor.name},
            {"Cookie": third, "MaxWakeLatencyMicroseconds": 3000, "Controller": "nvme1", "Reason": "a game",
             "ApplicationId": "org.example.Game", "Sender": actor.name}])
        self.assertEqual({str(key): type(value).__name__ for key, value in self.holds()[1].items()},
                         {"Cookie": "UInt32", "MaxWakeLatencyMicroseconds": "UInt64", "Reason": "String",
                          "ApplicationId": "String", "Sender": "String"})

    def test_a_hold_is_in_force_when_the_call_returns_and_ends_with_release(self):
        actor = self.actor()
        changes = self.record("PropertiesChanged")
        cookie = self.hold_profile(actor, "performance")
        self.assertEqual(self.tolerances(), [0, 0])
        self.assertEqual((self.active(), self.base()), ("performance", "balanced"))
        self.assertIsNone(actor.error("Release", "u", cookie))
        self.become(25000, 25000)
        self.assertEqual((self.active(), self.base(), list(self.holds())), ("balanced", "balanced", []))
        bus.wait_for(lambda: self.signals)
        bus.settle(0.5)
        self.assertEqual([(path, int(arguments[0])) for path, _, arguments in self.signals], [(ROOT, cookie)])
        self.assertFalse([v for _, i, v in bus.changes(changes) if i == MANAGER and "BaseProfile" in v])
        self.assertEqual([str(v["ActiveProfile"]) for _, i, v in bus.changes(changes) if i == MANAGER and "ActiveProfile" in v],
                         ["performance", "balanced"])

    def test_a_hold_ends_with_its_sender(self):
        for how in ("close", "kill"):
            actor = self.actor()
            self.hold_profile(actor, "performance")
            self.hold_latency(actor, 10)
            self.become(0, 0)
            before = time.monotonic()
            if how == "kill":
                actor.kill()
            else:
                actor.process.stdin.close()
                actor.process.wait(10)
            bus.wait_for(lambda: self.tolerances() == [25000, 25000] and not self.holds())
            self.assertLess(time.monotonic() - before, 1, how)
        bus.settle(0.5)
        self.assertEqual(len(self.signals), 4)

    def test_the_strictest_latency_wins(self):
        actor, other = self.actor(), self.actor()
        self.hold_latency(actor, 10_000)
        self.become(10_000, 10_000)
        strict = self.hold_latency(other, 2_000)
        self.become(2_000, 2_000)
        self.hold_latency(other, 20_000)
        one = self.hold_latency(actor, 1_000, self.controller(1))
        self.become(2_000, 1_000)
        self.assertIsNone(other.error("Release", "u", strict))
        self.become(10_000, 1_000)
        self.assertEqual(self.active(), "balanced", "a latency is not a profile")
        self.assertIsNone(actor.error("Release", "u", one))
        self.become(10_000, 10_000)
        actor.kill()
        self.become(20_000, 20_000)
        # A hold that asks for more than the profile allows does not loosen it.
        loose = self.actor()
        self.hold_latency(loose, 1_000_000)
        other.kill()
        self.become(25_000, 25_000)

    def test_a_hold_on_one_drive_leaves_the_other_alone(self):
        changes = self.record("PropertiesChanged")
        actor = self.actor()
        self.hold_latency(actor, 1_000, self.controller(1))
        self.become(25_000, 1_000)
        bus.settle(0.5)
        self.assertEqual(bus.changes(changes, self.controller(0)), [])

    def test_of_profiles_power_saver_wins_then_performance_then_the_newest(self):
        actor = self.actor()
        self.manager("SetProfile", "s", "balanced")
        self.configure('[profiles.alpha]\nmax_wake_latency = "3ms"\n[profiles.beta]\nmax_wake_latency = "4ms"\n')
        self.assertIsNone(self.error("Reload"))
        self.hold_profile(actor, "beta")
        self.assertEqual(self.active(), "beta")
        alpha = self.hold_profile(actor, "alpha")
        self.assertEqual(self.active(), "alpha")
        self.assertIsNone(actor.error("Release", "u", alpha))
        self.assertEqual(self.active(), "beta")
        performance = self.hold_profile(actor, "performance")
        self.hold_profile(actor, "alpha")
        self.assertEqual(self.active(), "performance")
        saver = self.hold_profile(actor, "power-saver")
        self.assertEqual(self.active(), "power-saver")
        self.hold_profile(actor, "performance")
        self.assertEqual(self.active(), "power-saver")
        self.assertIsNone(actor.error("Release", "u", saver))
        self.assertEqual(self.active(), "performance")
        self.assertIsNone(actor.error("Release", "u", performance))
        self.assertEqual(self.active(), "performance")
        self.assertEqual(self.base(), "balanced")

    def test_a_latency_counts_under_a_held_profile_too(self):
        actor = self.actor()
        self.hold_profile(actor, "power-saver")
        self.hold_latency(actor, 2_000, self.controller(0))
        bus.wait_for(lambda: self.tolerance(0) == 2_000 and self.tolerance(1) == bus.NO_CONSTRAINT)

    def test_setting_a_profile_releases_no_hold(self):
        actor = self.actor()
        self.hold_profile(actor, "performance")
        self.manager("SetProfile", "s", "power-saver")
        self.assertEqual((self.active(), self.base(), len(self.holds())), ("performance", "power-saver", 1))
        self.assertEqual(self.tolerances(), [0, 0])
        actor.kill()
        self.become(bus.NO_CONSTRAINT, bus.NO_CONSTRAINT)

    def test_somebody_elses_hold(self):
        actor = self.actor()
        cookie = self.hold_profile(actor, "performance")
        self.polkit()
        stranger = self.actor(bus.NOBODY)
        self.assertEqual(stranger.error("Release", "u", cookie), failure("NotAuthorized"))
        self.assertEqual(len(self.holds()), 1)
        self.assertIsNone(self.error("Release", "u", cookie), "root may")

    def test_20_changes_within_200_ms_by_two_clients(self):
        actor = self.actor()
        held = self.hold_latency(actor, 50_000_000)
        changes = self.record()
        clients = [self.actor(), self.actor()]
        names = ["performance", "power-saver"]

        def set_ten(client, profiles):
            for profile in profiles:
                client.begin("SetProfile", "s", profile)
                time.sleep(0.02)
        threads = [threading.Thread(target=set_ten, args=(client, names * 5)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            for _ in range(10):
                self.assertIsNone(client.result())
        last = self.actor()
        self.assertIsNone(last.error("SetProfile", "s", "performance"))
        bus.settle(1.5)
        self.assertEqual((self.base(), self.active()), ("performance", "performance"))
        self.assertEqual(self.tolerances(), [0, 0])
        base = [str(v["BaseProfile"]) for _, i, v in bus.changes(changes) if i == MANAGER and "BaseProfile" in v]
        self.assertEqual(base[-1], "performance")
        self.assertLessEqual(len(base), 21)
        for number in range(2):
            said = [int(v["LatencyToleranceMicroseconds"]) for path, i, v in bus.changes(changes, self.controller(number))
                    if "LatencyToleranceMicroseconds" in v]
            self.assertEqual(said[-1], 0)
        self.assertEqual([int(hold["Cookie"]) for hold in self.holds()], [held])
        self.assertFalse([m for _, m, _ in changes if m == "HoldReleased"])


class Restart(bus.TestCase):
    def saved(self):
        return json.loads((self.state / "profile.json").read_text())

    def again(self):
        self.daemon.kill()
        bus.wait_for(lambda: not self.connection.name_has_owner(bus.NAME))
        return self.start()

    def test_a_held_profile_does_not_become_the_base_profile(self):
        self.start()
        self.manager("SetProfile", "s", "balanced")
        self.manager("HoldProfile", "sss", "performance", "", "")
        self.assertEqual(self.active(), "performance")
        bus.settle(0.5)
        self.again()
        self.assertEqual((self.active(), self.base(), list(self.holds())), ("balanced", "balanced", []))
        self.assertEqual(self.tolerance(), 25_000)
        self.assertIn("balanced", json.dumps(self.saved()))

    def test_a_profile_is_kept(self):
        self.start()
        self.manager("SetProfile", "s", "power-saver")
        bus.wait_for(lambda: (self.state / "profile.json").exists())
        self.assertIn("power-saver", json.dumps(self.saved()))
        self.again()
        self.assertEqual((self.active(), self.base(), self.tolerance()), ("power-saver", "power-saver", bus.NO_CONSTRAINT))
        self.daemon.stop()
        bus.wait_for(lambda: not self.connection.name_has_owner(bus.NAME))
        self.start()
        self.assertEqual(self.base(), "power-saver")
        self.assertEqual([path.name for path in self.state.glob("profile*")], ["profile.json"], "nothing is left beside it")

    def test_the_last_of_many_is_kept(self):
        self.start()
        for profile in ["performance", "power-saver"] * 5 + ["performance"]:
            self.manager("SetProfile", "s", profile)
        bus.wait_for(lambda: "performance" in json.dumps(self.saved()))
        bus.settle(0.5)
        self.again()
        self.assertEqual(self.base(), "performance")

    def test_a_profile_set_before_a_stop_in_order_is_kept(self):
        self.start()
        self.manager("SetProfile", "s", "performance")
        self.daemon.stop()
        bus.wait_for(lambda: not self.connection.name_has_owner(bus.NAME))
        self.start()
        self.assertEqual(self.base(), "performance")

    def test_a_damaged_file_is_ignored_and_named(self):
        for damage in (b"", b"{", b"[]", b"null", b'{"schema":1}', b'{"schema":1,"profile":5}', b'{"profile":"\xff"}', b"\0" * 100,
                       b'{"schema":99,"profile":"performance"}', b"[" * 100_000, b'{"schema":1,"profile":"' + b"x" * 5000 + b'"}'):
            with self.subTest(damage[:40]):
                (self.state / "profile.json").write_bytes(damage)
                self.start()
                self.assertEqual(self.base(), "balanced")
                self.assertIn("profile.json", self.daemon.log())
                self.assertIsNone(self.error("SetProfile", "s", "balanced"))
                self.daemon.kill()
                bus.wait_for(lambda: not self.connection.name_has_owner(bus.NAME))

    def test_a_directory_in_its_place(self):
        (self.state / "profile.json").mkdir()
        self.start()
        self.assertEqual(self.base(), "balanced")
        self.assertIsNone(self.error("SetProfile", "s", "performance"))
        self.assertEqual(self.base(), "performance")
        bus.wait_for(lambda: "profile.json" in self.daemon.log())

    def test_a_profile_that_the_configuration_no_longer_has(self):
        self.configure('[profiles.mine]\nmax_wake_latency = "3ms"\n')
        self.start()
        self.manager("SetProfile", "s", "mine")
        self.assertEqual(self.tolerance(), 3_000)
        bus.wait_for(lambda: (self.state / "profile.json").exists())
        bus.settle(0.3)
        self.configure("")
        self.again()
        self.assertEqual(self.base(), "balanced")
        self.assertIn("mine", self.daemon.log())

    def test_a_reload_that_takes_away_the_profiles_in_use(self):
        self.configure('[profiles.mine]\nmax_wake_latency = "3ms"\n')
        self.start()
        self.manager("SetProfile", "s", "mine")
        self.manager("HoldProfile", "sss", "mine", "", "")
        self.configure("")
        self.error("Reload")
        bus.settle(0.5)
        self.assertTrue(self.daemon.running(), self.daemon.log())
        self.assertIn(self.active(), [str(p["Profile"]) for p in self.property("Profiles")])
        self.assertIn(self.base(), [str(p["Profile"]) for p in self.property("Profiles")])
        self.assertEqual(self.property("LastError", self.controller(), CONTROLLER), "")


if __name__ == "__main__":
    unittest.main()
