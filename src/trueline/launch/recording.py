"""One recording: a run directory, a recorder, and the adapters of the frameworks that turn up."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import trueline
from trueline.adapters import FRAMEWORKS, Adapter, adapter_for
from trueline.errors import CannotRecord, TruelineError
from trueline.launch.imports import ImportHook
from trueline.launch.place import place_of_this_process
from trueline.launch.spawned import watch_spawn
from trueline.model import RunInfo
from trueline.output import warn, warn_here
from trueline.recorder import Recorder
from trueline.recorder.alignment import Alignment
from trueline.recorder.files import NATIVE_WRITERS, FileWatch
from trueline.recorder.generators import GeneratorWatch
from trueline.recorder.kept_files import KeptFiles
from trueline.recorder.network import NetworkWatch
from trueline.recorder.patches import Patches
from trueline.recorder.process import ProcessWatch
from trueline.recorder.watches import installed
from trueline.store import (
    BEFORE_FOLDER,
    FAILURES_FILE,
    FORMAT,
    SCRATCH_FOLDER,
    SCRIPT_FILE,
    NewRun,
    Writer,
    begin_run,
    cannot_record,
    join_run,
    state_of_rank,
    write_info,
    write_tensors,
)
from trueline.store.origin import sign

DEFAULT_BUDGET = 0.05
_LARGEST_SCRIPT = 1 << 20
_running: list[Recording] = []


def is_recording() -> bool:
    """Whether this process is recorded, started by `trueline run` or by itself."""
    return bool(_running)


class Recording:
    """Records this process from `start` to `stop`.

    In a launch over several ranks (see place.py) every rank writes its own file into one run directory, and rank 0 describes
    the run. `rank`, `ranks` and `directory` are given where a process of the script's own
    records itself into the run of the process that started it, which describes the run then.

    `last_step` ends the process, quietly and at once, when that many steps are complete, `last_second` with the first that is
    complete after this time. `eager`, `graph_tensors`, `alignment` (made for the run's directory): see
    Recorder. `keep_files`: what the script changes is kept as it was before, for reruns.
    """

    def __init__(
        self,
        stem: str,
        command: list[str],
        *,
        name: str | None = None,
        script: str | None = None,
        budget: float = DEFAULT_BUDGET,
        kept_steps: frozenset[int] = frozenset(),
        last_step: int | None = None,
        last_second: float | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        directory: Path | None = None,
        eager: bool = False,
        graph_tensors: bool = False,
        alignment: Callable[[Path], Alignment] | None = None,
        keep_files: bool = False,
    ) -> None:
        place = place_of_this_process()
        self.rank = rank if rank is not None else place.rank if place is not None else 0
        self._started = perf_counter()
        begun = _begin(stem, name, self.rank, directory)
        self.directory = begun.directory
        self.budget = budget
        self._state = begun.state
        self._describes = self.rank == 0 and directory is None
        self.info = new_info(begun, command, script=script)
        if ranks is not None:
            self.info.world_size = ranks
        self.recorder = Recorder(
            lambda: Writer(self.directory, self.rank),
            str(Path.cwd()),
            budget,
            kept_steps=kept_steps,
            keep_tensors=lambda step, tensors: write_tensors(self.directory, step, self.rank, tensors),
            eager=eager,
            graph_tensors=graph_tensors,
            scratch=self.directory / f"{SCRATCH_FOLDER}{self.rank}",
            alignment=None if alignment is None else alignment(self.directory),
            failures=self.directory / FAILURES_FILE,
        )
        if last_step is not None or last_second is not None:
            self._end_after(math.inf if last_step is None else last_step, math.inf if last_second is None else last_second)
        self.recorder.on_failure = self._note_failure
        if self._describes:
            describe(begun, self.info)
        if self._describes and script is not None:
            _keep_script(Path(script), self.directory / SCRIPT_FILE)
        self._adapters: list[Adapter] = []
        self._patches = Patches()
        self._process = ProcessWatch(self.recorder)
        own_folder = str(self.directory.absolute()) + os.sep
        kept = KeptFiles(self.directory / BEFORE_FOLDER, own_folder) if keep_files else None
        self._files = FileWatch(self.recorder, own_folder, kept)
        self.recorder.before_writing = self._files.writing
        self._network = NetworkWatch(self.recorder)
        self._generators = GeneratorWatch(self.recorder)
        self._hook = ImportHook(FRAMEWORKS, self._framework_imported)
        self._writers = ImportHook(NATIVE_WRITERS, lambda package: self._files.package_imported(package, self._patches))

    def start(self) -> None:
        _running.append(self)
        for watch in (self._process, self._files, self._network, self._generators):
            installed(watch, self._patches)
        try:
            self._writers.install()
            self._hook.install()
        except Exception as problem:  # noqa: BLE001 - the script runs, whatever keeps its recording from starting
            self.recorder.fail(problem)
        os.register_at_fork(after_in_child=self.recorder.forget)

    def _framework_imported(self, framework: str) -> None:
        try:
            adapter = adapter_for(framework, self.recorder)
        except Exception as problem:  # noqa: BLE001 - it needs what this version does not have, which the script may do without
            self.recorder.fail(problem)
            return
        self.recorder.start(framework=adapter.name, framework_version=adapter.version)
        self._adapters.append(adapter)
        try:
            adapter.install()
        except Exception as problem:  # noqa: BLE001 - a version that the adapter does not know is imported all the same
            adapter.uninstall()
            self.recorder.fail(problem)
        watch_spawn(self._patches, self)
        self.info.frameworks[adapter.name] = adapter.version
        self._save()

    def hand_over(self, ranks: int) -> bool:
        """Let processes that the script starts record themselves in the place of this one; not once it has trained."""
        if not self.recorder.active or self.recorder.step or self.rank or place_of_this_process() is not None:
            return False
        self.recorder.abandon()
        self.info.world_size = ranks
        self._save()
        return True

    def _end_after(self, steps: float, seconds: float) -> None:
        end_step = self.recorder.end_step

        def counted(**step: Any) -> None:
            end_step(**step)
            if self.recorder.step >= steps or perf_counter() - self._started >= seconds:
                self.stop(exit_code=0)
                for child in multiprocessing.active_children():
                    child.terminate()
                # Nothing else of the script may run: no evaluation, no checkpoint, no exit handler.
                os._exit(0)

        self.recorder.end_step = counted  # type: ignore[method-assign]

    def pause(self) -> None:
        """Leave the frameworks as they were found, without ending the run."""
        for adapter in self._adapters:
            adapter.uninstall()
        self._patches.undo()

    def resume(self) -> None:
        """Go on after `pause`."""
        for watch in (self._process, self._files, self._network, self._generators):
            installed(watch, self._patches)
        for adapter in self._adapters:
            adapter.install()
        self.recorder.resume()

    def stop(self, *, status: str = "finished", exit_code: int | None = None, error: str | None = None) -> None:
        """End the run and write how it ended."""
        if self.info.pid != os.getpid():
            return
        if self in _running:
            _running.remove(self)
        self._hook.remove()
        self._writers.remove()
        try:
            for adapter in self._adapters:
                adapter.finish(completed=status == "finished")
                adapter.uninstall()
            self._patches.undo()
            self.recorder.end()
        except Exception as problem:  # noqa: BLE001 - the script ends as it would without
            self.recorder.fail(problem)
        # What adapters know of the script's objects would keep those alive until python itself is taken apart.
        self._adapters = []
        self.info.status = status
        self.info.exit_code = exit_code
        self.info.error = error
        self.info.ended = _now()
        self.info.seconds = perf_counter() - self._started
        self.info.recorder_error = self.recorder.failure
        # First where it takes no room.
        told = self._tell()
        self.recorder.close()
        if self._describes:
            try:
                write_info(self.directory, self.info)
            except OSError as problem:
                if not told:
                    self.recorder.fail(problem)
        self._state.close()

    def _tell(self) -> bool:
        """Say in the state file how it goes; False where that is gone."""
        info = self.info
        try:
            self._state.tell(
                status=info.status, exit_code=info.exit_code, error=info.error, ended=info.ended, seconds=info.seconds,
                recorder_error=info.recorder_error,
            )  # fmt: skip
        except OSError:
            return False
        return True

    def _note_failure(self, reason: str) -> None:
        self.info.recorder_error = reason
        self._tell()

    def _save(self) -> None:
        if self._describes:
            try:
                write_info(self.directory, self.info)
            except OSError as problem:
                self.recorder.fail(problem)


Made = TypeVar("Made")


def unless_impossible(make: Callable[[], Made]) -> Made | None:
    """Starting is part of recording: where there is no place for a run the user is told, and the script runs unrecorded.

    Wrong usage is an error: nothing has run yet.
    """
    try:
        return make()
    except CannotRecord as problem:
        reason = str(problem)
    except TruelineError:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever it is, the script is to run
        reason = f"{type(problem).__name__}: {problem}"
    warn(f"nothing is recorded, and the script runs without: {' '.join(reason.split())}")
    return None


@contextmanager
def record(name: str | None = None, *, budget: float = DEFAULT_BUDGET, tensors: Iterable[int] = ()) -> Iterator[Recording | None]:
    """Record what happens inside of the `with` block, from a notebook or from a script of your own.

    The run is written to `.trueline/runs` (or $TRUELINE_RUNS); check it with `trueline check NAME`. `tensors` are the steps
    whose tensors are kept whole. Where nothing can be written a warning says so, and None is given.
    """
    warn_here()
    script = sys.argv[0] or None
    recording = unless_impossible(
        lambda: Recording("recording", list(sys.argv), name=name, script=script, budget=budget, kept_steps=frozenset(tensors))
    )
    if recording is None:
        yield None
        return
    recording.start()
    try:
        yield recording
    except BaseException as problem:
        recording.stop(status="failed", error=f"{type(problem).__name__}: {problem}")
        raise
    recording.stop()


def describe(begun: NewRun, info: RunInfo) -> None:
    """Write for the first time what is known of a run. Where that cannot be done there is none."""
    try:
        write_info(begun.directory, info)
    except OSError as problem:
        begun.state.discard()
        if info.world_size == 1:
            shutil.rmtree(begun.directory, ignore_errors=True)
        raise cannot_record(problem) from problem
    sign(begun.directory, info)


def new_info(begun: NewRun, command: list[str], *, script: str | None) -> RunInfo:
    """The description of a run that starts now in this process."""
    place = place_of_this_process()
    return RunInfo(
        format=FORMAT,
        name=begun.directory.name,
        number=begun.number,
        command=command,
        cwd=str(Path.cwd()),
        started=_now(),
        pid=os.getpid(),
        python=platform.python_version(),
        trueline=trueline.__version__,
        script=script,
        platform=platform.platform(),
        world_size=1 if place is None else place.ranks,
    )


def _keep_script(script: Path, copy: Path) -> None:
    """Comparisons read it when the script itself is gone or has changed."""
    with suppress(OSError):
        if script.suffix == ".py" and script.stat().st_size <= _LARGEST_SCRIPT:
            copy.write_bytes(script.read_bytes())


def _begin(stem: str, name: str | None, rank: int, directory: Path | None) -> NewRun:
    """Ranks of one launch share a directory: named by the user, or after the process that started them all; or the one that
    is given."""
    if directory is not None:
        return NewRun(directory, None, state_of_rank(directory, rank))
    place = place_of_this_process()
    if place is None:
        return begin_run(stem, name)
    return join_run(name or f"{stem}-{place.launch}-{os.getppid()}", rank)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
