# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control channel: HTTP/1.0 on a UNIX socket and on a loopback port, so that the guest's wget can use it too.

GET /state and GET /log (or /log?n=20) show; POST / with a JSON object does. Every command may carry `"drive": NAME` (an NQN
or its last part) to touch that drive only.

    {"do": "fault", "rule": {…}}                         see faults.py
    {"do": "clear_faults"}
    {"do": "release"}                                    admin commands that hang are executed and answered now
    {"do": "drop"}                                       close the connections
    {"do": "refuse", "mode": "tcp"|"dnr"|null}           new connections: closed; rejected for good; accepted
    {"do": "set_apst_table", "apste": 0, "entries": [{"state": 0, "raw": "0x6418"}]}
                                                         behind the kernel's back, as firmware may
    {"do": "set_feature", "fid": 6, "value": 1}          the same for a plain feature
    {"do": "firmware", "firmware": "2.0", "like": NAME, "apsta": 0}
                                                         new firmware: another revision, the power states of another drive
                                                         of the scenario, APST or none; what is left out stays. The drive
                                                         says so at once, and sleeps by it from the next reset on
    {"do": "reset_counts"}                               counters, wake log and log start anew
    {"do": "mark", "text": …}                            a line in the log
    {"do": "quit"}
"""
import json
import os
import socket
import struct
import time


def state(server):
    return {"scenario": server.name, "t": round(time.monotonic() - server.started, 6), "faults": server.faults.rules,
            "drives": {d.nqn.rpartition(":")[2]: {
                "nqn": d.nqn, "model": d.model, "serial": d.serial, "port": d.port,
                "connected": bool(d.controller and d.controller.queues),
                "controller": d.controller.as_json() if d.controller else None} for d in server.drives}}


def do(server, command):
    what = command.get("do")
    drives = [d for d in server.drives if "drive" not in command or d.is_called(command["drive"])]
    if not drives:
        return {"ok": False, "error": "no such drive"}
    controllers = [d.controller for d in drives if d.controller]
    if what == "fault":
        return {"ok": True, "id": server.faults.add(command["rule"])}
    if what == "clear_faults":
        server.faults.clear()
    elif what == "release":
        server.release()
    elif what == "drop":
        for drive in drives:
            server.drop(drive, "control")
    elif what == "refuse":
        for drive in drives:
            drive.refuse = command.get("mode")
    elif what == "set_apst_table":
        table = bytearray(256)
        for entry in command.get("entries", []):
            struct.pack_into("<Q", table, entry["state"] * 8, int(str(entry["raw"]), 0))
        for controller in controllers:
            controller.sleep.program(bool(command["apste"]), bytes(table))
            controller.note(ev="set_apst_table")
    elif what == "set_feature":
        for controller in controllers:
            controller.features[command["fid"]] = command["value"]
            controller.note(ev="set_feature", fid=command["fid"])
    elif what == "firmware":
        like = [d for d in server.drives if "like" in command and d.is_called(command["like"])]
        if "like" in command and not like:
            return {"ok": False, "error": "no such drive"}
        for drive in drives:
            drive.activate(command.get("firmware"), like[0] if like else None, command.get("apsta"))
    elif what == "reset_counts":
        for controller in controllers:
            controller.counts.clear()
            controller.sleep.wakes.clear()
            controller.sleep.wake_log.clear()
        server.log.clear()
    elif what == "mark":
        server.note(ev="mark", text=command.get("text"))
    elif what == "quit":
        server.stop = True
    else:
        return {"ok": False, "error": "unknown command"}
    return {"ok": True}


class ControlChannel:
    def __init__(self, server, path, http_port):
        self.server, self.path = server, path
        self.listeners, self.connections = [], {}
        if path:
            if os.path.exists(path):
                os.unlink(path)
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(path)
            sock.listen(16)
            sock.setblocking(False)
            self.listeners.append(sock)
        if http_port:
            self.listeners.append(server.listen(http_port))

    def sockets(self):
        return [*self.listeners, *self.connections]

    def close(self):
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)

    def on_readable(self, sock):
        if sock in self.listeners:
            accepted, _ = sock.accept()
            accepted.setblocking(False)
            self.connections[accepted] = bytearray()
            return
        try:
            chunk = sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self.connections[sock] += chunk
        head, complete, body = bytes(self.connections[sock]).partition(b"\r\n\r\n")
        if chunk and (not complete or len(body) < content_length(head)):
            return
        del self.connections[sock]
        if complete:
            self.answer(sock, head, body)
        sock.close()

    def answer(self, sock, head, body):
        try:
            method, path = head.split(b"\r\n")[0].decode().split()[:2]
            if method == "POST":
                result = do(self.server, json.loads(body or b"{}"))
            elif path.startswith("/log"):
                result = list(self.server.log)[-int(path.partition("?n=")[2] or 0):]
            else:
                result = state(self.server)
        except Exception as error:      # a bad request must not end the test
            result = {"ok": False, "error": repr(error)}
        out = json.dumps(result).encode() + b"\n"
        sock.setblocking(True)
        sock.settimeout(2)
        try:
            sock.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(out) + out)
        except OSError:
            pass


def content_length(head):
    for line in head.split(b"\r\n")[1:]:
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def request(where, what):
    """The client: `where` is a UNIX socket or a loopback port, `what` is state, log, log?n=20 or a JSON command."""
    sock = socket.socket() if where.isdigit() else socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(("127.0.0.1", int(where)) if where.isdigit() else where)
    if what.startswith("{"):
        body = what.encode()
        sock.sendall(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    else:
        sock.sendall(b"GET /%s HTTP/1.0\r\n\r\n" % what.lstrip("/").encode())
    answer = b""
    while chunk := sock.recv(65536):
        answer += chunk
    return json.loads(answer.partition(b"\r\n\r\n")[2])
