# SPDX-License-Identifier: LGPL-2.1-or-later
"""One TCP connection, which is one queue: PDUs in, PDUs out."""
import struct

from . import fabrics
from .protocol import (C2HDATA, CMD, FABRICS, H2CDATA, ICREQ, ICRESP, LAST_PDU, MAX_H2C_DATA, R2T, RSP, SUCCESS)

LARGEST_PDU = 1 << 21


class Queue:
    def __init__(self, server, drive, sock):
        self.server, self.drive, self.sock = server, drive, sock
        self.received, self.unsent = bytearray(), bytearray()
        self.controller, self.qid, self.size, self.head = None, None, 1, 0
        self.transfers, self.next_tag = {}, 1
        self.dead = False

    # --- out -----------------------------------------------------------------------------------------------------------

    def send(self, data):
        if self.dead:
            return
        self.unsent += data
        if len(self.unsent) == len(data):
            self.flush()

    def flush(self):
        try:
            del self.unsent[:self.sock.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.server.close(self, "send error")

    def respond(self, cid, status=0, result=0):
        self.send(struct.pack("<BBBBI", RSP, 0, 24, 0, 24) +
                  struct.pack("<QHHHH", result, self.head, self.qid or 0, cid, (status << 1) & 0xffff))

    def send_data(self, cid, data, last_word):
        """last_word: the data stand for a successful completion too."""
        flags = LAST_PDU | (SUCCESS if last_word else 0)
        self.send(struct.pack("<BBBBIHHII4x", C2HDATA, flags, 24, 24, 24 + len(data), cid, 0, 0, len(data)) + data)

    def fetch(self, cid, length, then):
        """Asks the host for the data of a command, all in one transfer."""
        tag, self.next_tag = self.next_tag, self.next_tag % 65000 + 1
        self.transfers[tag] = {"buffer": bytearray(length), "got": 0, "then": then}
        self.send(struct.pack("<BBBBIHHII4x", R2T, 0, 24, 0, 24, cid, tag, 0, length))

    # --- in ------------------------------------------------------------------------------------------------------------

    def on_readable(self):
        try:
            chunk = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            return self.server.close(self, "receive error")
        if not chunk:
            return self.server.close(self, "closed by the host")
        self.received += chunk
        while not self.dead and len(self.received) >= 8:
            length = struct.unpack_from("<I", self.received, 4)[0]
            if not 8 <= length <= LARGEST_PDU:
                return self.server.close(self, "PDU of %d bytes" % length)
            if len(self.received) < length:
                return
            pdu = bytes(self.received[:length])
            del self.received[:length]
            self.on_pdu(pdu)

    def on_pdu(self, pdu):
        kind = pdu[0]
        if kind == ICREQ:
            self.send(struct.pack("<BBBBIHBBI", ICRESP, 0, 128, 0, 128, 0, 0, 0, MAX_H2C_DATA).ljust(128, b"\0"))
        elif kind == CMD:
            self.head = (self.head + 1) % max(self.size, 1)
            offset = pdu[3]
            self.on_command(pdu[8:72], pdu[offset:] if offset and len(pdu) > offset else b"")
        elif kind == H2CDATA:
            self.on_data(pdu)
        else:
            self.server.close(self, "PDU of type %d" % kind)

    def on_command(self, sqe, data):
        cid = struct.unpack_from("<H", sqe, 2)[0]
        if sqe[0] == FABRICS:
            fabrics.command(self.server, self, sqe, cid, data)
        elif self.controller is None:
            self.server.close(self, "command before Connect")
        elif self.qid == 0:
            self.controller.admin(self, sqe, cid, data)
        else:
            self.controller.io(self, sqe, cid, data)

    def on_data(self, pdu):
        _, tag, offset, length = struct.unpack_from("<HHII", pdu, 8)
        transfer = self.transfers.get(tag)
        if not transfer:
            return self.server.close(self, "data for an unknown transfer")
        transfer["buffer"][offset:offset + length] = pdu[pdu[3]:pdu[3] + length]
        transfer["got"] += length
        if transfer["got"] >= len(transfer["buffer"]):
            del self.transfers[tag]
            transfer["then"](bytes(transfer["buffer"]))
