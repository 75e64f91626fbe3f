"""The errors that Trueline raises on purpose.

    TruelineError              something the user can put right; shown as one message, exit code 2
    ├── ScriptNotFound         the script or module to run does not exist
    ├── ScriptUnreadable       it exists and does not compile
    ├── RunExists              a run of that name is there already
    ├── RunNotFound            no run of that name, or not a run directory
    ├── Unreadable             a file that is damaged, is none of its kind, or asks for more than it may (limits.py)
    ├── RunAmbiguous           several runs whose names begin like that
    ├── CannotRecord           there is no place for a run: the script runs unrecorded
    └── FormatTooNew           the run was written by a newer Trueline

Every message says what happened, what was received, and what to do.
"""

from __future__ import annotations


class TruelineError(Exception):
    """Base of all errors that carry a message for the user."""


class ScriptNotFound(TruelineError):
    pass


class ScriptUnreadable(TruelineError):
    pass


class RunExists(TruelineError):
    pass


class RunNotFound(TruelineError):
    pass


class Unreadable(TruelineError):
    pass


class FormatTooNew(TruelineError):
    pass


class RunAmbiguous(TruelineError):
    pass


class CannotRecord(TruelineError):
    pass
