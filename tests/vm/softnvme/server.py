# SPDX-License-Identifier: LGPL-2.1-or-later
"""The event loop: one thread, one select() for every port, connection and control channel, so no state needs a lock."""
import collections
import ctypes
import heapq
import itertools
import random
import select
import socket
import time

from .control import ControlChannel
from .faults import Faults
from .scenario import Drive
from .transport import Queue

PR_SET_TIMERSLACK = 29


class Server:
    def __init__(self, scenario, bind="127.0.0.1", port_base=0):
        self.name, self.bind = scenario.get("name"), bind
        self.rng = random.Random(scenario.get("seed", 1))
        self.started = time.monotonic()
        self.log = collections.deque(maxlen=20000)
        self.faults = Faults()
        for rule in scenario.get("faults", []):
            self.faults.add(rule)
        self.drives = [Drive(facts, port_base) for facts in scenario["subsystems"]]
        self.queues, self.timers, self.order = [], [], itertools.count()
        self.hanging = []
        self.listeners = {self.listen(drive.port): drive for drive in self.drives}
        self.stop = False

    def listen(self, port):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.bind, port))
        sock.listen(64)
        sock.setblocking(False)
        return sock

    # --- what the rest calls -------------------------------------------------------------------------------------------

    def at(self, when, action):
        if when <= time.monotonic():
            action()
        else:
            heapq.heappush(self.timers, (when, next(self.order), action))

    def hang(self, seconds, action):
        """Like `at`, but release() may come first."""
        def once():
            if once in self.hanging:
                self.hanging.remove(once)
                action()
        self.hanging.append(once)
        self.at(time.monotonic() + seconds, once)

    def release(self):
        for once in list(self.hanging):
            once()

    def note(self, **entry):
        self.log.append({"t": round(time.monotonic() - self.started, 6), **entry})

    def close(self, queue, why):
        if queue.dead:
            return
        queue.dead = True
        queue.sock.close()
        if queue in self.queues:
            self.queues.remove(queue)
        controller = queue.controller
        if controller:
            if controller.queues.get(queue.qid) is queue:
                del controller.queues[queue.qid]
            if queue.qid == 0:
                controller.event_requests.clear()
            controller.note(ev="close", qid=queue.qid, why=why)

    def drop(self, drive, why):
        for queue in [q for q in self.queues if q.drive is drive]:
            self.close(queue, why)

    # --- the loop ------------------------------------------------------------------------------------------------------

    def accept(self, listener):
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        drive = self.listeners[listener]
        if drive.refuse == "tcp":
            return sock.close()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.queues.append(Queue(self, drive, sock))

    def run(self, control_path, http_port):
        control = ControlChannel(self, control_path, http_port)
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        print("softnvme ready", flush=True)
        while not self.stop:
            wait = max(0.0, self.timers[0][0] - time.monotonic()) if self.timers else 1.0
            by_socket = {q.sock: q for q in self.queues}
            readable, writable, _ = select.select([*self.listeners, *control.sockets(), *by_socket],
                                                  [q.sock for q in self.queues if q.unsent], [], wait)
            for sock in writable:
                if not by_socket[sock].dead:
                    by_socket[sock].flush()
            for sock in readable:
                if sock in self.listeners:
                    self.accept(sock)
                elif sock in by_socket:
                    if not by_socket[sock].dead:
                        by_socket[sock].on_readable()
                else:
                    control.on_readable(sock)
            while self.timers and self.timers[0][0] <= time.monotonic():
                heapq.heappop(self.timers)[2]()
        control.close()
