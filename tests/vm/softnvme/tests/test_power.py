# SPDX-License-Identifier: LGPL-2.1-or-later
"""The power model: what a drive file becomes in Identify Controller, and the walk through the table."""
import json
import os
import random
import struct
import subprocess
import unittest

from softnvme.identify import controller_page
from softnvme.power import PowerState, Sleep, entries_of
from softnvme.protocol import READ
from softnvme.scenario import Drive

VM = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DRIVES = os.path.join(os.path.dirname(VM), "drives")


def descriptor(**facts):
    raw = PowerState(facts, 1.0).descriptor()
    power, flags, entry, exit_latency, idle, idle_scale, active, active_scale = struct.unpack("<HxBII4xHBxHB9x", raw)
    return {"max_power_w": power * (0.0001 if flags & 1 else 0.01), "operational": not flags & 2, "entry_latency_us": entry,
            "exit_latency_us": exit_latency, "idle": (idle, idle_scale >> 6), "active": (active, active_scale >> 6)}


class Descriptor(unittest.TestCase):
    def test_power_is_exact_in_the_unit_that_holds_it(self):
        for watts in (0, 0.0001, 0.0025, 0.007, 0.08, 1, 6.5535, 8.37, 25, 50, 655.35):
            with self.subTest(watts=watts):
                self.assertAlmostEqual(descriptor(max_power_w=watts)["max_power_w"], watts, places=6)

    def test_unreported_idle_power_is_not_zero_with_a_scale(self):
        self.assertEqual(descriptor(idle_power_w=None)["idle"], (0, 0))
        self.assertEqual(descriptor(idle_power_w=0.0)["idle"], (0, 2))
        self.assertEqual(descriptor(idle_power_w=0.0035)["idle"], (35, 1))
        self.assertEqual(descriptor(active_power_w=5.5)["active"], (550, 2))

    def test_latencies_have_32_bits(self):
        found = descriptor(entry_latency_us=2**32 - 1, exit_latency_us=2**32 - 1)
        self.assertEqual((found["entry_latency_us"], found["exit_latency_us"]), (2**32 - 1, 2**32 - 1))

    def test_every_drive_file_comes_back(self):
        for name in sorted(os.listdir(DRIVES)):
            if not name.endswith(".json"):
                continue
            with self.subTest(name=name):
                path = os.path.join(DRIVES, name)
                scenario = subprocess.run([VM + "/scenario-from-drives", path], capture_output=True, text=True, check=True)
                page = controller_page(Drive(json.loads(scenario.stdout)["subsystems"][0], 0), 1)
                with open(path, encoding="utf-8") as file:
                    drive = json.load(file)
                self.assertEqual(page[263], drive["npss"])
                for i, state in enumerate(drive["power_states"]):
                    power, flags, entry, exit_latency = struct.unpack_from("<HxBII", page, 2048 + 32 * i)
                    self.assertAlmostEqual(power * (0.0001 if flags & 1 else 0.01), state["max_power_w"] or 0, places=6)
                    self.assertEqual(not flags & 2, state["operational"])
                    self.assertEqual((entry, exit_latency), (state["entry_latency_us"] or 0, state["exit_latency_us"] or 0))


class Walk(unittest.TestCase):
    """0..2 -> 3 after 100 ms, 3 -> 4 after 2000 ms; PS3 1000 + 4000 us, PS4 2000 + 40000 us, exactly."""

    def setUp(self):
        self.now = 0.0
        states = [PowerState({"max_power_w": 5}, 1.0)] * 3 + [
            PowerState({"operational": False, "entry_latency_us": 1000, "exit_latency_us": 4000}, 1.0),
            PowerState({"operational": False, "entry_latency_us": 2000, "exit_latency_us": 40000}, 1.0)]
        self.sleep = Sleep(states, random.Random(1), wake_jitter=0, clock=lambda: self.now)
        self.table = struct.pack("<4Q", 0x6418, 0x6418, 0x6418, 0x7d020)
        self.sleep.program(True, self.table)

    def state_after(self, seconds):
        self.now += seconds
        return self.sleep.current()

    def test_descends_step_by_step(self):
        self.assertEqual([self.state_after(0.099), self.state_after(0.002), self.state_after(1.9), self.state_after(0.2)],
                         [0, 3, 3, 4])

    def test_without_apste_stays_awake(self):
        self.sleep.program(False, self.table)
        self.assertEqual(self.state_after(10), 0)

    def test_a_read_waits_for_the_exit(self):
        self.assertEqual(self.state_after(1), 3)
        self.assertAlmostEqual(self.sleep.io_start(self.now, READ) - self.now, 0.004)
        self.assertEqual(self.sleep.wake_log[-1]["state"], 3)

    def test_a_read_during_entry_waits_for_both(self):
        self.now = 0.1005
        self.assertAlmostEqual(self.sleep.io_start(self.now, READ) - self.now, 0.0005 + 0.004)

    def test_an_outstanding_command_keeps_it_awake(self):
        self.sleep.io_start(self.now, READ)
        self.assertEqual(self.state_after(5), 0)
        self.sleep.io_end(self.now)
        self.assertEqual([self.state_after(0.09), self.state_after(0.02)], [0, 3])

    def test_residency_adds_up(self):
        self.state_after(10)
        self.assertAlmostEqual(sum(self.sleep.residency), 10)

    def test_entries_as_in_a_drive_file(self):
        self.assertEqual(entries_of(self.sleep.table)[3],
                         {"state": 3, "target_state": 4, "idle_ms": 2000, "raw": "0x000000000007d020"})


if __name__ == "__main__":
    unittest.main()
