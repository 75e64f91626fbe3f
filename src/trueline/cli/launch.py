"""A script that a command is about to become: what `trueline run` gives to `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueline.launch import Program, Recording
    from trueline.launch.ranks import RanksRecording


class Launch:
    """A script that is ready to run, recorded or, where that cannot be, without. Executed by `main` after click has done its
    work."""

    def __init__(self, program: Program, recording: Recording | RanksRecording | None) -> None:
        self._program = program
        self._recording = recording

    def execute(self) -> None:
        """Run the script; whatever ends it goes on to python, which exits and prints as it always does."""
        from trueline.launch import run_program

        if self._recording is None:
            run_program(self._program)
            return
        self._recording.start()
        try:
            run_program(self._program)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            self._recording.stop(status="finished" if code == 0 else "failed", exit_code=code)
            raise
        except KeyboardInterrupt:
            self._recording.stop(status="interrupted", exit_code=130, error="KeyboardInterrupt")
            raise
        except BaseException as problem:
            self._recording.stop(status="failed", exit_code=1, error=f"{type(problem).__name__}: {problem}")
            raise
        self._recording.stop(exit_code=0)
