"""Connections that a script makes to other machines: a second run in a sandbox has no network."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from trueline.recorder.patches import Patches
from trueline.recorder.recorder import Recorder
from trueline.recorder.watches import noting

_MOST_ADDRESSES = 100


class NetworkWatch:
    """Records `connected` events, one for every address that is not this machine's own. Libraries of native code are not seen."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._known: set[str] = set()

    def install(self, patches: Patches) -> None:
        for name in ("connect", "connect_ex"):
            patches.replace(socket.socket, name, self._watched(getattr(socket.socket, name)))

    def _watched(self, original: Any) -> Any:
        def watched(connection: socket.socket, address: Any) -> Any:
            if self.recorder.active and len(self._known) < _MOST_ADDRESSES:
                self._connecting(connection, address)
            return original(connection, address)

        return watched

    @noting
    def _connecting(self, connection: socket.socket, address: Any) -> None:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host, port = str(address[0]), address[1]
        known = f"{host}:{port}"
        if known in self._known or _is_this_machine(host):
            return
        self._known.add(known)
        self.recorder.event("connected", location=self.recorder.location(), detail={"address": known})


def _is_this_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
