"""Who recorded a run: a run that this user recorded here may be acted upon, any other is data.

`origin` in a run's directory is a signature over what the run says of itself and where it lies, made with a
key that only this user has. A run that was copied, or came from elsewhere, has none that fits.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from trueline.errors import Unreadable
from trueline.model import RunInfo
from trueline.reading import read_whole

ORIGIN_FILE = "origin"
_KEY_BYTES = 32
_LONGEST = 200


def sign(directory: Path, info: RunInfo) -> None:
    """A user without a place for a key records all the same; such runs are not run again unasked."""
    # RuntimeError: there is no home.
    with suppress(OSError, RuntimeError):
        key = _key(make=True)
        (directory / ORIGIN_FILE).write_text(_signature(key, directory, info), encoding="ascii")


def is_own(directory: Path, info: RunInfo) -> bool:
    """Whether this user recorded this run in this place."""
    try:
        key = _key(make=False)
        given = read_whole(directory / ORIGIN_FILE, _LONGEST)
    except (OSError, RuntimeError, Unreadable):
        return False
    return hmac.compare_digest(given, _signature(key, directory, info).encode())


def key_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "trueline"


def _key(*, make: bool) -> bytes:
    folder = key_folder()
    path = folder / "key"
    if make and not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = folder / f"key.{os.getpid()}"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            # Nobody takes it for a leftover of a process that is gone.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(secrets.token_bytes(_KEY_BYTES))
        # Whoever is first makes the key: a link never replaces one.
        with suppress(FileExistsError):
            path.hardlink_to(partial)
        partial.unlink()
    if path.stat().st_uid != os.geteuid():
        raise OSError(f"{path} is not of this user")
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise OSError(f"{path} is not a key")
    return key


def _signature(key: bytes, directory: Path, info: RunInfo) -> str:
    said = [os.path.realpath(directory), info.name, info.command, info.cwd, info.script, info.started]
    return hmac.new(key, json.dumps(said).encode(), hashlib.sha256).hexdigest()
