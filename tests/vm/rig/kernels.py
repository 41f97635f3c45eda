# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds a kernel that fetch-kernels has unpacked, and its modules with what they depend on."""
import glob
import os
import re
import subprocess

from . import CACHE, RigError

# What every guest gets; names that a kernel has built in are fine.
MODULES = ("nvme nvme-tcp nvme-fabrics virtio_pci virtio_net 9p 9pnet_virtio af_packet crc32c_generic crc32c-intel "
           "uhid hid-generic").split()
# To find and mount a root file system.
ROOT_MODULES = ("virtio_blk", "ext4")
# Debian's configurations build these in, and modules.builtin does not always say so under that name.
ALWAYS_BUILT_IN = ("af_packet", "virtio_pci")


def module_name(path):
    return re.sub(r"\.ko(\.xz|\.zst)?$", "", os.path.basename(path)).replace("-", "_")


class Kernel:
    def __init__(self, name):
        """name: 6.1, 6.12, or a directory that holds boot/vmlinuz-* and lib/modules/*"""
        for directory in (name, os.path.join(CACHE, name)):
            images = sorted(glob.glob(os.path.join(directory, "boot/vmlinuz-*")))
            if images:
                break
        else:
            raise RigError(f"no kernel {name!r} in {CACHE}: run scripts/setup test (or tests/vm/fetch-kernels)")
        self.name, self.directory, self.image = name, os.path.realpath(directory), images[-1]
        self.release = os.path.basename(self.image)[len("vmlinuz-"):]
        self.modules_directory = os.path.join(self.directory, "lib/modules", self.release)

    def test_power(self):
        path = os.path.join(CACHE, "test-power", self.name, "test_power.ko")
        if not os.path.exists(path):
            raise RigError(f"no {path}: run scripts/setup test (or tests/vm/fetch-kernels)")
        return path

    def modules(self, replacements, also=()):
        """{name: file} of MODULES, `also` and `replacements` (files that win over the kernel's own), dependencies included."""
        table = os.path.join(self.modules_directory, "modules.dep")
        if not os.path.exists(table) or not os.path.getsize(table):
            subprocess.run(["depmod", "-b", self.directory, self.release], check=True)
        with open(table, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        needs = {module_name(words[0].rstrip(":")): [module_name(w) for w in words[1:]] for words in lines}
        files = {module_name(words[0].rstrip(":")): os.path.join(self.modules_directory, words[0].rstrip(":"))
                 for words in lines}
        files.update({module_name(path): path for path in replacements})
        with open(os.path.join(self.modules_directory, "modules.builtin"), encoding="utf-8") as file:
            built_in = {module_name(line.strip()) for line in file} | set(ALWAYS_BUILT_IN)

        wanted, todo = {}, [m.replace("-", "_") for m in (*MODULES, *also)] + [module_name(path) for path in replacements]
        while todo:
            name = todo.pop()
            if name in wanted or (name in built_in and name not in files):
                continue
            if name not in files:
                raise RigError(f"kernel {self.release} has no module {name}")
            wanted[name] = files[name]
            todo += needs.get(name, [])
        return wanted
