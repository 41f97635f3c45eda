#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""client.py ADDRESS UID: a client of a bus, as that user, that does what it is told on standard input, a JSON object a line:

    {"do": "call", "to": …, "path": …, "interface": …, "member": …, "signature": …, "arguments": […]}
    {"do": "signal", …}             the same as a signal; to: only to that client
    {"do": "own", "name": …}
    {"do": "flood", "count": …}     sends that many calls, and reads no reply from then on

and answers with an object a line.
"""
import json
import os
import socket
import sys

import dbus
import dbus.bus
import dbus.lowlevel


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dbus.Boolean):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    return value if value is None else str(value)


def arguments_of(order):
    # A megabyte does not go through a pipe as such: {"repeat": ["x", 1048576]}
    return [item["repeat"][0] * item["repeat"][1] if isinstance(item, dict) and "repeat" in item else item
            for item in order["arguments"]]


def call(connection, order):
    try:
        result = connection.call_blocking(order["to"], order["path"], order["interface"], order["member"], order["signature"],
                                          arguments_of(order), timeout=120)
        return {"result": plain(result)}
    except dbus.DBusException as error:
        return {"error": error.get_dbus_name(), "message": error.get_dbus_message()}
    except (ValueError, TypeError, OverflowError) as error:
        return {"error": "client", "message": str(error)}


def signal(connection, order):
    message = dbus.lowlevel.SignalMessage(order["path"], order["interface"], order["member"])
    if order.get("to"):
        message.set_destination(order["to"])
    message.append(signature=order["signature"], *arguments_of(order))
    connection.send_message(message)
    connection.flush()
    return {}


def flood(address, order):
    """By hand, because a library would read the replies."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address.partition("path=")[2].partition(",")[0])
    connection.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
    connection.recv(4096)
    connection.sendall(b"BEGIN\r\n")

    def message(serial, destination, path, interface, member, signature="", arguments=()):
        return marshal(serial, destination, path, interface, member, signature, arguments)

    connection.sendall(message(1, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello"))
    connection.settimeout(0.5)
    sent = 0
    try:
        for serial in range(2, order["count"] + 2):
            connection.sendall(message(serial, order["to"], order["path"], order["interface"], order["member"],
                                       order["signature"], arguments_of(order)))
            sent += 1
    except OSError:
        pass  # nobody takes more of it: that is as good as having sent all
    return {"result": sent}, connection


def marshal(serial, destination, path, interface, member, signature, arguments):
    """A method call with nothing but strings (s) as arguments."""
    def string(text):
        data = text.encode()
        return len(data).to_bytes(4, "little") + data + b"\0"

    def padded(data, to):
        return data + b"\0" * (-len(data) % to)
    body = b""
    for text in arguments:
        body = padded(body, 4) + string(text)
    fields = b""
    for code, kind, text in ((1, "o", path), (6, "s", destination), (2, "s", interface), (3, "s", member)):
        fields = padded(fields, 8) + bytes([code, 1]) + kind.encode() + b"\0" + string(text)
    if signature:
        fields = padded(fields, 8) + bytes([8, 1]) + b"g\0" + bytes([len(signature)]) + signature.encode() + b"\0"
    header = b"l\1\0\1" + len(body).to_bytes(4, "little") + serial.to_bytes(4, "little") + len(fields).to_bytes(4, "little")
    return padded(header + fields, 8) + body


def main():
    address, uid = sys.argv[1], int(sys.argv[2])
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    connection = dbus.bus.BusConnection(address)
    connection.set_exit_on_disconnect(False)
    floods = []
    print(json.dumps({"name": connection.get_unique_name()}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "call":
            answer = call(connection, order)
        elif order["do"] == "signal":
            answer = signal(connection, order)
        elif order["do"] == "flood":
            answer, kept = flood(address, order)
            floods.append(kept)
        elif order["do"] == "own":
            try:
                answer = {"result": connection.request_name(order["name"], order.get("flags", 0))}
            except dbus.DBusException as error:
                answer = {"error": error.get_dbus_name(), "message": error.get_dbus_message()}
        else:
            answer = {"error": "client", "message": "unknown order"}
        print(json.dumps(answer), flush=True)


main()
