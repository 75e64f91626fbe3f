"""The process that becomes the sandbox: it gets its orders as one line of JSON and runs a command in there.

Started by path, with nothing imported but the standard library: a process with threads, which numpy
starts, gets no user namespace. Three processes: the first, which keeps watch over the one that gives
the orders; its child, which is the first of the sandbox's processes, and whose end is the end of all of
them; and the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from typing import Any, NoReturn

from . import kernel, undo
from .view import View, mounts

REFUSED = 125
# What a script needs least and could do most harm with: modules, raw devices, mounts, reboots, the clock.
_DROPPED_RIGHTS = (16, 17, 21, 22, 25, 27)


def main() -> NoReturn:
    orders = json.loads(sys.stdin.buffer.readline())
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != orders["parent"]:
        os._exit(REFUSED)
    if orders.get("streams"):
        # Ctrl-C at the terminal is the script's.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if orders.get("unsafe"):
        os._exit(_watch_over(_started_plainly(orders)))
    sockets = [] if orders["network"] else _bound_sockets()
    try:
        _own_namespaces(network=orders["network"])
    except OSError as problem:
        _refuse(f"the kernel gives it no view of its own ({problem.filename}: {problem.strerror})")
    first = os.fork()
    if not first:
        _first_process(orders, sockets)
    os._exit(_watch_over(first))


def _started_plainly(orders: dict[str, Any]) -> int:
    """Without a sandbox; it ends with this process all the same."""
    command = os.fork()
    if not command:
        kernel.die_with_parent(signal.SIGKILL)
        _become(orders)
    _say({"started": True})
    return command


def _own_namespaces(*, network: bool) -> None:
    flags = kernel.NEWNS | kernel.NEWPID | kernel.NEWIPC | (0 if network else kernel.NEWNET)
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            kernel.unshare(flags)
        except PermissionError:
            # In a container root has not all rights.
            pass
        else:
            return
    kernel.unshare(flags | kernel.NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _watch_over(first: int) -> int:
    """Wait for the sandbox, or for the end of whoever gave the orders: both are heard of."""
    gone = os.pidfd_open(first)
    ready, _, _ = select.select([gone, sys.stdin.fileno()], [], [])
    if gone not in ready:
        os.kill(first, signal.SIGKILL)
    _, status = os.waitpid(first, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else REFUSED


def _first_process(orders: dict[str, Any], sockets: list[str]) -> NoReturn:
    if orders.get("probe"):
        _probe()
    try:
        kernel.die_with_parent(signal.SIGKILL)
        if not orders["network"]:
            with contextlib.suppress(OSError):
                kernel.loopback_up(orders["addresses"])
        _enter(orders, None if orders["network"] else sockets)
        if orders["kept"] is not None:
            undo.undo(orders["kept"])
        for path in orders["hidden"]:
            undo.remove(path)
    except OSError as problem:
        _refuse(f"the view of its own cannot be made ({problem.filename}: {problem.strerror})")
    command = os.fork()
    if not command:
        _become(orders)
    _say({"started": True})
    while True:
        number, status = os.wait()
        if number == command:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _probe() -> NoReturn:
    """Only whether the kernel would let one be made."""
    try:
        kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)
        stage = next(path for path in ("/tmp", "/var/tmp", "/mnt", "/dev/shm") if os.path.isdir(path))
        kernel.mount("tmpfs", stage, "tmpfs", 0, "mode=700,size=1m")
        problem = _tried(stage, stage)
        if problem is not None:
            raise problem
    except OSError as problem:
        _refuse(f"the kernel gives it no view of its own ({problem.filename}: {problem.strerror})")
    _say({"started": True})
    os._exit(0)


def _tried(stage: str, layers: str) -> OSError | None:
    """What the kernel says to a layer that is kept in this folder; None where it takes one."""
    for name in ("lower", "seen"):
        os.mkdir(os.path.join(stage, name))
    tried = os.path.join(layers, "tried")
    os.mkdir(tried)
    seen = os.path.join(stage, "seen")
    problem = View(stage, tried, []).overlay(os.path.join(stage, "lower"), seen)
    if problem is None:
        kernel.unmount(seen)
    return problem


def _enter(orders: dict[str, Any], sockets: list[str] | None) -> None:
    kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)
    stage = orders["stage"]
    shown = mounts()
    kernel.mount("tmpfs", stage, "tmpfs", 0, f"mode=700,size={orders['size']}")
    layers = orders["layers"]
    # Not every file system can hold layers.
    if layers is None or _tried(stage, layers) is not None:
        layers = os.path.join(stage, "layers")
        os.mkdir(layers)
    view = View(stage, layers, shown, sockets)
    view.build()
    for path in orders["written"]:
        for place, reason in view.read_only.items():
            if path == place or path.startswith(place.rstrip("/") + "/"):
                raise OSError(None, reason, place)
    if _is_in_user_namespace():
        view.reach(orders["needed"])
    view.share(orders["shared"])
    kernel.change_root(view.root)


def _is_in_user_namespace() -> bool:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split()[2:] == ["1"]


def _become(orders: dict[str, Any]) -> NoReturn:
    try:
        nothing = os.open("/dev/null", os.O_RDWR)
        for stream, given in enumerate(orders.get("streams") or (nothing, nothing, nothing)):
            os.dup2(given, stream)
        # What the first run was given to write to is there, and leads nowhere.
        for descriptor in orders.get("inherited", ()):
            os.dup2(nothing, descriptor)
            os.set_inheritable(descriptor, True)  # noqa: FBT003 - as it is called
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if not orders.get("unsafe"):
            if not orders.get("streams"):
                os.setsid()
            kernel.drop_rights(_DROPPED_RIGHTS)
            kernel.give_up_new_rights()
        os.chdir(orders["folder"])
        os.execve(orders["command"][0], orders["command"], orders["environment"])  # noqa: S606 - the user's script is the job
    finally:
        os._exit(REFUSED)


def _bound_sockets() -> list[str]:
    """Paths at which somebody on this machine listens: the network of its own does not hide those."""
    found = []
    with contextlib.suppress(OSError), open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words = line.rstrip("\n").split(" ", 7)
            path = line.rstrip("\n")[line.find("/") :] if len(words) > 7 and "/" in words[-1] else ""
            if path.startswith("/"):
                found.append(path)
    return found


def _refuse(reason: str) -> NoReturn:
    _say({"refused": reason})
    os._exit(REFUSED)


def _say(news: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(news) + "\n")
    sys.stdout.flush()
