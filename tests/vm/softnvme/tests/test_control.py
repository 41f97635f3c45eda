# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control channel: what it changes of a drive."""
import struct
import unittest

from softnvme import control
from softnvme.controller import Controller
from softnvme.identify import controller_page
from softnvme.server import Server

NQN = "nqn.2026-11.org.nvmepolicyd.test:"
SHALLOW = [{"max_power_w": 5}, {"max_power_w": 1, "operational": False, "entry_latency_us": 1000, "exit_latency_us": 4000}]
DEEP = SHALLOW + [{"max_power_w": 0.01, "operational": False, "entry_latency_us": 2000, "exit_latency_us": 40000}]


class Firmware(unittest.TestCase):
    def setUp(self):
        self.server = Server({"subsystems": [
            {"nqn": NQN + "shallow", "firmware": "1.0", "apsta": 1, "power_states": SHALLOW, "port": 0},
            {"nqn": NQN + "deep", "firmware": "7.0", "apsta": 1, "power_states": DEEP, "port": 0}]})
        self.addCleanup(lambda: [listener.close() for listener in self.server.listeners])
        self.drive, self.other = self.server.drives

    def do(self, **command):
        return control.do(self.server, {"do": "firmware", "drive": "shallow", **command})

    def page(self):
        """Firmware revision, NPSS, APSTA, exit latency of the last state."""
        page = controller_page(self.drive, 1)
        return page[64:72].decode().strip(), page[263], page[265], struct.unpack_from("<I", page, 2048 + 32 * page[263] + 8)[0]

    def connect(self):
        self.drive.controller = Controller(self.server, self.drive, 1, "host", 0)
        return self.drive.controller

    def test_what_is_left_out_stays(self):
        self.assertTrue(self.do(firmware="2.0")["ok"])
        self.assertEqual(self.page(), ("2.0", 1, 1, 4000))
        self.assertTrue(self.do(like="deep")["ok"])
        self.assertEqual(self.page(), ("2.0", 2, 1, 40000))
        self.assertTrue(self.do(apsta=0)["ok"])
        self.assertEqual(self.page(), ("2.0", 2, 0, 40000))

    def test_the_drive_that_it_is_made_like_stays_as_it_is(self):
        self.do(like="deep", firmware="2.0", apsta=0)
        self.assertEqual((self.other.firmware, self.other.apsta, len(self.other.states)), ("7.0", 1, 3))

    def test_it_sleeps_by_it_from_the_next_reset_on(self):
        before = self.connect()
        self.do(like="deep")
        self.assertEqual(len(before.sleep.states), 2)
        after = self.connect()
        self.assertEqual((len(after.sleep.states), len(after.sleep.residency)), (3, 3))
        after.sleep.select(2)
        self.assertEqual(after.sleep.current(), 2)

    def test_an_unknown_drive_is_refused(self):
        self.assertFalse(self.do(like="nobody")["ok"])
        self.assertEqual(self.page(), ("1.0", 1, 1, 4000))


class Release(unittest.TestCase):
    def setUp(self):
        self.server = Server({"subsystems": [{"nqn": NQN + "drive", "port": 0}]})
        self.addCleanup(lambda: [listener.close() for listener in self.server.listeners])
        self.ran = []

    def test_what_hangs_is_executed_now_and_not_again_in_time(self):
        self.server.hang(0.001, lambda: self.ran.append("late"))
        self.assertEqual(self.ran, [])
        self.assertTrue(control.do(self.server, {"do": "release"})["ok"])
        self.assertEqual(self.ran, ["late"])
        for _, _, action in self.server.timers:
            action()
        self.assertEqual(self.ran, ["late"])

    def test_without_it_time_does(self):
        self.server.hang(0, lambda: self.ran.append("in time"))
        self.assertEqual(self.ran, ["in time"])
        self.assertEqual(self.server.hanging, [])


if __name__ == "__main__":
    unittest.main()
