# SPDX-License-Identifier: LGPL-2.1-or-later
"""What callers may get wrong, out of carelessness or on purpose: every limit from both sides, and floods."""
import time
import unittest

import bus
from bus import MANAGER, NOBODY, PROPERTIES, ROOT, failure

INVALID, NO_PROFILE, NO_CONTROLLER, NO_HOLD = (
    failure(name) for name in ("InvalidArgument", "NoSuchProfile", "NoSuchController", "NoSuchHold"))
LARGEST = 2**31 - 2


class Arguments(bus.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def hold(self, controller, microseconds, reason="reason", application="test"):
        return self.error("HoldLatency", "otss", controller, microseconds, reason, application)

    def tearDown(self):
        self.assertTrue(self.daemon.running(), self.daemon.log())
        self.assertLess(len(self.daemon.log()), 100_000, "whatever callers send does not fill the log")
        super().tearDown()

    def test_names_of_profiles(self):
        for name in ("", "Balanced", "balanced ", "nosuch", "x" * 32, "x" * 33, "x" * 4096, "../../etc/passwd", "a\nb", "a\x1b[31m",
                     "ä", "%s%n"):
            with self.subTest(name[:40]):
                self.assertIn(self.error("SetProfile", "s", name), (NO_PROFILE, INVALID))
                self.assertIn(self.error("HoldProfile", "sss", name, "reason", "test"), (NO_PROFILE, INVALID))
                self.assertLess(len(self.message), 1000)
                self.assertNotRegex(self.message, "[\x00-\x1f]")
        self.assertEqual(self.error("SetProfile", "s", "nosuch"), NO_PROFILE)
        self.assertEqual((self.base(), list(self.holds())), ("balanced", []))

    def test_controllers_that_are_not_there(self):
        for path in ("/", "/org", "/org/nvmepolicy1/controller", "/org/nvmepolicy1/controller/nvme1", "/org/nvmepolicy1/subsystem/nvme_subsys0",
                     "/org/nvmepolicy1/controller/nvme0/x", "/org/nvmepolicy1/controller/" + "x" * 1000, "/org/nvmepolicy1x"):
            with self.subTest(path[:60]):
                self.assertEqual(self.hold(path, 1000), NO_CONTROLLER)
                self.assertEqual(self.error("ClearBreaker", "o", path), NO_CONTROLLER)
                self.assertLess(len(self.message), 1000)
        self.assertEqual(self.error("ClearBreaker", "o", ROOT), NO_CONTROLLER)
        self.assertEqual(list(self.holds()), [])

    def test_latencies(self):
        for microseconds in (LARGEST + 1, LARGEST + 2, 2**32, 2**63, 2**64 - 1):
            self.assertEqual(self.hold(ROOT, microseconds), INVALID, microseconds)
        self.assertEqual(list(self.holds()), [])
        for microseconds in (LARGEST, 24_999, 1, 0):
            self.assertIsNone(self.hold(ROOT, microseconds), microseconds)
        self.assertEqual([int(h["MaxWakeLatencyMicroseconds"]) for h in self.holds()], [LARGEST, 24_999, 1, 0])
        bus.wait_for(lambda: self.tolerance() == 0)

    def test_texts(self):
        for reason, application, error in (("x" * 512, "y" * 256, None), ("x" * 513, "", INVALID), ("", "y" * 257, INVALID),
                                           ("", "", None), ("ä" * 256, "", None), ("ä" * 257, "", INVALID)):
            self.assertEqual(self.hold(ROOT, 5000, reason, application), error, f"{len(reason)} {len(application)}")
            self.assertEqual(self.error("HoldProfile", "sss", "balanced", reason, application), error)
        held = [(str(h["Reason"]), str(h["ApplicationId"])) for h in self.holds()]
        self.assertIn(("x" * 512, "y" * 256), held)

    def test_control_characters_do_not_reach_the_log(self):
        text = "line\nnext\x1b[31m\r\x07"
        self.hold(ROOT, 5000, text, text)
        self.error("HoldProfile", "sss", "performance", text, text)
        bus.settle(0.5)
        self.assertNotIn("\x1b", self.daemon.log())
        self.assertNotIn("\nnext", self.daemon.log())

    def test_a_megabyte(self):
        actor = self.actor()
        megabyte = {"repeat": ["x", 1 << 20]}
        before = self.daemon.memory_kb("Rss")
        for _ in range(20):
            self.assertIn(actor.error("SetProfile", "s", megabyte), (NO_PROFILE, INVALID))
            self.assertEqual(actor.error("HoldProfile", "sss", "performance", megabyte, ""), INVALID)
            self.assertEqual(actor.error("HoldLatency", "otss", ROOT, 5000, "", megabyte), INVALID)
        answer = actor.call("SetProfile", "s", megabyte)
        self.assertLess(len(answer[1]), 1000)
        after = self.daemon.memory_kb("Rss")
        print(f"RSS after 60 calls with a megabyte: {before} -> {after} kB")
        self.assertLess(after - before, 8192)

    def test_wrong_types_and_members(self):
        for member, signature, arguments in (("SetProfile", "u", [1]), ("SetProfile", "", []), ("SetProfile", "ss", ["a", "b"]),
                                             ("Release", "s", ["1"]), ("HoldLatency", "stss", [ROOT, 1, "", ""])):
            self.assertIn(self.error(member, signature, *arguments), ("org.freedesktop.DBus.Error.InvalidArgs",
                                                                      "org.freedesktop.DBus.Error.UnknownMethod"), member)
        self.assertEqual(self.error("NoSuchMember"), "org.freedesktop.DBus.Error.UnknownMethod")
        self.assertEqual(self.error("Describe", path="/org/nvmepolicy1/nowhere"), "org.freedesktop.DBus.Error.UnknownObject")

    def test_cookies(self):
        for cookie in (0, 1, 12345, 2**32 - 1):
            self.assertEqual(self.error("Release", "u", cookie), NO_HOLD)
        cookie = int(self.manager("HoldProfile", "sss", "performance", "", ""))
        self.assertNotEqual(cookie, 0)
        self.assertIsNone(self.error("Release", "u", cookie))
        self.assertEqual(self.error("Release", "u", cookie), NO_HOLD)
        again = int(self.manager("HoldProfile", "sss", "performance", "", ""))
        self.assertNotEqual(again, cookie, "a cookie that somebody may still have is not given to somebody else")

    def test_64_holds_a_sender_and_1024_in_all(self):
        actors = [self.actor() for _ in range(17)]
        for actor in actors[:16]:
            for number in range(64):
                self.assertIsInstance(actor.call("HoldLatency", "otss", ROOT, 10_000, "", ""), int, number)
            if actor is actors[0]:
                self.assertEqual(actor.error("HoldProfile", "sss", "balanced", "", ""), failure("Failed"))
        self.assertEqual(len(self.holds()), 1024)
        self.assertEqual(actors[16].error("HoldLatency", "otss", ROOT, 1, "", ""), failure("Failed"))
        before = time.monotonic()
        self.assertEqual(self.tolerance(), 10_000)
        self.assertLess(time.monotonic() - before, 1)
        for actor in actors[:16]:
            actor.kill()
        bus.wait_for(lambda: not self.holds(), what="nobody holds anything")
        bus.wait_for(lambda: self.tolerance() == 25_000)
        self.assertIsInstance(actors[16].call("HoldLatency", "otss", ROOT, 1, "", ""), int)


class Floods(bus.TestCase):
    # As on Debian's system bus, where the bus itself has no small limit of what waits for a client.
    drives = ["samsung-980-pro", "crucial-p5-500gb", "intel-660p-1tb", "wd-black-sn750"]

    def setUp(self):
        super().setUp()
        self.start()

    def served(self, reader, times=5):
        for _ in range(times):
            before = time.monotonic()
            self.assertEqual(reader.call("Get", "ss", MANAGER, "Simulated", interface=PROPERTIES), True)
            self.assertLess(time.monotonic() - before, 1, "another client is served within a second")

    def flood(self, uid, count, member, interface=MANAGER, signature="", arguments=()):
        flooder, reader = self.actor(uid), self.actor(NOBODY)
        before = self.daemon.memory_kb("Rss")
        worst = before
        for _ in range(3):
            flooder.send("flood", count=count, to=bus.NAME, path=ROOT, interface=interface, member=member, signature=signature,
                         arguments=list(arguments))
            self.served(reader)
            sent = flooder.result()
            self.served(reader)
            worst = max(worst, self.daemon.memory_kb("Rss"))
        bus.settle(1)
        self.served(reader)
        print(f"{member}: 3 × {sent} calls without reading a reply: RSS {before} -> {worst} kB")
        self.assertTrue(self.daemon.running(), self.daemon.log())
        self.assertLess(worst - before, 32 * 1024)
        self.assertLess(len(self.daemon.log()), 200_000)

    def test_reading(self):
        self.flood(NOBODY, 3000, "GetManagedObjects", bus.OBJECT_MANAGER)

    def test_describe(self):
        self.flood(NOBODY, 3000, "Describe")

    def test_plan_looks_at_the_drives(self):
        self.flood(NOBODY, 3000, "Plan")

    def test_refused_changes(self):
        self.flood(NOBODY, 3000, "SetProfile", signature="s", arguments=["performance"])
        self.assertEqual(self.base(), "balanced")

    def test_changes_by_root(self):
        self.flood(0, 3000, "SetProfile", signature="s", arguments=["performance"])

    def test_reconcile_by_root(self):
        self.flood(0, 3000, "Reconcile")

    def test_while_polkit_hangs(self):
        polkit = self.polkit()
        polkit.do("SimulateHang", "b", True)
        self.flood(NOBODY, 3000, "SetProfile", signature="s", arguments=["performance"])
        self.assertIsNone(self.error("SetProfile", "s", "power-saver"))


if __name__ == "__main__":
    unittest.main()
