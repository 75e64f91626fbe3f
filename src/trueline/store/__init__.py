"""The run directory on disk: one writer, one reader, a documented schema (schema.sql)."""

from trueline.store.database import last_step
from trueline.store.format import (
    ALIGNED_FOLDER,
    BEFORE_FOLDER,
    CLOSER_FOLDER,
    FAILURES_FILE,
    FORMAT,
    MANIFEST_FILE,
    PERTURBED_FOLDER,
    RERUN_FOLDER,
    SCRATCH_FOLDER,
    SCRIPT_FILE,
    read_info,
    write_info,
)
from trueline.store.reader import Run
from trueline.store.reading import RunBeingRead
from trueline.store.runs import (
    NewRun,
    already_there,
    begin_run,
    cannot_record,
    check_name,
    delete_run,
    find_run,
    is_latest,
    join_run,
    list_runs,
    name_now,
    runs_folder,
    size_of,
    state_of_rank,
)
from trueline.store.tensors import StoredTensor, read_tensors, write_tensors
from trueline.store.writer import Writer

__all__ = [
    "ALIGNED_FOLDER",
    "BEFORE_FOLDER",
    "CLOSER_FOLDER",
    "FAILURES_FILE",
    "FORMAT",
    "MANIFEST_FILE",
    "PERTURBED_FOLDER",
    "RERUN_FOLDER",
    "SCRATCH_FOLDER",
    "SCRIPT_FILE",
    "NewRun",
    "Run",
    "RunBeingRead",
    "StoredTensor",
    "Writer",
    "already_there",
    "begin_run",
    "cannot_record",
    "check_name",
    "delete_run",
    "find_run",
    "is_latest",
    "join_run",
    "last_step",
    "list_runs",
    "name_now",
    "read_info",
    "read_tensors",
    "runs_folder",
    "size_of",
    "state_of_rank",
    "write_info",
    "write_tensors",
]
