# SPDX-License-Identifier: LGPL-2.1-or-later
"""wireless-mouse.py: a HID mouse with a battery, through /dev/uhid, for as long as this program runs.

Its power supply has scope Device: it feeds the mouse, not the machine.
"""
import os
import struct
import time

UHID_CREATE2, UHID_GET_REPORT, UHID_GET_REPORT_REPLY, UHID_INPUT2 = 11, 9, 10, 12
BATTERY_REPORT = 2
DESCRIPTOR = bytes([
    0x05, 0x01, 0x09, 0x02, 0xa1, 0x01,                         # generic desktop, mouse
    0x85, 0x01, 0x09, 0x01, 0xa1, 0x00,                         # report 1: pointer
    0x05, 0x09, 0x19, 0x01, 0x29, 0x03, 0x15, 0x00, 0x25, 0x01, 0x95, 0x03, 0x75, 0x01, 0x81, 0x02,     # three buttons
    0x95, 0x01, 0x75, 0x05, 0x81, 0x01,                         # padding
    0x05, 0x01, 0x09, 0x30, 0x09, 0x31, 0x15, 0x81, 0x25, 0x7f, 0x75, 0x08, 0x95, 0x02, 0x81, 0x06,     # x, y
    0xc0,
    0x85, BATTERY_REPORT, 0x05, 0x06, 0x09, 0x20, 0x15, 0x00, 0x25, 0x64, 0x75, 0x08, 0x95, 0x01, 0x81, 0x02,  # strength
    0xc0])


def event(kind, payload):
    return struct.pack("<I", kind) + payload.ljust(4376, b"\0")


uhid = os.open("/dev/uhid", os.O_RDWR)
os.write(uhid, event(UHID_CREATE2, struct.pack("<128s64s64sHHIIII4096s", b"wireless mouse", b"", b"00:11", len(DESCRIPTOR), 5,
                                               0x1234, 0x5678, 0, 0, DESCRIPTOR)))
os.set_blocking(uhid, False)
while True:
    try:
        request = os.read(uhid, 4380)
    except BlockingIOError:
        time.sleep(0.2)
        continue
    if struct.unpack_from("<I", request)[0] == UHID_GET_REPORT:
        number = struct.unpack_from("<I", request, 4)[0]
        os.write(uhid, event(UHID_GET_REPORT_REPLY, struct.pack("<IHH", number, 0, 2) + bytes([BATTERY_REPORT, 42])))
