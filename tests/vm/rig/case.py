# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a case script declares in its head, in lines `#: KEY VALUE`.

    #: drives SLUG …        drives that softnvme plays (tests/drives or tests/vm/drives); connected before the script starts
    #: late SLUG …          drives that the script connects itself (connect_late SLUG)
    #: scenario OPTIONS     options of scenario-from-drives
    #: boot ARGUMENTS       kernel command line; each such line is one boot, and the script sees its number in $BOOT
    #: modules NAME …       more kernel modules; test_power is the only one so far
    #: qemu ARGUMENTS       more of the machine
    #: udev                 run systemd-udevd
    #: systemd              boot Debian with systemd (make-root-image), and our programs and files installed in it
    #: package              with systemd: the Debian package instead, as /rig/nvmepolicyd.deb, not installed
    #: without-programs     the case tests the rig, not our programs
    #: tools NAME …         programs of the build directory that are only for tests, as /rig/NAME
    #: time SECONDS         limit of one boot (default 180)
"""
import os
import re

from . import HERE, RigError

KEYS = {"drives", "late", "scenario", "boot", "modules", "qemu", "udev", "systemd", "package", "without-programs",
        "tools", "time"}
DRIVE_DIRECTORIES = (os.path.join(os.path.dirname(HERE), "drives"), os.path.join(HERE, "drives"))


class Case:
    def __init__(self, path):
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.path = path if os.path.isfile(path) else os.path.join(HERE, "cases", self.name + ".sh")
        if not os.path.exists(self.path):
            raise RigError(f"no case {path}")
        self.declared = {}
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                found = re.match(r"#: (\S+) ?(.*)$", line)
                if found and found[1] not in KEYS:
                    raise RigError(f"{self.path}:{number}: unknown key {found[1]!r}")
                if found:
                    self.declared.setdefault(found[1], []).append(found[2].strip())

    def words(self, key):
        return [word for line in self.declared.get(key, []) for word in line.split()]

    def has(self, key):
        return key in self.declared

    def boots(self):
        return self.declared.get("boot", [""])

    def time_limit(self):
        return float(self.words("time")[0]) if self.has("time") else 180.0

    def drive_files(self, key):
        return [find_drive(slug) for slug in self.words(key)]


def find_drive(slug):
    for directory in DRIVE_DIRECTORIES:
        path = os.path.join(directory, slug + ".json")
        if os.path.exists(path):
            return path
    raise RigError(f"no drive file {slug}.json in {' or '.join(DRIVE_DIRECTORIES)}")
