# SPDX-License-Identifier: LGPL-2.1-or-later
"""The write cache: feature 06h with Save and Select, and which blocks survive a loss of power."""
import struct
import unittest

from softnvme import control
from softnvme.controller import Controller
from softnvme.identify import controller_page, identify, log_page, namespace_page
from softnvme.protocol import (CAPABILITIES, CURRENT, DEFAULT, DNR, FEATURE_WRITE_CACHE as CACHE, FLUSH, FUA, GET_FEATURES,
                               INVALID_FIELD, NOT_CHANGEABLE, NOT_SAVEABLE, OK, SAVE, SAVED, SET_FEATURES, WRITE)
from softnvme.server import Server

NQN = "nqn.2026-11.org.nvmepolicyd.test:"
ONE, TWO = b"\1" * 512, b"\2" * 512


class Queue:
    """Keeps the answers."""
    dead = False

    def __init__(self):
        self.answers = []

    def respond(self, _cid, status=0, result=0):
        self.answers.append((status, result))


def command(opcode, nsid=0, cdw10=0, cdw11=0, cdw12=0):
    return struct.pack("<BBHI32x4I", opcode, 0, 0, nsid, cdw10, cdw11, cdw12, 0).ljust(64, b"\0")


class Drives(unittest.TestCase):
    FACTS = [{"vwc": 5, "wce": 0}]

    def setUp(self):
        self.server = Server({"subsystems": [{"nqn": NQN + "drive", "port": 0, **facts} for facts in self.FACTS]})
        self.addCleanup(lambda: [listener.close() for listener in self.server.listeners])
        self.queue = Queue()
        self.reset()

    def reset(self):
        for number, drive in enumerate(self.server.drives):
            drive.controller = Controller(self.server, drive, 1 + number, "host", 0)
            drive.until_reset = {}
        self.drive, self.controller = self.server.drives[0], self.server.drives[0].controller
        self.namespace = self.drive.namespaces[1]

    def admin(self, *arguments, **more):
        self.controller.admin(self.queue, command(*arguments, **more), 0, b"")
        return self.queue.answers.pop() if self.queue.answers else None

    def io(self, *arguments, data=b"", controller=None):
        (controller or self.controller).io(self.queue, command(*arguments), 0, data)
        return self.queue.answers.pop() if self.queue.answers else None

    def write(self, block, data, flags=0, controller=None):
        self.assertEqual(self.io(WRITE, 1, block, 0, flags | len(data) // 512 - 1, data=data, controller=controller), (OK, 0))

    def flush(self, controller=None):
        self.assertEqual(self.io(FLUSH, 1, controller=controller), (OK, 0))

    def set(self, value, save=0, nsid=0):
        return self.admin(SET_FEATURES, nsid, CACHE | save, value)[0]

    def get(self, select=CURRENT, nsid=0):
        return self.admin(GET_FEATURES, nsid, CACHE | select << 8)

    def values(self):
        return [self.get(select)[1] for select in (CURRENT, DEFAULT, SAVED, CAPABILITIES)]

    def do(self, what, **arguments):
        return control.do(self.server, {"do": what, **arguments})


class Feature(Drives):
    def test_what_is_not_saved_ends_with_the_next_reset(self):
        self.assertEqual(self.values(), [0, 0, 0, 5])
        self.assertEqual(self.set(1), OK)
        self.assertEqual(self.values(), [1, 0, 0, 5])
        self.reset()
        self.assertEqual(self.values(), [0, 0, 0, 5])

    def test_what_is_saved_stays(self):
        self.set(1, SAVE)
        self.set(0)
        self.assertEqual(self.values(), [0, 0, 1, 5])
        self.reset()
        self.assertEqual(self.values(), [1, 0, 1, 5])
        self.do("saved", fid=CACHE, value=None)
        self.reset()
        self.assertEqual(self.values(), [0, 0, 0, 5])

    def test_what_a_drive_does_not_offer_it_refuses(self):
        self.do("configure", saveable=False)
        self.assertEqual((self.values()[3], self.set(1, SAVE), self.set(1)), (4, NOT_SAVEABLE | DNR, OK))
        self.do("configure", changeable=False)
        self.assertEqual((self.values()[3], self.set(0), self.get()), (0, NOT_CHANGEABLE | DNR, (OK, 1)))
        self.do("configure", oncs=0, changeable=True)
        invalid = INVALID_FIELD | DNR
        self.assertEqual((self.get(DEFAULT)[0], self.set(0, SAVE), self.get()), (invalid, invalid, (OK, 1)))
        self.do("configure", vwc=0)
        self.assertEqual((self.get()[0], self.set(1)), (INVALID_FIELD | DNR, INVALID_FIELD | DNR))

    def test_per_namespace(self):
        self.do("add_namespace", nsid=2, size_mib=1)
        self.do("configure", per_namespace=True)
        self.assertEqual(self.set(1, nsid=2), OK)
        self.assertEqual([self.get(nsid=nsid)[1] for nsid in (0, 1, 2)], [0, 0, 1])
        self.assertEqual(self.get(CAPABILITIES)[1], 7)

    def test_faults(self):
        for rule in ({"op": "set_features", "lie": True}, {"op": "get_features", "result": 1}):
            self.do("fault", rule={"fid": CACHE, "count": 1, **rule})
        self.assertEqual([self.set(1), self.get(), self.get()], [OK, (OK, 1), (OK, 0)])
        self.do("fault", rule={"op": "set_features", "fid": CACHE, "answer_s": 60})
        self.assertIsNone(self.admin(SET_FEATURES, 0, CACHE, 1))
        self.assertEqual(self.get(), (OK, 1))
        self.do("release")
        self.assertEqual(self.queue.answers, [(OK, 0)])

    def test_what_identify_and_the_logs_say(self):
        self.assertTrue(self.do("configure", oncs=8, lpa=2, cmic=2, critical_warning=16, effects={"9": 0x20001})["ok"])
        self.assertFalse(self.do("configure", colour="red")["ok"])
        page = controller_page(self.drive, 1)
        self.assertEqual((page[76], page[261], page[520], page[525]), (2, 2, 8, 5))
        self.assertEqual(log_page(self.drive, 2, 0, 512)[1][0], 16)
        self.assertEqual(struct.unpack_from("<2I", log_page(self.drive, 5, 0, 4096)[1], 36), (0x20001, 1))
        self.do("configure", lpa=0)
        self.assertNotEqual(log_page(self.drive, 5, 0, 4096)[0], OK)


class NowAndByDefault(Drives):
    FACTS = [{"vwc": 5, "wce": 1, "wce_now": 0}]

    def test_until_the_first_reset(self):
        self.assertEqual(self.values(), [0, 1, 1, 5])
        self.reset()
        self.assertEqual(self.values(), [1, 1, 1, 5])


class Durability(Drives):
    FACTS = [{"vwc": 5, "wce": 1}]

    def test_a_flush_makes_durable(self):
        self.write(0, ONE)
        self.write(5, ONE + TWO)
        self.assertEqual(self.do("volatile")["volatile"], 3)
        self.flush()
        self.write(6, ONE)
        self.write(7, TWO, FUA)
        self.assertEqual(self.do("power_cut")["lost"], 1)
        self.assertEqual(self.namespace.as_json()["lost"], [[6, 1]])
        self.assertEqual([self.namespace.read(block, 1) for block in (0, 5, 6, 7)], [ONE, ONE, TWO, TWO])

    def test_without_the_cache_everything_is(self):
        self.write(0, ONE)
        self.set(0)
        self.write(1, ONE)
        self.assertEqual(self.do("volatile")["volatile"], 1)        # of before
        self.flush()
        self.assertEqual(self.do("power_cut")["lost"], 0)

    def test_turning_it_off_may_commit(self):
        self.do("configure", clear_commits=True)
        self.write(0, ONE)
        self.set(0)
        self.assertEqual(self.do("volatile")["volatile"], 0)

    def test_a_flush_is_for_what_came_before_it(self):
        self.write(0, ONE)
        self.drive.flush_us = 1e6
        self.assertIsNone(self.io(FLUSH, 1))
        self.write(0, TWO)
        self.write(1, TWO)
        for _, _, action in self.server.timers:
            action()
        self.assertEqual(self.queue.answers, [(OK, 0)])
        self.assertEqual(self.do("power_cut")["lost"], 2)
        self.assertEqual([self.namespace.read(block, 1) for block in (0, 1)], [ONE, bytes(512)])

    def test_a_flush_may_lie(self):
        self.do("fault", rule={"op": "flush", "lie": True})
        self.write(0, ONE)
        self.flush()
        self.assertEqual(self.do("volatile")["volatile"], 1)


class Shared(Drives):
    FACTS = [{"vwc": 5, "wce": 1, "name": "a", "namespaces": [{"size_mib": 1, "nmic": 1}]}, {"vwc": 5, "wce": 0, "name": "b"}]

    def test_each_controller_has_a_cache_of_its_own(self):
        other = self.server.drives[1].controller
        self.write(0, ONE)
        self.write(1, ONE, controller=other)
        self.flush(other)
        self.assertEqual(self.do("volatile", drive="drive")["volatile"], 1)
        self.flush()
        self.assertEqual(self.do("volatile")["volatile"], 0)
        self.assertEqual(other.drive.namespaces[1].read(0, 1), ONE)

    def test_unless_it_is_one(self):
        self.namespace.one_cache = True
        self.write(0, ONE)
        self.flush(self.server.drives[1].controller)
        self.assertEqual(self.do("volatile")["volatile"], 0)

    def test_who_is_attached(self):
        self.do("configure", drive="b", also_attached=[77])
        found = [struct.unpack_from("<4H", identify(drive, 1, 0x12, 1, 0, first)[1]) for drive, first in
                 zip(self.server.drives * 2, (0, 0, 2, 2))]
        self.assertEqual(found, [(2, 1, 2, 0), (3, 1, 2, 77), (1, 2, 0, 0), (2, 2, 77, 0)])
        self.assertEqual(namespace_page(self.namespace)[30], 1)
        self.assertEqual(set(control.state(self.server)["drives"]), {"a", "b"})


if __name__ == "__main__":
    unittest.main()
