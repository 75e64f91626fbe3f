"""A view of all file systems in which everything can be written and nothing outside of it changes.

Every writable file system gets an overlay: what is written goes to a layer of its own, which is
thrown away. Imported by the process that becomes the sandbox: standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import NamedTuple

from . import kernel

# File systems that the kernel makes up: no files of anybody. Those under /dev, /proc and /sys are
# taken over as they are or made anew.
_MADE_UP = {
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs",
    "selinuxfs", "sysfs", "tracefs",
}  # fmt: skip
_OWN = ("/dev", "/proc", "/sys")
_SHARED_MEMORY = "/dev/shm"
# The first that the kernel takes. Moving folders and hard links needs the first; without rights over
# the machine only the last ones are allowed.
_OPTIONS = (
    "redirect_dir=on,index=on,volatile",
    "redirect_dir=on,volatile",
    "redirect_dir=on",
    "userxattr,volatile",
    "userxattr",
    "",
)
# How owners appear that a user namespace has no number for.
_NOBODY = 65534
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    id: int
    path: str
    kind: str
    writable: bool


def mounts() -> list[Mount]:
    """The mounts that can be seen from here, parents first."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words, _, rest = line.partition(" - ")
            fields = words.split()
            path = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4])
            path = path.encode("latin-1", "surrogateescape").decode("utf-8", "surrogateescape") if "\\" in fields[4] else path
            kind, _, options = rest.split()[:3]
            writable = "rw" in fields[5].split(",") and "rw" in options.split(",")
            found[path] = Mount(int(fields[0]), path, kind, writable)
    seen = [each for each in found.values() if _id_at(each.path) == each.id]
    return sorted(seen, key=lambda each: each.path.rstrip("/").count("/"))


def _id_at(path: str) -> int | None:
    """The mount that a path leads to: others may lie hidden below it."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("mnt_id:")), None)
    finally:
        os.close(descriptor)


class View:
    """Built below `stage`, an empty folder on a file system of its own. `layers` is the folder that
    holds what is written. `sockets`: paths where somebody listens, which are to lead nowhere; None where
    they are to stay."""

    def __init__(self, stage: str, layers: str, shown: list[Mount], sockets: list[str] | None = None) -> None:
        self.root = os.path.join(stage, "root")
        self._stage = stage
        self._layers = layers
        self._sockets = sockets
        self._count = 0
        self._mounts = shown
        self._overlays: list[str] = []
        # What could not be covered, and can only be read there.
        self.read_only: dict[str, str] = {}

    def build(self) -> None:
        os.mkdir(self.root)
        for each in self._mounts:
            target = self._at(each.path)
            if _within(each.path, _OWN):
                continue
            if each.kind in _MADE_UP:
                self._taken_over(each.path)
            elif not os.path.isdir(each.path):
                self._readable(each.path, target)
                if self._sockets is not None:
                    # A container gets the socket of a server outside in this way.
                    self._hide_socket(each.path)
            elif each.writable or each.path == "/":
                self._cover(each.path, target)
            else:
                kernel.bind(each.path, target, recursive=True)
        for path in ("/dev", "/sys"):
            if os.path.isdir(path):
                self._as_it_is(path)
        if os.path.isdir(_SHARED_MEMORY):
            self._shared_memory()
        self._processes()
        for path in self._sockets or ():
            self._hide_socket(path)

    def reach(self, folders: list[str]) -> None:
        """See to it that something can be written in these folders too where a namespace knows one user only: an overlay cannot
        take a folder of somebody else's into its layer, but starts at one."""
        for folder in sorted(folders, key=lambda path: path.count("/")):
            root = max((each for each in self._overlays if _within(folder, (each,))), key=len, default=None)
            if root is not None and root != folder and not _is_ours(folder, root):
                self.overlay(folder, self._at(folder))

    def share(self, path: str) -> None:
        """What is written into this folder is written for good."""
        kernel.bind(path, self._at(path))

    def _at(self, path: str) -> str:
        return self.root + path.rstrip("/")

    def _as_it_is(self, path: str) -> None:
        """Devices work where their names can only be read, and settings of the kernel are nobody's to change."""
        kernel.bind(path, self._at(path), recursive=True)
        for each in self._mounts:
            if _within(each.path, (path,)) and each.kind != "devpts":
                with contextlib.suppress(OSError):
                    kernel.make_read_only(self._at(each.path))
        with contextlib.suppress(OSError):
            if path not in {each.path for each in self._mounts}:
                kernel.make_read_only(self._at(path))

    def _shared_memory(self) -> None:
        """What lies there can be read; what is written needs memory of its own."""
        target, own = self._at(_SHARED_MEMORY), os.path.join(self._stage, "shm")
        os.mkdir(own)
        kernel.mount("tmpfs", own, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=1777")
        if self.overlay(_SHARED_MEMORY, target, own) is not None:
            kernel.mount("tmpfs", target, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=1777")

    def _hide_socket(self, path: str) -> None:
        """Below an overlay a socket leads nowhere. Where there is none it is covered: its name is not ours to remove."""
        target = self._at(path)
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(target, follow_symlinks=False).st_mode):
                kernel.bind("/dev/null", target)

    def _processes(self) -> None:
        target = self._at("/proc")
        flags = kernel.NOSUID | kernel.NODEV | kernel.NOEXEC
        try:
            kernel.mount("proc", target, "proc", flags)
        except OSError:
            # In containers that hide parts of it: the processes of the machine are seen, and not reached.
            kernel.bind("/proc", target, recursive=True)
        for name in ("sys", "sysrq-trigger", "irq", "bus"):
            with contextlib.suppress(OSError):
                kernel.bind(f"{target}/{name}", f"{target}/{name}")
                kernel.make_read_only(f"{target}/{name}")

    def _taken_over(self, path: str) -> None:
        # One that cannot be taken over holds no files of anybody.
        with contextlib.suppress(OSError):
            kernel.bind(path, self._at(path), recursive=True)

    def _cover(self, path: str, target: str) -> None:
        problem = self.overlay(path, target)
        if problem is None:
            return
        if self._has_mounts(path):
            # Without rights over the machine a folder with mounts in it cannot be covered as a whole.
            self._put_together(path, target)
        elif problem.errno in (errno.EACCES, errno.ENOENT):
            os.chmod(target, 0)
        else:
            self._readable(path, target)
            self.read_only[path] = problem.strerror or str(problem)

    def overlay(self, path: str, target: str, layers: str | None = None) -> OSError | None:
        """Show `path` at `target`, with a layer of its own above; gives what the kernel says where it will not."""
        layer = os.path.join(layers or self._layers, str(self._count))
        self._count += 1
        try:
            status = os.stat(path)
            lower = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as problem:
            return problem
        os.makedirs(f"{layer}/upper")
        os.mkdir(f"{layer}/work")
        upper, work = (os.open(f"{layer}/{name}", os.O_PATH | os.O_CLOEXEC) for name in ("upper", "work"))
        try:
            # The folder that is seen is the upper one.
            os.chmod(f"{layer}/upper", stat.S_IMODE(status.st_mode))
            with contextlib.suppress(OSError):
                os.chown(f"{layer}/upper", status.st_uid, status.st_gid)
            os.utime(f"{layer}/upper", ns=(status.st_atime_ns, status.st_mtime_ns))
            refused = self._mounted(lower, upper, work, target)
        finally:
            for descriptor in (lower, upper, work):
                os.close(descriptor)
        if refused is None:
            self._overlays.append(path)
        return refused

    @staticmethod
    def _mounted(lower: int, upper: int, work: int, target: str) -> OSError | None:
        problem: OSError | None = None
        # By descriptor: commas and colons of a path would be taken for options.
        folders = ",".join(
            f"{name}=/proc/self/fd/{number}" for name, number in (("lowerdir", lower), ("upperdir", upper), ("workdir", work))
        )
        for options in _OPTIONS:
            try:
                kernel.mount("overlay", target, "overlay", 0, f"{folders},{options}".rstrip(","))
            except OSError as refused:
                problem = refused
            else:
                return None
        return problem

    def _has_mounts(self, path: str) -> bool:
        return any(each.path != path and _within(each.path, (path,)) for each in self._mounts)

    def _put_together(self, path: str, target: str) -> None:
        """A folder of its own that shows what the other one holds, entry by entry."""
        if path == "/":
            kernel.bind(target, target)
        points = {each.path for each in self._mounts}
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError:
            os.chmod(target, 0)
            return
        for entry in entries:
            place = os.path.join(target, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(place)
                if entry.path not in points:
                    self._cover(entry.path, place)
            else:
                os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
                if entry.path not in points:
                    self._readable(entry.path, place)
        with contextlib.suppress(OSError):
            os.chmod(target, stat.S_IMODE(os.stat(path).st_mode))

    @staticmethod
    def _readable(path: str, target: str) -> None:
        kernel.bind(path, target)
        kernel.make_read_only(target)


def _within(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _is_ours(folder: str, root: str) -> bool:
    """Whether all folders from below `root` down to this one are of the user that the namespace knows."""
    while len(folder) > len(root):
        try:
            status = os.stat(folder)
        except OSError:
            return False
        if _NOBODY in (status.st_uid, status.st_gid) or (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            return False
        folder = os.path.dirname(folder)
    return True
