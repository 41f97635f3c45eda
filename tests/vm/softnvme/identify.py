# SPDX-License-Identifier: LGPL-2.1-or-later
"""The data structures that Identify and Get Log Page return."""
import struct

from .protocol import ADMIN_COMMANDS, DNR, INVALID_FIELD, INVALID_LOG, INVALID_NAMESPACE, IO_COMMANDS, OK, WRITE, \
    WRITE_ZEROES

PAGE = 4096
MAX_NAMESPACES = 32
DESCRIPTORS = 32


def text(value, length):
    return value.encode()[:length].ljust(length, b" ")


def controller_page(drive, cntlid):
    page = bytearray(PAGE)
    struct.pack_into("<HH", page, 0, drive.vendor_id, drive.vendor_id)
    page[4:24] = text(drive.serial, 20)
    page[24:64] = text(drive.model, 40)
    page[64:72] = text(drive.firmware, 8)
    page[77] = 8                                                    # MDTS
    struct.pack_into("<HI", page, 78, cntlid, drive.version)
    struct.pack_into("<I", page, 92, 0x100)                         # OAES: namespace attribute notices
    page[111] = 1                                                   # CNTRLTYPE: I/O controller
    page[258:262] = bytes([3, 3, 2, 2])                             # ACL, AERL, FRMW, LPA: effects log
    page[263] = drive.npss
    page[265] = drive.apsta
    struct.pack_into("<HH", page, 266, 343, 353)                    # WCTEMP, CCTEMP
    struct.pack_into("<H", page, 320, 10)                           # KAS: units of a second
    page[512:514] = bytes([0x66, 0x44])                             # SQES, CQES
    struct.pack_into("<HI", page, 514, 128, MAX_NAMESPACES)         # MAXCMD, NN
    struct.pack_into("<H", page, 520, 0x4 | 0x8 | 0x10)             # ONCS: DSM, Write Zeroes, Save and Select
    page[525] = drive.vwc
    struct.pack_into("<I", page, 536, 0x100001)                     # SGLS
    page[768:1024] = drive.nqn.encode().ljust(256, b"\0")
    struct.pack_into("<II", page, 1792, (64 + 16384) // 16, 1)      # IOCCSZ, IORCSZ
    page[1803] = 1                                                  # MSDBD
    for i, state in enumerate(drive.states[:DESCRIPTORS]):
        page[2048 + 32 * i:2080 + 32 * i] = state.descriptor()
    return bytes(page)


def namespace_page(namespace):
    page = bytearray(PAGE)
    struct.pack_into("<QQQ", page, 0, namespace.blocks, namespace.blocks, namespace.blocks)
    page[33] = 9
    page[104:120] = namespace.nguid
    struct.pack_into("<HBB", page, 128, 0, namespace.block_bytes.bit_length() - 1, 0)
    return bytes(page)


def identify(drive, cntlid, cns, nsid, csi):
    """(status, page)"""
    namespace = drive.namespaces.get(nsid)
    if cns == 0x01:
        return OK, controller_page(drive, cntlid)
    if cns in (0x00, 0x11):
        if namespace:
            return OK, namespace_page(namespace)
        return (OK, bytes(PAGE)) if 0 < nsid <= MAX_NAMESPACES else (INVALID_NAMESPACE | DNR, None)
    if cns == 0x02:
        return OK, b"".join(struct.pack("<I", i) for i in sorted(drive.namespaces) if i > nsid).ljust(PAGE, b"\0")
    if cns == 0x03:
        if not namespace:
            return INVALID_NAMESPACE | DNR, None
        return OK, (struct.pack("<BBH", 2, 16, 0) + namespace.nguid + struct.pack("<BBHB", 4, 1, 0, 0)).ljust(PAGE, b"\0")
    if cns in (0x05, 0x06):
        return (OK, bytes(PAGE)) if csi == 0 else (INVALID_FIELD | DNR, None)
    if cns == 0x08 and namespace:
        page = bytearray(PAGE)
        page[14] = 1                                                # NSTAT: ready
        return OK, bytes(page)
    return INVALID_FIELD | DNR, None


def effects_log():
    page = bytearray(PAGE)
    for opcode in ADMIN_COMMANDS:
        struct.pack_into("<I", page, 4 * opcode, 1)
    for opcode in IO_COMMANDS:
        struct.pack_into("<I", page, 1024 + 4 * opcode, 3 if opcode in (WRITE, WRITE_ZEROES) else 1)
    return bytes(page)


def log_page(drive, log_id, offset, length):
    """(status, bytes)"""
    if log_id == 0x02:                                              # SMART: 32 °C, spare 100 %, used 1 %
        full = struct.pack("<BHBBB", 0, 305, 100, 10, 1).ljust(512, b"\0")
    elif log_id in (0x01, 0x03):
        full = bytes(PAGE)
    elif log_id == 0x04:
        full = b"".join(struct.pack("<I", i) for i in sorted(drive.namespaces)).ljust(PAGE, b"\0")
    elif log_id == 0x05:
        full = effects_log()
    else:
        return INVALID_LOG | DNR, None
    return OK, full[offset:offset + length].ljust(length, b"\0")
