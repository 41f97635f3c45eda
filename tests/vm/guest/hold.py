#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""hold.py profile NAME | hold.py latency PATH MICROSECONDS: holds on the system bus, prints the cookie, and waits to be killed."""
import signal
import sys

import dbus

manager = dbus.Interface(dbus.SystemBus().get_object("org.nvmepolicy1", "/org/nvmepolicy1"), "org.nvmepolicy1.Manager")
if sys.argv[1] == "profile":
    cookie = manager.HoldProfile(sys.argv[2], "a test", "hold.py")
else:
    cookie = manager.HoldLatency(dbus.ObjectPath(sys.argv[2]), dbus.UInt64(sys.argv[3]), "a test", "hold.py")
print(int(cookie), flush=True)
signal.pause()
