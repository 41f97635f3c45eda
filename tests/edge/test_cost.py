# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the service costs on the bus: no wake-ups when nothing happens, and no quadratic surprise with 1,000 controllers."""
import shutil
import time
import unittest

import bus
from bus import SOURCE

IDLE_S = 20


class Idle(bus.TestCase):
    drives = ["crucial-p5-500gb", "kioxia-kbg40-256gb", "samsung-990-evo-plus-4tb", "wd-black-sn750"]

    def idle(self, what):
        bus.settle(3)
        before, tasks = self.daemon.switches(), len(self.daemon.tasks())
        time.sleep(IDLE_S)
        switches = self.daemon.switches() - before
        print(f"{what}: {switches} voluntary context switches in {IDLE_S} s, {tasks} threads; PSS {self.daemon.memory_kb()} kB, "
              f"of it anonymous {self.daemon.memory_kb('Pss_Anon')} kB")
        self.assertEqual(switches, 0)

    def test_with_the_bus(self):
        self.start()
        self.idle("connected")

    def test_with_holds_and_following(self):
        self.configure('[daemon]\nfollow = "power-profiles-daemon"\n')
        self.mock("power_profiles_daemon", {"ActiveProfile": "performance"})
        self.mock("logind")
        self.start()
        actor = self.actor()
        for number in range(32):
            actor.call("HoldLatency", "otss", bus.ROOT, 10_000 + number, "", "")
            actor.call("HoldProfile", "sss", "power-saver", "", "")
        self.idle("64 holds, following")


class Many(bus.TestCase):
    drives = []
    count = 1000

    def test_1000_controllers(self):
        source = SOURCE / "tests/drives/samsung-980-pro.json"
        for number in range(self.count):
            shutil.copy(source, self.drive_directory / f"{number:04}.json")
        self.start(looked=False)
        bus.wait_for(lambda: len(self.controllers()) == self.count, 60)
        bus.wait_for(self.looked_at, 60)
        bus.settle(1)
        took = []
        for _ in range(10):
            before = time.monotonic()
            message = self.objects()
            took.append((time.monotonic() - before) * 1000)
        print(f"GetManagedObjects of {len(message)} objects, read by libdbus and Python: fastest {min(took):.0f} ms; "
              f"PSS {self.daemon.memory_kb()} kB")
        before = time.monotonic()
        self.manager("SetProfile", "s", "performance")
        bus.wait_for(lambda: all(i[bus.CONTROLLER]["LatencyToleranceMicroseconds"] == 0
                                 for i in self.objects().values() if bus.CONTROLLER in i), 60)
        print(f"SetProfile with {self.count} controllers, until all say so: {(time.monotonic() - before) * 1000:.0f} ms")


if __name__ == "__main__":
    unittest.main()
