# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may: every method, called by root and by nobody, with polkit absent, saying no, saying yes, vanishing and hanging."""
import time
import unittest
import xml.etree.ElementTree as xml

import bus
from bus import CONTROLLER, MANAGER, NOBODY, OBJECT_MANAGER, PROPERTIES, ROOT, SOURCE, failure

# Every method that changes something: what it is called with, and what polkit is asked for.
CHANGING = {
    "SetProfile": ("s", ["performance"], "set-profile"),
    "HoldProfile": ("sss", ["performance", "reason", "application"], "hold"),
    "HoldLatency": ("otss", [f"{ROOT}/controller/nvme0", 1000, "reason", "application"], "hold"),
    "Release": ("u", [1], "manage"),
    "Reconcile": ("", [], "manage"),
    "Reload": ("", [], "manage"),
    "ClearBreaker": ("o", [f"{ROOT}/controller/nvme0"], "manage"),
}
READING = {"Plan", "Describe"}
NOT_AUTHORIZED = failure("NotAuthorized")


class Authorization(bus.TestCase):
    def setUp(self):
        super().setUp()
        self.start()
        # Somebody's hold, to be released by others.
        self.cookie = int(self.manager("HoldLatency", "otss", ROOT, 5000, "root's", "test"))
        CHANGING["Release"] = ("u", [self.cookie], "manage")
        bus.wait_for(lambda: self.tolerance() == 5000)

    def refused_all(self, actor, but=()):
        for member, (signature, arguments, _) in CHANGING.items():
            if member not in but:
                self.assertEqual(actor.error(member, signature, *arguments), NOT_AUTHORIZED, member)
        self.assertEqual(self.base(), "balanced")
        self.assertEqual([int(hold["Cookie"]) for hold in self.holds()], [self.cookie])
        self.assertEqual(self.tolerance(), 5000)

    def reads_all(self, actor):
        for member in READING:
            self.assertIsNone(actor.error(member), member)
        self.assertIsNone(actor.error("Describe", interface=CONTROLLER, path=self.controller()))
        self.assertEqual(actor.call("Get", "ss", MANAGER, "ActiveProfile", interface=PROPERTIES), "balanced")
        self.assertIsNone(actor.error("GetAll", "s", CONTROLLER, interface=PROPERTIES, path=self.controller()))
        self.assertIsNone(actor.error("GetManagedObjects", interface=OBJECT_MANAGER))
        self.assertIsNone(actor.error("Introspect", interface="org.freedesktop.DBus.Introspectable"))

    def test_the_list_above_is_complete(self):
        interface = xml.parse(SOURCE / "dbus/org.nvmepolicy1.Manager.xml").getroot().find("interface")
        self.assertEqual({m.get("name") for m in interface.findall("method")}, set(CHANGING) | READING)

    def test_without_polkit(self):
        nobody = self.actor(NOBODY)
        self.reads_all(nobody)
        self.refused_all(nobody)
        for member in ("SetProfile", "HoldProfile", "Reconcile", "Reload", "Release"):
            signature, arguments, _ = CHANGING[member]
            self.assertIsNone(self.error(member, signature, *arguments), f"root: {member}")

    def test_polkit_says_no(self):
        self.polkit()
        nobody = self.actor(NOBODY)
        self.reads_all(nobody)
        self.refused_all(nobody)
        self.assertIsNone(self.error("SetProfile", "s", "performance"))

    def test_polkit_says_yes_to_one_action_and_to_no_other(self):
        polkit = self.polkit()
        nobody = self.actor(NOBODY)
        for action in ("set-profile", "hold", "manage"):
            polkit.do("SetAllowed", "as", [f"org.nvmepolicy1.{action}"])
            self.refused_all(nobody, but=[m for m, (_, _, asked) in CHANGING.items() if asked == action])

    def test_polkit_says_yes(self):
        self.polkit(["org.nvmepolicy1.set-profile", "org.nvmepolicy1.hold", "org.nvmepolicy1.manage"])
        nobody = self.actor(NOBODY)
        self.assertIsNone(nobody.error("SetProfile", "s", "power-saver"))
        self.assertEqual(self.base(), "power-saver")
        held = nobody.call("HoldProfile", "sss", "performance", "reason", "application")
        self.assertIsInstance(held, int)
        self.assertEqual(str(self.holds()[-1]["Sender"]), nobody.name)
        latency = nobody.call("HoldLatency", "otss", self.controller(), 1000, "reason", "application")
        self.assertIsInstance(latency, int)
        for member in ("Reconcile", "Reload"):
            self.assertIsNone(nobody.error(member), member)
        self.assertEqual(nobody.error("ClearBreaker", "o", self.controller()), failure("Failed"))
        self.assertIsNone(nobody.error("Release", "u", self.cookie))
        self.assertEqual([int(hold["Cookie"]) for hold in self.holds()], [held, latency])

    def test_ones_own_hold_is_released_without_asking(self):
        polkit = self.polkit(["org.nvmepolicy1.hold"])
        nobody = self.actor(NOBODY)
        held = nobody.call("HoldProfile", "sss", "performance", "reason", "application")
        polkit.kill()
        self.assertIsNone(nobody.error("Release", "u", held))
        self.assertEqual(nobody.error("Release", "u", self.cookie), NOT_AUTHORIZED)

    def test_what_polkit_is_asked(self):
        self.polkit(["org.nvmepolicy1.hold"])
        nobody = self.actor(NOBODY)
        self.assertIsInstance(nobody.call("HoldProfile", "sss", "performance", "reason", "application"), int)
        asked = [line for line in self.directory.joinpath("polkitd.log").read_text().splitlines() if "CheckAuth" in line]
        if asked:  # dbusmock 0.28 writes no log of methods in templates
            self.assertIn(nobody.name, asked[0])

    def test_polkit_vanishes_in_the_middle(self):
        polkit = self.polkit(["org.nvmepolicy1.set-profile"])
        polkit.do("SimulateHang", "b", True)
        nobody = self.actor(NOBODY)
        nobody.begin("SetProfile", "s", "performance")
        bus.wait_for(lambda: polkit.do("HaveHangingCalls", ""))
        polkit.kill()
        answer = nobody.result(5)
        self.assertEqual(answer[0], NOT_AUTHORIZED)
        self.assertEqual(self.base(), "balanced")

    def test_polkit_answers_nonsense(self):
        """Any other answer than a yes is a no, and nobody waits for it."""
        for signature, answer in (("b", "True"), ("", ""), ("s", "'yes'"), ("(bba{sv})", "(True, False, {})"), ("u", "1")):
            with self.subTest(signature):
                mock = bus.Process([bus.PYTHON, "-m", "dbusmock", "--system", bus.PLAYED[0], *bus.MOCKED["polkitd"]],
                                   self.directory / "nonsense.log", env={"DBUS_SYSTEM_BUS_ADDRESS": self.bus.address})
                self.addCleanup(mock.stop)
                bus.wait_for(lambda: self.connection.name_has_owner(bus.PLAYED[0]))
                bus.wait_for(lambda: "Mock" in self.answer_or_nothing(bus.PLAYED[0], bus.MOCKED["polkitd"][0]))
                self.connection.call_blocking(
                    bus.PLAYED[0], bus.MOCKED["polkitd"][0], bus.MOCK, "AddMethod", "sssss",
                    (bus.MOCKED["polkitd"][1], "CheckAuthorization", "(sa{sv})sa{ss}us", signature, f"ret = {answer}" if answer else ""))
                nobody = self.actor(NOBODY)
                nobody.begin("SetProfile", "s", "performance")
                self.assertEqual(nobody.result(10)[0], NOT_AUTHORIZED)
                self.assertEqual(self.base(), "balanced")
                mock.kill()
                bus.wait_for(lambda: not self.connection.name_has_owner(bus.PLAYED[0]))

    def test_polkit_hangs_and_others_are_served(self):
        polkit = self.polkit(["org.nvmepolicy1.set-profile"])
        polkit.do("SimulateHang", "b", True)
        nobody, reader = self.actor(NOBODY), self.actor(NOBODY)
        nobody.begin("SetProfile", "s", "performance")
        bus.wait_for(lambda: polkit.do("HaveHangingCalls", ""))
        for _ in range(10):
            before = time.monotonic()
            self.assertEqual(reader.call("Get", "ss", MANAGER, "BaseProfile", interface=PROPERTIES), "balanced")
            self.assertLess(time.monotonic() - before, 1)
        before = time.monotonic()
        self.assertIsNone(self.error("SetProfile", "s", "power-saver"))
        self.assertLess(time.monotonic() - before, 3)
        polkit.do("ReleaseHangingCalls", "")
        self.assertIsNone(nobody.result(5))
        self.assertEqual(self.base(), "performance")

    def test_whoever_leaves_while_polkit_thinks_holds_nothing(self):
        polkit = self.polkit(["org.nvmepolicy1.hold"])
        polkit.do("SimulateHang", "b", True)
        nobody = self.actor(NOBODY)
        nobody.begin("HoldProfile", "sss", "performance", "reason", "application")
        bus.wait_for(lambda: polkit.do("HaveHangingCalls", ""))
        nobody.kill()
        bus.wait_for(lambda: not self.connection.name_has_owner(nobody.name))
        polkit.do("ReleaseHangingCalls", "")
        bus.settle(1)
        self.assertEqual([int(hold["Cookie"]) for hold in self.holds()], [self.cookie])
        self.assertEqual(self.active(), "balanced")

    def test_nobody_may_not_have_the_name_or_play_the_service(self):
        nobody = self.actor(NOBODY)
        nobody.send("own", name="org.nvmepolicy1")
        self.assertEqual(nobody.result()[0], "org.freedesktop.DBus.Error.AccessDenied")


if __name__ == "__main__":
    unittest.main()
