#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service as far as nvmepolicyctl sees it: methods, properties, signals and errors of dbus/*.xml, without drives.

Texts of Describe come from `nvmepolicyctl --simulate`, so that they are real. What it was asked goes to standard output, a line
each. A profile named "forbidden" is not authorized.
"""
import json
import subprocess
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME, ROOT = "org.nvmepolicy1", "/org/nvmepolicy1"
MANAGER, CONTROLLER = NAME + ".Manager", NAME + ".Controller"
PROPERTIES = "org.freedesktop.DBus.Properties"
NO_CONSTRAINT = dbus.UInt64(2**64 - 1)


class Error(dbus.DBusException):
    def __init__(self, name, text):
        super().__init__(text, name=f"{NAME}.Error.{name}")


def say(*words):
    print(*words, flush=True)


class Controller(dbus.service.Object):
    def __init__(self, connection, name, text):
        super().__init__(connection, f"{ROOT}/controller/{name}")
        self.text = text

    @dbus.service.method(CONTROLLER, out_signature="s")
    def Describe(self):
        return self.text


class Manager(dbus.service.Object):
    def __init__(self, connection, text):
        super().__init__(connection, ROOT)
        self.text = text
        self.profile = "balanced"
        self.holds = {}
        self.cookie = 0
        connection.add_signal_receiver(self.owner_changed, "NameOwnerChanged", "org.freedesktop.DBus")

    def owner_changed(self, name, before, after):
        for cookie in [c for c, h in self.holds.items() if h["Sender"] == name and not after]:
            self.end(cookie)

    def end(self, cookie):
        del self.holds[cookie]
        say("released", cookie)
        self.HoldReleased(cookie)

    def hold(self, what, reason, application, sender):
        self.cookie += 1
        self.holds[self.cookie] = dbus.Dictionary(
            {"Cookie": dbus.UInt32(self.cookie), "Reason": reason, "ApplicationId": application, "Sender": sender, **what},
            signature="sv")
        return self.cookie

    def check(self, profile):
        if profile == "forbidden":
            raise Error("NotAuthorized", "polkit did not say yes")
        if profile not in ("performance", "balanced", "power-saver"):
            raise Error("NoSuchProfile", f'there is no profile "{profile}"')

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        def profile(name, ac, battery):
            return dbus.Dictionary({"Profile": name, "MaxWakeLatencyMicroseconds": ac,
                                    "MaxWakeLatencyOnBatteryMicroseconds": battery}, signature="sv")
        return {"ActiveProfile": self.profile, "BaseProfile": "balanced", "OnBattery": False, "Simulated": True,
                "Profiles": dbus.Array([profile("balanced", dbus.UInt64(25000), dbus.UInt64(100000)),
                                        profile("performance", dbus.UInt64(0), dbus.UInt64(10000)),
                                        profile("power-saver", NO_CONSTRAINT, NO_CONSTRAINT)], signature="a{sv}"),
                "ActiveHolds": dbus.Array(self.holds.values(), signature="a{sv}")}

    @dbus.service.method(MANAGER, out_signature="s")
    def Describe(self):
        return self.text

    @dbus.service.method(MANAGER, out_signature="a(osssss)")
    def Plan(self):
        return [(dbus.ObjectPath(ROOT + "/controller/nvme0"), "power/pm_qos_latency_tolerance_us", "100000", "25000",
                 "profile balanced", "the bound of 25 ms itself")]

    @dbus.service.method(MANAGER, in_signature="s")
    def SetProfile(self, profile):
        self.check(profile)
        self.profile = profile
        self.PropertiesChanged(MANAGER, {"ActiveProfile": profile}, [])

    @dbus.service.method(MANAGER, in_signature="sss", out_signature="u", sender_keyword="sender")
    def HoldProfile(self, profile, reason, application, sender):
        self.check(profile)
        say("hold", profile, reason)
        return self.hold({"Profile": profile}, reason, application, sender)

    @dbus.service.method(MANAGER, in_signature="otss", out_signature="u", sender_keyword="sender")
    def HoldLatency(self, controller, latency, reason, application, sender):
        say("hold", controller, int(latency), reason)
        return self.hold({"MaxWakeLatencyMicroseconds": dbus.UInt64(latency)}, reason, application, sender)

    @dbus.service.method(MANAGER, in_signature="u")
    def Release(self, cookie):
        self.end(cookie)

    @dbus.service.method(MANAGER)
    def Reconcile(self):
        say("reconcile")
        self.ValueOverridden(ROOT + "/controller/nvme0", "power/pm_qos_latency_tolerance_us", "25000", "100000", "")

    @dbus.service.method(MANAGER)
    def Reload(self):
        raise Error("ConfigurationInvalid", "nvmepolicyd.toml:3:1: daemon.prfile: unknown key")

    @dbus.service.method(MANAGER, in_signature="o")
    def ClearBreaker(self, controller):
        raise Error("NoSuchController", f"no controller is at {controller}")

    @dbus.service.signal(MANAGER, signature="u")
    def HoldReleased(self, cookie):
        pass

    @dbus.service.signal(MANAGER, signature="ossss")
    def ValueOverridden(self, path, attribute, ours, theirs, writer):
        pass

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass


def main():
    ctl, drives, status = sys.argv[1:4]
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    connection = dbus.SystemBus()

    def looked(*words):
        return subprocess.run([ctl, *words, "--json", "--simulate", drives], check=True, capture_output=True, text=True).stdout
    objects = [Manager(connection, status or looked("status"))]
    for c in json.loads(looked("status"))["controllers"]:
        objects.append(Controller(connection, c["name"], looked("show", c["name"])))
    name = dbus.service.BusName(NAME, connection, do_not_queue=True)
    say("ready")
    GLib.MainLoop().run()


main()
