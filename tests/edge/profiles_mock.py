#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profiles_mock.py ADDRESS PROFILE NAME…: plays power-profiles-daemon under these names (net.hadess.PowerProfiles,
org.freedesktop.UPower.PowerProfiles), which dbusmock of Debian 12 does for the older one only. A profile a line on standard input
changes it; `silent PROFILE` without a signal, `hang` for an answer that never comes, `quit`."""
import sys

import dbus
import dbus.bus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

PROPERTIES = "org.freedesktop.DBus.Properties"


class Profiles(dbus.service.Object):
    def __init__(self, connection, path, interface, profile):
        super().__init__(connection, path)
        self.interface, self.profile, self.hangs = interface, profile, False
        self.set_by = []

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}", async_callbacks=("done", "failed"))
    def GetAll(self, _interface, done, failed):
        if not self.hangs:
            done({"ActiveProfile": self.profile, "PerformanceDegraded": ""})

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, _interface, _name):
        return self.profile

    @dbus.service.method(PROPERTIES, in_signature="ssv")
    def Set(self, _interface, _name, value):
        print(f"set {value}", flush=True)

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass


def main():
    address, profile, *names = sys.argv[1:]
    connection = dbus.bus.BusConnection(address, mainloop=dbus.mainloop.glib.DBusGMainLoop())
    objects = [Profiles(connection, "/" + name.replace(".", "/"), name, profile) for name in names]
    for name in names:
        connection.request_name(name, dbus.bus.NAME_FLAG_ALLOW_REPLACEMENT | dbus.bus.NAME_FLAG_REPLACE_EXISTING)
    print("ready", flush=True)
    loop = GLib.MainLoop()

    def order(_source, _condition):
        line = sys.stdin.readline()
        words = line.split()
        if not line or words == ["quit"]:
            loop.quit()
            return False
        for played in objects:
            if words == ["hang"]:
                played.hangs = True
            elif words[0] == "invalidate":
                played.profile = words[1]
                played.PropertiesChanged(played.interface, dbus.Dictionary({}, signature="sv"), ["ActiveProfile"])
            else:
                played.profile = words[-1]
                if words[0] != "silent":
                    played.PropertiesChanged(played.interface, {"ActiveProfile": words[-1]}, dbus.Array([], signature="s"))
        print("done", flush=True)
        return True
    GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, order)
    loop.run()


main()
