# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rig: boots a real Debian kernel in QEMU, with emulation only (no KVM), and runs one script in it.

    kernels   finds an unpacked kernel and the modules the guest needs
    image     the root file system that is loaded as initramfs
    target    starts softnvme for the time of a run
    machine   QEMU, its monitor, and the lines that guest and host exchange
    case      what a case script declares in its head
"""
import os

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
CACHE = os.environ.get("NVMEPOLICYD_VM_CACHE", "/var/cache/nvmepolicyd-vm")


class RigError(Exception):
    """Something the rig needs is missing or broken; the text says what to do."""
