"""The calls of the Linux kernel that a view of its own is made with, which Python 3.11 does not offer.

Imported by the process that becomes the sandbox: standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

NEWNS, NEWUSER, NEWPID, NEWNET, NEWIPC = 0x20000, 0x10000000, 0x20000000, 0x40000000, 0x8000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, NOATIME, BIND, REC, PRIVATE, RELATIME = (
    1, 2, 4, 8, 32, 1024, 4096, 16384, 1 << 18, 1 << 21,
)  # fmt: skip
_DETACH = 2
_PDEATHSIG, _DROP_BOUNDING, _NO_NEW_PRIVS = 1, 24, 38
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS = 0x8913, 0x8914, 0x8916
_UP = 1
# statvfs names one flag by another number than mount does.
_STATVFS_RELATIME = 4096

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    names = [os.fsencode(name) or None for name in (source, target, kind)]
    result = _libc.mount(*names, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _checked(result, f"mount {kind or 'bind'} at {target}")


def bind(source: str, target: str, *, recursive: bool = False) -> None:
    mount(source, target, flags=BIND | (REC if recursive else 0))


def make_read_only(target: str) -> None:
    """The other flags of the mount stay: without rights over it they must not be taken off."""
    found = os.statvfs(target).f_flag
    kept = found & (NOSUID | NODEV | NOEXEC | NOATIME)
    kept |= RELATIME if found & _STATVFS_RELATIME else 0
    mount("", target, flags=REMOUNT | BIND | RDONLY | kept)


def change_root(new: str) -> None:
    """`new`, which is a mount, becomes "/", and nothing of the old root can be reached any more."""
    os.chdir(new)
    _checked(_libc.pivot_root(b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


def unmount(target: str) -> None:
    """At once for everybody who looks there from now on."""
    _checked(_libc.umount2(os.fsencode(target), _DETACH), f"umount of {target}")


def die_with_parent(number: int) -> None:
    """This process gets the signal when the one that started it is gone, however that ended."""
    _checked(_libc.prctl(_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0), "prctl")


def give_up_new_rights() -> None:
    """No program that this process starts gets rights that it has not, as sudo would."""
    _checked(_libc.prctl(_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def loopback_up(addresses: list[str]) -> None:
    """Switch on the loopback device of this network, which also answers to these addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for number, address in enumerate(addresses, 1):
            name = f"lo:{number}".encode()
            packed = socket.AF_INET.to_bytes(2, "little") + bytes(2) + socket.inet_aton(address)
            fcntl.ioctl(asking, _SET_ADDRESS, struct.pack("16s24s", name, packed))
        request = struct.pack("16sh22x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(asking, _GET_FLAGS, request), 16)
        fcntl.ioctl(asking, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))


def drop_rights(numbers: tuple[int, ...]) -> None:
    """Programs that this process starts from now on never get these capabilities."""
    for number in numbers:
        # What it has not cannot be dropped either.
        _libc.prctl(_DROP_BOUNDING, ctypes.c_ulong(number), 0, 0, 0)
