# SPDX-License-Identifier: LGPL-2.1-or-later
"""The guest's root file system: busybox, python, nvme-cli, fio, udev and the kernel's modules, packed for the kernel to
unpack into memory. The part that does not change between runs is kept in the cache. Where a root image follows, busybox and
modules are enough."""
import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile

from . import CACHE, HERE, RigError
from .kernels import ROOT_MODULES

KMOD = "/usr/bin/kmod"
PROGRAMS = ("/usr/sbin/nvme", "/usr/bin/fio", KMOD, "/usr/bin/bash")
GUEST_FILES = sorted(os.listdir(f"{HERE}/guest"))
KEPT_IMAGES = 6

ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\ndisk:x:6:\ntty:x:5:\nkmem:x:15:\nvideo:x:44:\naudio:x:29:\nlp:x:7:\ncdrom:x:24:\ntape:x:26:\n"
             "input:x:101:\nrender:x:102:\nsgx:x:103:\nkvm:x:104:\ndialout:x:20:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "hostname": "guest\n",
    "machine-id": "0123456789abcdef0123456789abcdef\n",
    "nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:00000000-1111-2222-3333-444444444444\n",
    "nvme/hostid": "00000000-1111-2222-3333-444444444444\n",
}


def libraries_of(path):
    output = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/[^ ]+) \(0x", output)


class Tree:
    """A directory that becomes a root file system with merged /usr. Libraries go to another one where that is given."""

    def __init__(self, root, libraries=None):
        self.root = root
        self.libraries = Tree(libraries) if libraries else self

    def make_base(self):
        for path in ("usr/bin usr/sbin usr/lib usr/lib64 proc sys dev run tmp etc/nvme bb rig share root var/lib var/log"
                     " usr/lib/systemd").split():
            os.makedirs(os.path.join(self.root, path), exist_ok=True)
        for path in ("bin", "sbin", "lib", "lib64"):
            os.symlink("usr/" + path, os.path.join(self.root, path))
        os.symlink("/run", os.path.join(self.root, "var/run"))

    def place(self, path):
        path = path.lstrip("/")
        return os.path.join(self.root, "usr/" + path if path.split("/")[0] in ("bin", "sbin", "lib", "lib64") else path)

    def link(self, target, path):
        if not os.path.lexists(self.place(path)):
            os.symlink(target, self.place(path))

    def file(self, source, path=None):
        place = self.place(path or source)
        if not os.path.lexists(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy2(os.path.realpath(source), place)

    def program(self, source, path=None):
        if not os.path.exists(source):
            raise RigError(f"no {source} on this machine: run scripts/setup")
        self.file(source, path)
        for library in libraries_of(os.path.realpath(source)):
            self.libraries.file(library)

    def tree(self, source, path, without=()):
        for base, directories, files in os.walk(source):
            directories[:] = [d for d in directories if d not in without]
            for name in files:
                if os.path.isfile(os.path.join(base, name)):
                    self.file(os.path.join(base, name), os.path.join(path, os.path.relpath(base, source), name))

    def add(self, what):
        """SOURCE[:PATH]: a directory, a file, or a program with its libraries."""
        source, _, path = what.partition(":")
        if os.path.isdir(source):
            return self.tree(source, path or source)
        if not os.path.exists(source):
            raise RigError(f"no {source} to put into the guest")
        with open(source, "rb") as file:
            is_program = file.read(4) == b"\x7fELF" and not source.endswith(".ko")
        (self.program if is_program else self.file)(source, path or "/usr/bin/" + os.path.basename(source))

    def pack(self, out):
        with open(out, "wb") as file, subprocess.Popen(["find", ".", "-mindepth", "1", "-print0"], cwd=self.root,
                                                       stdout=subprocess.PIPE) as names:
            subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=self.root,
                           stdin=names.stdout, stdout=file, check=True)


def add_modules(tree, kernel, replacements, also):
    directory = f"/lib/modules/{kernel.release}"
    for name, source in kernel.modules(replacements, also).items():
        place = tree.place(f"{directory}/kernel/{name}.ko")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with (lzma.open if source.endswith(".xz") else open)(source, "rb") as packed, open(place, "wb") as file:
            shutil.copyfileobj(packed, file)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        tree.file(os.path.join(kernel.modules_directory, name), f"{directory}/{name}")
    subprocess.run(["depmod", "-b", tree.root, kernel.release], check=True)


def add_python(tree):
    python = os.path.realpath("/usr/bin/python3")
    version = os.path.basename(python)
    tree.program(python)
    tree.link(version, "/usr/bin/python3")
    tree.tree(f"/usr/lib/{version}", f"/usr/lib/{version}",
              without=("test", "tests", "idlelib", "lib2to3", "ensurepip", "distutils", "pydoc_data", "tkinter", "unittest",
                       "turtledemo", "__pycache__", f"config-{version[len('python'):]}-x86_64-linux-gnu"))
    for extension in glob.glob(f"/usr/lib/{version}/lib-dynload/*.so"):
        for library in libraries_of(extension):
            tree.file(library)


def add_udev(tree):
    """From the unpacked package, so that the host needs no udevd."""
    package = os.path.join(CACHE, "udev")
    tree.program(package + "/bin/udevadm", "/usr/bin/udevadm")
    tree.link("/usr/bin/udevadm", "/usr/lib/systemd/systemd-udevd")
    tree.tree(package + "/lib/udev", "/usr/lib/udev", without=("hwdb.d",))


def build_base(root, kernel, replacements, systemd):
    tree = Tree(root)
    tree.make_base()
    add_modules(tree, kernel, replacements, ROOT_MODULES if systemd else ())
    tree.file("/bin/busybox", "/bb/busybox")
    applets = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in set(applets) - {"busybox"}:
        tree.link("/bb/busybox", "/bb/" + applet)
    tree.link("/bb/busybox", "/usr/bin/sh")
    for program in (KMOD,) if systemd else PROGRAMS:
        tree.program(program)
    for tool in ("modprobe", "depmod", "lsmod", "rmmod", "insmod", "modinfo"):
        tree.link("../bin/kmod", "/usr/sbin/" + tool)
    if not systemd:
        add_udev(tree)
        add_python(tree)
    for name, text in ETC.items():
        with open(os.path.join(root, "etc", name), "w", encoding="utf-8") as file:
            file.write(text)
    shutil.copy(f"{HERE}/guest/init", root + "/init")
    os.chmod(root + "/init", 0o755)
    for name in GUEST_FILES:
        shutil.copy(f"{HERE}/guest/{name}", root + "/rig/" + name)
    return tree


def base_image(kernel, replacements, systemd):
    """The unchanging part, named after everything that goes into it."""
    inputs = [__file__, f"{HERE}/rig/kernels.py", *PROGRAMS, *replacements] + [f"{HERE}/guest/{f}" for f in GUEST_FILES]
    digest = hashlib.sha256(repr((kernel.directory, kernel.release, systemd)).encode())
    for path in inputs:
        if not os.path.exists(path):
            raise RigError(f"no {path} on this machine: run scripts/setup")
        status = os.stat(path)
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    directory = os.path.join(CACHE, "images")
    os.makedirs(directory, exist_ok=True)
    image = os.path.join(directory, digest.hexdigest()[:16] + ".cpio")
    with open(os.path.join(directory, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(image):
            with tempfile.TemporaryDirectory(dir=directory) as root:
                build_base(root, kernel, replacements, systemd).pack(image + ".part")
            os.rename(image + ".part", image)
        os.utime(image)
        for old in sorted(glob.glob(directory + "/*.cpio"), key=os.path.getmtime)[:-KEPT_IMAGES]:
            os.unlink(old)
    return image


def join(parts, out):
    """Several archives behind one another; the kernel unpacks them in that order."""
    with open(out, "wb") as file:
        for part in parts:
            with open(part, "rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
            file.write(b"\0" * (-file.tell() % 512))
