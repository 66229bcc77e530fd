"""Image of a guest with RDMA devices, kept in a cache: the kernel of a Debian package, an initial file system with the
required modules, and a layer over the host's root with packages that the host lacks."""

import contextlib
import fcntl
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections import namedtuple

KERNEL_PACKAGE = "linux-image-amd64"  # The smaller -cloud- kernel has neither rdma_rxe nor 9p.
# Modules to load, without their dependencies, which are found. rdma_rxe requires a crc32 module by name.
MODULES = ("virtio_pci virtio_console 9pnet_virtio 9p overlay veth bridge sch_netem sch_tbf "
           "crc32_generic ib_uverbs rdma_ucm rdma_rxe").split()
# Packages for the guest's own scripts and for programs that use verbs.
PACKAGES = ["iproute2", "libibverbs1", "ibverbs-providers"]

Image = namedtuple("Image", "kernel initial layer")  # Paths.


class Missing(Exception):
    """This machine cannot run a guest; the message has the reason."""


def say(program, *arguments, cwd=None):
    """Runs a program and returns its output. Raises Missing if the program does not exist or fails."""
    try:
        done = subprocess.run([program, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise Missing(f"this machine has no {program}, which fetches Debian packages") from None
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise Missing(f"{program} {' '.join(arguments[-3:])} failed: {'; '.join(words)}")
    return done.stdout.decode(errors="replace")


class Apt:
    """Runs apt with the system's package lists, or with its own lists if those lack a package. Changes nothing outside its
    folder."""

    def __init__(self, folder):
        self.folder = folder
        self.options = ["-o", "APT::Sandbox::User=", "-o", "Acquire::http::Timeout=20"]

    def ask(self, program, *arguments, cwd=None):
        try:
            return say(program, *self.options, *arguments, cwd=cwd)
        except Missing:
            if len(self.options) > 2 or shutil.which(program) is None:
                raise
        for part in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        self.options += ["-o", f"Dir::State::Lists={self.folder}/lists", "-o", f"Dir::Cache={self.folder}/cache"]
        say("apt-get", *self.options, "-q", "update")
        return say(program, *self.options, *arguments, cwd=cwd)

    def unpack(self, names, target):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            self.ask("apt-get", "-q", "download", *names, cwd=folder)
            for deb in sorted(os.listdir(folder)):
                say("dpkg-deb", "-x", os.path.join(folder, deb), target)

    def not_installed(self, names):
        plan = self.ask("apt-get", "-q", "-s", "--no-install-recommends", "--no-upgrade", "install", *names)
        return re.findall(r"^Inst (\S+)", plan, re.M)

    def newest_kernel(self):
        found = re.search(r"Depends: (linux-image-\S+)", self.ask("apt-cache", "depends", KERNEL_PACKAGE))
        if not found:
            raise Missing(f"apt-cache finds no kernel of {KERNEL_PACKAGE}")
        return found.group(1)


# ---- The initial file system ----

def archive(files):
    """Returns a cpio archive ("newc") of (path, mode, bytes); bytes are None for folders. The kernel treats concatenated
    archives as one."""
    parts = []
    for path, mode, data in [*files, ("TRAILER!!!", 0, b"")]:
        kind = 0o040000 if data is None else 0o100000
        name, data = path.encode() + b"\0", data or b""
        numbers = (0, kind | mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
        parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
    return b"".join(parts)


def read_module(path):
    with open(path, "rb") as file:
        data = file.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def modules_in_order(root):
    """Returns (name, bytes) of MODULES and their dependencies. Each module follows its dependencies."""
    paths = {}
    for folder, _, names in os.walk(os.path.join(root, "lib/modules")):
        for name in names:
            if ".ko" in name:
                paths[name.split(".ko")[0].replace("-", "_")] = os.path.join(folder, name)
    order = {}

    def add(name):
        if name in order:
            return
        if name not in paths:
            raise Missing(f"the kernel package has no module {name}")
        data = read_module(paths[name])
        needs = re.search(rb"\0depends=([^\0]*)\0", data).group(1).decode()
        for other in filter(None, needs.split(",")):
            add(other.replace("-", "_"))
        order[name] = data

    for name in MODULES:
        add(name)
    return list(order.items())


def unpacked_kernel(boot_image):
    """Returns the ELF file in an image packed by xz, else the image. QEMU starts an ELF file directly, which saves seconds of
    emulated unpacking."""
    sectors = boot_image[0x1F1]
    offset, length = struct.unpack_from("<II", boot_image, 0x248)
    begin = (sectors + 1) * 512 + offset
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(boot_image[begin:begin + length])
    except lzma.LZMAError:
        return boot_image


def make_kernel(apt, target):
    with tempfile.TemporaryDirectory(dir=apt.folder) as root:
        apt.unpack([apt.newest_kernel(), "busybox-static"], root)
        [boot] = [name for name in os.listdir(os.path.join(root, "boot")) if name.startswith("vmlinuz-")]
        with open(os.path.join(root, "boot", boot), "rb") as file:
            kernel = unpacked_kernel(file.read())
        with open(os.path.join(root, "bin/busybox"), "rb") as file:
            busybox = file.read()
        modules = modules_in_order(root)
    files = [("bin", 0o755, None), ("modules", 0o755, None), ("bin/busybox", 0o755, busybox)]
    files += [(f"modules/{number:03}-{name}.ko", 0o644, data) for number, (name, data) in enumerate(modules)]
    os.makedirs(target)
    for name, data in (("kernel", kernel), ("initial", archive(files))):
        with open(os.path.join(target, name), "wb") as file:
            file.write(data)


# ---- The cache ----

@contextlib.contextmanager
def only_one(path):
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def add_packages(apt, layer, wanted):
    """Adds packages to the layer. Never removes any, since another guest may use them."""
    listing = layer + ".packages"
    known = set()
    if os.path.exists(listing):
        with open(listing, encoding="ascii") as file:
            known = set(file.read().split())
    if set(wanted) <= known:
        return
    names = apt.not_installed(sorted(set(wanted) | known))
    for folder in ("bin", "sbin", "lib", "lib64"):  # These are links on the host, too.
        os.makedirs(os.path.join(layer, "usr", folder), exist_ok=True)
        if not os.path.lexists(os.path.join(layer, folder)):
            os.symlink("usr/" + folder, os.path.join(layer, folder))
    if names:
        apt.unpack(names, layer)
    with open(listing, "w", encoding="ascii") as file:
        file.write("\n".join(sorted(set(wanted) | known)) + "\n")


def prepare(cache, packages):
    """Creates missing parts of the cache and returns the Image. The kernel for a list of modules is created once, and stays
    unchanged until the cache is removed."""
    os.makedirs(os.path.join(cache, "apt"), exist_ok=True)
    kernel = os.path.join(cache, "kernel-" + "-".join(MODULES))
    layer = os.path.join(cache, "layer")
    apt = Apt(os.path.join(cache, "apt"))
    with only_one(os.path.join(cache, "lock")):
        if not os.path.isdir(kernel):
            shutil.rmtree(kernel + ".new", ignore_errors=True)
            make_kernel(apt, kernel + ".new")
            os.rename(kernel + ".new", kernel)
        add_packages(apt, layer, PACKAGES + packages)
    return Image(os.path.join(kernel, "kernel"), os.path.join(kernel, "initial"), layer)
