# SPDX-License-Identifier: LGPL-2.1-or-later
"""A namespace: a block device in memory."""
import hashlib
import mmap


class Namespace:
    def __init__(self, facts, nqn):
        self.nsid = facts.get("nsid", 1)
        self.block_bytes = facts.get("block_bytes", 512)
        self.memory = mmap.mmap(-1, int(facts.get("size_mib", 8) * 1048576))
        self.blocks = len(self.memory) // self.block_bytes
        # The kernel refuses two namespaces of one NGUID, so each gets its own, the same in every run.
        self.nguid = hashlib.sha256(f"{nqn} {self.nsid}".encode()).digest()[:16]

    def read(self, first, count):
        return self.memory[first * self.block_bytes:(first + count) * self.block_bytes]

    def write(self, first, data):
        offset = first * self.block_bytes
        self.memory[offset:offset + len(data)] = data
