# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything that dbus/*.xml promises, read with another D-Bus library than the service's: names, types, values, signals."""
import json
import re
import subprocess
import unittest
import xml.etree.ElementTree as xml

import bus
from bus import BUILD, CONTROLLER, MANAGER, NAME, NO_CONSTRAINT, OBJECT_MANAGER, ROOT, SOURCE, SUBSYSTEM

# What changes from run to run, or from machine to machine, has no place in a golden file.
VALUE = re.compile(r"^(\.\S+ +property +\S+ +)\S.*?( +(?:const|emits-change|emits-invalidation|writable|-)[a-z -]*)$")


def promised(interface):
    return xml.parse(SOURCE / f"dbus/{interface}.xml").getroot().find(f"interface[@name='{interface}']")


def shape(interface):
    """An interface as what a caller depends on: names of members, types, directions and annotations."""
    def arguments(member, direction):
        return [(a.get("name"), a.get("type"), a.get("direction", direction)) for a in member.findall("arg")]

    def notes(member):
        return sorted((a.get("name"), a.get("value")) for a in member.findall("annotation")
                      if a.get("name") != "org.freedesktop.DBus.Method.Async")
    return {
        "methods": {m.get("name"): (arguments(m, "in"), notes(m)) for m in interface.findall("method")},
        "signals": {s.get("name"): arguments(s, "out") for s in interface.findall("signal")},
        "properties": {p.get("name"): (p.get("type"), p.get("access"), notes(p)) for p in interface.findall("property")},
    }


def signature(value):
    """Of what dbus-python made of a value that came with it."""
    import dbus
    kinds = {dbus.Boolean: "b", dbus.UInt32: "u", dbus.Int32: "i", dbus.UInt64: "t", dbus.String: "s", dbus.ObjectPath: "o"}
    if isinstance(value, dbus.Array):
        return "a" + str(value.signature)
    if isinstance(value, dbus.Dictionary):
        return "a{" + str(value.signature) + "}"
    return kinds[type(value)]


class Promise(bus.TestCase):
    drives = ["samsung-980-pro", "crucial-p5-500gb", "linux-nvmet"]

    def setUp(self):
        super().setUp()
        self.start()

    def live(self, path, interface):
        text = self.call(path, "org.freedesktop.DBus.Introspectable", "Introspect")
        return xml.fromstring(str(text)).find(f"interface[@name='{interface}']")

    def places(self):
        objects = self.objects()
        found = {MANAGER: ROOT}
        for interface in (CONTROLLER, SUBSYSTEM):
            found[interface] = sorted(path for path, interfaces in objects.items() if interface in interfaces)[0]
        return found

    def test_the_live_introspection_is_that_of_the_files(self):
        for interface, path in self.places().items():
            with self.subTest(interface):
                self.assertEqual(shape(self.live(path, interface)), shape(promised(interface)))

    def test_busctl_prints_what_is_kept_as_golden_files(self):
        for interface, path in self.places().items():
            with self.subTest(interface):
                printed = subprocess.run(
                    ["busctl", f"--address={self.bus.address}", "--no-pager", "introspect", "--full", NAME, path, interface],
                    capture_output=True, text=True, check=True, timeout=60).stdout
                lines = [re.sub(r" +", " ", VALUE.sub(r"\1…\2", line.rstrip())) for line in printed.splitlines()[1:]]
                golden = SOURCE / f"tests/edge/golden/{interface}.txt"
                found = "\n".join(lines) + "\n"
                (self.directory / golden.name).write_text(found, encoding="utf-8")
                kept = golden.read_text(encoding="utf-8") if golden.exists() else ""
                if kept != found:
                    (BUILD / f"{interface}.txt").write_text(found, encoding="utf-8")
                self.assertEqual(found, kept, f"if this is meant: cp {BUILD}/{interface}.txt tests/edge/golden/")

    def test_every_property_has_its_type(self):
        for interface, path in self.places().items():
            types = {p.get("name"): p.get("type") for p in promised(interface).findall("property")}
            values = self.properties(path, interface)
            self.assertEqual({name: signature(value) for name, value in values.items()}, types, interface)
            for name, value in values.items():
                self.assertEqual(self.property(name, path, interface), value, name)

    def test_no_property_can_be_set(self):
        for interface, path in self.places().items():
            for p in promised(interface).findall("property"):
                import dbus
                error = self.error("Set", "ssv", interface, p.get("name"), dbus.String("x", variant_level=1), path=path,
                                   interface="org.freedesktop.DBus.Properties")
                self.assertEqual(error, "org.freedesktop.DBus.Error.PropertyReadOnly", f"{interface}.{p.get('name')}")

    def test_the_objects_are_below_the_root_and_nowhere_else(self):
        objects = self.objects()
        self.assertEqual(sorted(path for path in objects if CONTROLLER in objects[path]),
                         [self.controller(n) for n in range(3)])
        for path, interfaces in objects.items():
            self.assertRegex(path, f"^{ROOT}/(controller/nvme[0-9]+|subsystem/nvme_subsys[0-9]+)$")
            for interface in interfaces:
                if interface in (CONTROLLER, SUBSYSTEM):
                    self.assertEqual(interfaces[interface], self.properties(path, interface), path)
        for path, interfaces in objects.items():
            if SUBSYSTEM in interfaces:
                self.assertRegex(str(interfaces[SUBSYSTEM]["Name"]), "^nvme-subsys[0-9]+$")
                for controller in interfaces[SUBSYSTEM]["Controllers"]:
                    self.assertIn(controller, objects)
                for way in interfaces[SUBSYSTEM]["Paths"]:
                    self.assertEqual({"Name", "Controller", "AnaState"}, set(way))
                    self.assertIn(way["Controller"], objects)

    def test_the_values_are_those_that_nvmepolicyctl_finds(self):
        printed = subprocess.run([BUILD / "bin/nvmepolicyctl", "status", "--json", "--simulate", self.drive_directory],
                                 capture_output=True, text=True, timeout=60, check=False).stdout
        looked = {c["name"]: c for c in json.loads(printed)["controllers"]}
        described = json.loads(self.manager("Describe"))
        self.assertEqual(set(described), set(json.loads(printed)))
        self.assertIs(described["simulated"], True)
        self.assertEqual([c["name"] for c in described["controllers"]], [f"nvme{n}" for n in range(3)])
        for path, interfaces in self.objects().items():
            if CONTROLLER not in interfaces:
                continue
            values = interfaces[CONTROLLER]
            theirs, ours = looked[values["Name"]], next(c for c in described["controllers"] if c["name"] == values["Name"])
            self.assertEqual(path, f"{ROOT}/controller/{values['Name']}")
            for key, name in (("model", "Model"), ("serial", "Serial"), ("firmware", "Firmware"), ("transport", "Transport"),
                              ("address", "Address"), ("subsystem_nqn", "SubsystemNqn"), ("state", "State")):
                self.assertEqual(values[name], theirs[key] or "", name)
            self.assertEqual(values["ApstSupported"], bool(theirs["apst"]["supported"]))
            for key in ("supported", "bound_us", "unwanted_states", "ceiling_us"):
                self.assertEqual(ours["apst"][key], theirs["apst"][key], key)
            self.assertEqual(values["ApstEnabled"], bool(ours["apst"]["enabled"]))
            self.assertEqual(values["ApstVerified"], bool(ours["apst"]["verified"]))
            tolerance = ours["apst"]["tolerance_us"]
            self.assertEqual(values["LatencyToleranceMicroseconds"], tolerance if isinstance(tolerance, int) else NO_CONSTRAINT)
            deepest, wake = ours["apst"]["deepest_state"], ours["apst"]["wake_latency_us"]
            self.assertEqual(values["DeepestState"], -1 if deepest is None else deepest)
            self.assertEqual(values["WakeLatencyMicroseconds"], NO_CONSTRAINT if wake is None else wake)
            self.assertEqual(values["BreakerTripped"], ours["breaker_tripped"])
            self.assertEqual(values["LastError"], ours["last_error"] or "")
            self.assertEqual(values["WriteCachePresent"], bool(ours["write_cache"]["present"]))
            modes = {leaf["mode"] for leaf in ours["write_cache"]["leaves"]}
            self.assertEqual(values["WriteCacheMode"], "" if not modes else modes.pop() if len(modes) == 1 else "mixed")
            self.assertTrue(all(str(sentence) for sentence in values["Explanation"]))
            self.assertTrue(values["Explanation"])
            self.check_power_states(values)
            show = json.loads(self.call(path, CONTROLLER, "Describe"))
            self.assertIn(values["Name"], json.dumps(show))

    def check_power_states(self, values):
        number = int(values["Name"][4:])
        drive = json.loads((self.drive_directory / f"{number:04}.json").read_text())
        states = values["PowerStates"]
        self.assertEqual([s["State"] for s in states], list(range(len(states))))
        for state, given in zip(states, drive.get("power_states", [])):
            self.assertEqual({name: signature(value) for name, value in state.items()},
                             {name: kind for name, kind in (("State", "i"), ("Operational", "b"), ("MaxPowerMicrowatts", "t"),
                              ("IdlePowerMicrowatts", "t"), ("EntryLatencyMicroseconds", "t"),
                              ("ExitLatencyMicroseconds", "t")) if name in state})
            self.assertTrue({"State", "Operational"} <= set(state))
            self.assertEqual(bool(state["Operational"]), not given.get("non_operational", not given.get("operational", True)))

    def test_the_manager(self):
        values = self.properties()
        self.assertEqual((values["ActiveProfile"], values["BaseProfile"]), ("balanced", "balanced"))
        self.assertRegex(values["Version"], r"^\d+\.\d+\.\d+")
        self.assertTrue(values["Simulated"])
        self.assertFalse(values["DryRun"])
        self.assertFalse(values["OnBattery"])
        self.assertEqual(values["ConfigurationError"], "")
        self.assertEqual(list(values["ActiveHolds"]), [])
        profiles = {str(p["Profile"]): (int(p["MaxWakeLatencyMicroseconds"]), int(p["MaxWakeLatencyOnBatteryMicroseconds"]))
                    for p in values["Profiles"]}
        self.assertEqual(profiles, {"performance": (0, 10000), "balanced": (25000, 100000),
                                    "power-saver": (NO_CONSTRAINT, NO_CONSTRAINT)})

    def test_plan_is_empty_where_all_is_in_order(self):
        self.assertEqual(list(self.manager("Plan")), [])

    def test_methods_that_root_may_always(self):
        for member in ("Reconcile", "Reload", "Plan", "Describe"):
            self.assertIsNone(self.error(member), member)
        self.assertEqual(self.error("ClearBreaker", "o", self.controller()), bus.failure("Failed"))
        self.assertIsNone(self.error("SetProfile", "s", "performance"))
        self.assertEqual([self.tolerance(n) for n in range(2)], [0, 0])


class Changes(bus.TestCase):
    drives = ["samsung-980-pro", "crucial-p5-500gb"]

    def setUp(self):
        super().setUp()
        self.start()
        bus.settle(1)
        self.signals = self.record()

    def test_a_profile_changes_what_it_changes_once(self):
        self.manager("SetProfile", "s", "performance")
        bus.wait_for(lambda: self.tolerance(0) == 0 and self.tolerance(1) == 0)
        bus.settle(1.5)
        manager = [set(values) for _, interface, values in bus.changes(self.signals, ROOT) if interface == MANAGER]
        self.assertEqual(manager, [{"ActiveProfile", "BaseProfile"}])
        for number in range(2):
            found = bus.changes(self.signals, self.controller(number))
            self.assertEqual(len(found), 1, found)
            _, interface, values = found[0]
            self.assertEqual(interface, CONTROLLER)
            self.assertEqual(values["LatencyToleranceMicroseconds"], 0)
            for name in ("Model", "Serial", "Firmware", "Name", "PowerStates", "State", "ApstSupported", "BreakerTripped",
                         "WriteCachePresent", "Transport", "SubsystemNqn", "Address"):
                self.assertNotIn(name, values)
            for name, value in values.items():
                self.assertEqual(self.property(name, self.controller(number), CONTROLLER), value)

    def test_what_is_the_same_is_not_announced(self):
        self.manager("SetProfile", "s", "balanced")
        self.manager("Reconcile")
        self.manager("Reload")
        bus.settle(1.5)
        self.assertEqual(bus.changes(self.signals), [])

    def test_nothing_is_announced_when_nothing_happens(self):
        bus.settle(3)
        self.assertEqual(self.signals, [])

    def test_a_reload_announces_profiles_and_errors(self):
        self.configure("[daemon]\nprofle = 1\n")
        self.assertEqual(self.error("Reload"), bus.failure("ConfigurationInvalid"))
        self.assertIn("profle", self.message)
        bus.wait_for(lambda: self.property("ConfigurationError") != "")
        self.assertIn("nvmepolicyd.toml:2", self.property("ConfigurationError"))
        self.configure('[profiles.balanced]\nmax_wake_latency = "5ms"\n')
        self.assertIsNone(self.error("Reload"))
        self.assertEqual(self.property("ConfigurationError"), "")
        bus.wait_for(lambda: self.tolerance() == 5000)
        bus.settle(0.5)
        announced = [values for _, interface, values in bus.changes(self.signals, ROOT)]
        self.assertEqual([set(values) for values in announced], [{"ConfigurationError"}, {"ConfigurationError", "Profiles"}])


class ComingAndGoing(bus.TestCase):
    drives = ["samsung-980-pro", "crucial-p5-500gb"]

    def test_objects_come_and_go_with_their_controllers(self):
        signals = self.record()
        daemon = self.start("--story", "plug-unplug", "--story-loop", looked=False)
        bus.wait_for(lambda: any(m == "InterfacesRemoved" for _, m, _ in signals) and
                     any(m == "InterfacesAdded" for _, m, _ in signals[[m for _, m, _ in signals].index("InterfacesRemoved"):]),
                     30)
        removed = next(arguments for _, m, arguments in signals if m == "InterfacesRemoved")
        self.assertIn(str(removed[0]), [self.controller(), f"{ROOT}/subsystem/nvme_subsys0"])
        # What the signals add up to is what the service has.
        bus.wait_for(lambda: len([1 for _, m, _ in signals if m == "InterfacesRemoved"]) > 3, 30)
        known = {}
        for path, member, arguments in signals:
            if member == "InterfacesAdded":
                self.assertEqual(path, ROOT)
                known[str(arguments[0])] = {str(i): dict(values) for i, values in arguments[1].items()}
            elif member == "InterfacesRemoved":
                for interface in arguments[1]:
                    self.assertNotIn(str(interface), ("", MANAGER))
                    known.get(str(arguments[0]), {}).pop(str(interface), None)
                if not [i for i in known.get(str(arguments[0]), {}) if i in (CONTROLLER, SUBSYSTEM)]:
                    known.pop(str(arguments[0]), None)
            elif member == "PropertiesChanged" and path in known:
                known[path].setdefault(str(arguments[0]), {}).update(arguments[1])
        for path, interfaces in known.items():
            for interface in (CONTROLLER, SUBSYSTEM):
                if interface in interfaces:
                    self.assertEqual(set(interfaces[interface]),
                                     {p.get("name") for p in promised(interface).findall("property")}, path)
        self.assertTrue(daemon.running())

    def test_somebody_elses_value_is_told(self):
        signals = self.record("ValueOverridden")
        self.start("--story", "foreign-writer", "--story-loop", looked=False)
        bus.wait_for(lambda: signals, 30)
        path, _, arguments = signals[0]
        self.assertEqual(path, ROOT)
        self.assertEqual([str(a) for a in arguments],
                         [self.controller(), "power/pm_qos_latency_tolerance_us", "25000", "0", ""])

    def test_battery(self):
        self.start("--story", "battery", "--story-loop", looked=False)
        signals = self.record()
        bus.wait_for(lambda: self.property("OnBattery"), 30)
        bus.wait_for(lambda: self.tolerance() == 100000, 10)
        bus.wait_for(lambda: not self.property("OnBattery"), 30)
        announced = lambda: [bool(values["OnBattery"]) for _, _, values in bus.changes(signals, ROOT) if "OnBattery" in values]
        bus.wait_for(lambda: len(announced()) >= 2, 10) # What was read may be here before what was announced.
        self.assertEqual(announced()[:2], [True, False])
        self.assertFalse([values for _, _, values in bus.changes(signals, ROOT) if "ActiveProfile" in values])


if __name__ == "__main__":
    unittest.main()
