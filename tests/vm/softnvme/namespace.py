# SPDX-License-Identifier: LGPL-2.1-or-later
"""A namespace: a block device in memory, and which of its blocks would not survive a loss of power.

What a controller acknowledged while its write cache was on is volatile until a Flush through that same controller: that is all
that NVMe promises where several controllers share a namespace (`"one_cache": true`: a Flush through any of them will do).
"""
import hashlib
import mmap


class Namespace:
    def __init__(self, facts, nqn):
        self.nsid = facts.get("nsid", 1)
        self.block_bytes = facts.get("block_bytes", 512)
        self.nmic, self.one_cache = facts.get("nmic", 0), facts.get("one_cache", False)
        self.memory = mmap.mmap(-1, int(facts.get("size_mib", 8) * 1048576))
        self.blocks = len(self.memory) // self.block_bytes
        # The kernel refuses two namespaces of one NGUID, so each gets its own, the same in every run.
        self.nguid = hashlib.sha256(f"{nqn} {self.nsid}".encode()).digest()[:16]
        self.volatile = {}                  # block: [what the medium holds, who wrote, number of the write]
        self.lost = set()                   # blocks that a power cut took
        self.writes = 0

    def read(self, first, count):
        return self.memory[first * self.block_bytes:(first + count) * self.block_bytes]

    def write(self, first, data, writer=None):
        """writer: whose volatile cache holds it; None: it is durable."""
        self.writes += 1
        for block in range(first, first + -(-len(data) // self.block_bytes)):
            if writer is None:
                self.volatile.pop(block, None)
            elif block in self.volatile:
                self.volatile[block][1:] = writer, self.writes
            else:
                self.volatile[block] = [self.read(block, 1), writer, self.writes]
            self.lost.discard(block)
        offset = first * self.block_bytes
        self.memory[offset:offset + len(data)] = data

    def flush_point(self, writer):
        """What a Flush that is submitted now will have made durable when it completes."""
        return [(block, number, self.read(block, 1)) for block, (_, by, number) in self.volatile.items()
                if by == writer or self.one_cache]

    def flushed(self, point):
        for block, number, content in point:
            found = self.volatile.get(block)
            if found and found[2] == number:
                del self.volatile[block]
            elif found:                     # overwritten meanwhile
                found[0] = content

    def power_cut(self):
        """The number of blocks that were acknowledged and are lost."""
        taken = len(self.volatile)
        for block, (content, _, _) in self.volatile.items():
            self.memory[block * self.block_bytes:(block + 1) * self.block_bytes] = content
        self.lost |= set(self.volatile)
        self.volatile.clear()
        return taken

    def as_json(self):
        return {"volatile": ranges(self.volatile), "lost": ranges(self.lost), "writes": self.writes}


def ranges(blocks):
    """[[first, count], …]"""
    found = []
    for block in sorted(blocks):
        if found and found[-1][0] + found[-1][1] == block:
            found[-1][1] += 1
        else:
            found.append([block, 1])
    return found
