"""The watches that can fail apart from each other, and what of the record is not complete without each.

A watch is a method that is called when something happens in the script, and that records it: `guarded` in the adapters, `noting`
here. It is named `Class.method`; both frameworks have the same names where they watch the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from trueline.model.parts import EVERYTHING
from trueline.recorder.patches import Patches

Note = TypeVar("Note", bound=Callable[..., Any])

# All that there are, as their files are imported.
KNOWN: set[str] = set()

_OF_BATCHES = ("batch", "field_stat", "sample", "score", "stat:batch")
_OF_PARAMETERS = ("snapshot", "stat:parameter")
_OF_LAYERS = ("stat:output", "stat:output_grad")
# What begins with a call of the model.
_OF_ROOTS = (
    "root_call", "module", "parameter", *_OF_PARAMETERS, "optimizer_parameter", *_OF_BATCHES, "loss_call", "op", *_OF_LAYERS,
    "stat:gradient", "stat:update", "event:mode", "event:load", "event:eval_loss", "event:functional_dropout", "event:backward",
    "event:collective", "event:scale", "event:gradient_of_gradient", "alignment",
)  # fmt: skip
_ORIGINS = ("op", "loss_call", "event:backward", "event:scale", "event:gradient_of_gradient")
_OF_STEPS = (
    "step",
    "hyperparameter",
    "optimizer_parameter",
    *_OF_PARAMETERS,
    "stat:gradient",
    "stat:update",
    "event:optimizer_step",
)

PARTS_OF: dict[str, tuple[str, ...]] = {
    # Modules
    "ModuleWatch.install": EVERYTHING,
    "ModuleWatch._built": ("module", "event:scheduler_step"),
    "ModuleWatch._dropout_forced": ("event:functional_dropout",),
    "ModuleWatch._enter_inner": ("module", *_OF_LAYERS, "op"),
    "ModuleWatch._enter_root": _OF_ROOTS,
    "ModuleWatch._gradient_arrived": ("stat:output_grad",),
    "ModuleWatch._is_wrapper": _OF_ROOTS,
    "ModuleWatch._keep_inputs": ("alignment",),
    "ModuleWatch._leave_inner": _OF_LAYERS,
    "ModuleWatch._leave_root": ("root_call", "module", "parameter", *_OF_PARAMETERS, "optimizer_parameter", "score"),
    "ModuleWatch._mode_set": ("event:mode",),
    "ModuleWatch._root_row": _OF_ROOTS,
    "Registry.finish": _OF_PARAMETERS,
    "Registry.note_update": ("stat:update",),
    "Registry.sample_gradients": (*_OF_PARAMETERS, "stat:gradient"),
    "Registry.snapshot": _OF_PARAMETERS,
    # Operations
    "CompiledGraphs.note_gradients": ("step", "snapshot", "optimizer_parameter"),
    "CompiledGraphs.read": (
        "op",
        "loss_call",
        "module",
        "event:backward",
        "event:collective",
        "step",
        "snapshot",
        "optimizer_parameter",
    ),
    "OpTrace._indexed": _ORIGINS,
    "OpTrace.called": _ORIGINS,
    "Trace.write": ("op",),
    # Data
    "BatchWatch._batch_fetched": (*_OF_BATCHES, "alignment", "root_call", "loss_call", "event:eval_loss", "step"),
    "BatchWatch._epoch_started": ("loader", *_OF_BATCHES, "root_call", "event:eval_loss"),
    "BatchWatch._iterator_built": ("loader", *_OF_BATCHES, "root_call", "event:eval_loss"),
    "BatchWatch._loader_built": ("loader",),
    "BatchWatch._node_built": ("loader",),
    "BatchWatch._align_batch": ("alignment",),
    "BatchWatch.aligned_inputs": ("alignment",),
    "BatchWatch.align_direct": ("alignment",),
    "BatchWatch.aligned_target": ("alignment",),
    "DrawWatch._note": ("alignment",),
    "DrawWatch._was_drawn": ("alignment",),
    "DrawWatch.entered": ("alignment",),
    "FieldLook.at_batch": ("field_stat",),
    "FieldLook.at_call": ("field_stat",),
    "SampleKeeper.batch": ("sample",),
    "SampleKeeper.finish": ("sample",),
    "SampleKeeper.scored": ("sample",),
    # Losses
    "LossWatch._align": ("alignment",),
    "LossWatch._called": ("op", "loss_call", *_OF_BATCHES),
    "LossWatch._evaluated": ("event:eval_loss",),
    "LossWatch.evaluated": ("event:eval_loss",),
    "LossWatch.inside_of_graph": ("loss_call",),
    "ScoreWatch.at_loss": ("score", "sample"),
    "ScoreWatch.at_output": ("score",),
    "ScoreWatch.finish": ("score",),
    # Backward passes
    "BackwardWatch._before": ("event:backward", "op", "step", "optimizer_parameter", "snapshot", "stat:gradient"),
    # Without it calls are not known to train.
    "BackwardWatch.install": (*_OF_ROOTS, *_OF_STEPS, "event:clip", "event:unscale"),
    "BackwardWatch._derivative_taken": ("event:gradient_of_gradient", *_ORIGINS),
    "BackwardWatch._gradient_taken": ("event:gradient_of_gradient", *_ORIGINS),
    "BackwardWatch._gradients_given": ("step", "stat:gradient", "snapshot", "event:clip", "event:unscale", "event:collective"),
    # Optimizers
    "HeldParameters._resolve_parameters": ("optimizer_parameter",),
    "HeldParameters.finish": ("optimizer_parameter",),
    "OptimizerWatch._before_step": (*_OF_STEPS, "op"),
    "OptimizerWatch._constructed": (
        "op",
        *_OF_LAYERS,
        "loss_call",
        "field_stat",
        "stat:batch",
        "optimizer",
        *_OF_STEPS,
        "event:scheduler_step",
    ),
    "OptimizerWatch._keep_values": ("stat:update",),
    "OptimizerWatch._measure": _OF_STEPS,
    "OptimizerWatch._measured": _OF_STEPS,
    "OptimizerWatch._note_hyperparameters": ("stat:gradient", "hyperparameter", "step"),
    "OptimizerWatch._note_step": _OF_STEPS,
    "OptimizerWatch._note_updates": ("stat:gradient", "stat:update", "step", "hyperparameter"),
    "OptimizerWatch._recover_gradients": ("stat:gradient", "step"),
    "OptimizerWatch._register_parameters": ("stat:gradient", "optimizer_parameter", "snapshot", "step"),
    "OptimizerWatch._sample": (*_OF_PARAMETERS, "optimizer_parameter", "stat:gradient", "stat:update", "step"),
    "OptimizerWatch._step_begins": (*_OF_STEPS, "op"),
    "OptimizerWatch.leftovers": ("step", "event:backward"),
    "OptimizerWatch.install": EVERYTHING,
    "OptimizerWatch.settle": ("step", "event:optimizer_step"),
    "OptimizerWatch._cleared": ("event:zero_grad", "step", "event:backward"),
    "ClipWatch._clipped": ("event:clip", "event:optimizer_step", "step", "event:unscale"),
    "ScheduleWatch._list_made": ("event:scheduler_step",),
    "ScheduleWatch._optimizer_built": ("event:scheduler_step",),
    "ScheduleWatch._stepped": ("event:scheduler_step",),
    # Loss scales
    "ScalerWatch._adjusted": ("event:scaler_update", "event:optimizer_step", "step"),
    "ScalerWatch._fixed_scale": ("event:scale", "event:unscale"),
    "ScalerWatch._happened": ("event:unscale", "event:scaler_step", "event:scaler_update"),
    "ScalerWatch._scaled": ("event:scale", "step", "event:backward", *_ORIGINS),
    "ScalerWatch._scaler_built": ("event:scale",),
    "ScalerWatch._skipped": ("step", "event:optimizer_step"),
    "ScalerWatch._step_begins": ("event:scale",),
    "ScalerWatch._step_ended": ("event:scaler_update", "event:optimizer_step", "step"),
    "ScalerWatch._unscaled": ("event:unscale", "event:clip", "event:optimizer_step", "step"),
    "ScalerWatch.updated": ("event:scaler_update",),
    "ScalerWatch.used": ("event:scale",),
    # Compiled steps
    "CompiledWatch._before": (*_OF_ROOTS, *_OF_STEPS),
    "CompiledWatch._backward_seen": ("event:backward", "step", *_ORIGINS, "event:collective", *_OF_LAYERS, "snapshot"),
    "CompiledWatch._evaluated": ("event:eval_loss", "score"),
    "CompiledWatch._parts_behind": EVERYTHING,
    "CompiledWatch._parts_inside": EVERYTHING,
    "CompiledWatch.backward_over": _OF_LAYERS,
    "GraphTensors._begin": (*_OF_LAYERS, "stat:gradient", "step"),
    "GraphTensors._contents": (*_OF_LAYERS, "stat:gradient", "step", "snapshot"),
    "GraphTensors._end": _OF_LAYERS,
    "GraphTensors._hooks_of": (*_OF_LAYERS, "stat:gradient", "step", "snapshot"),
    "GraphTensors._restore": EVERYTHING,
    "GraphTensors.gradients_seen": ("stat:gradient", "step", "snapshot"),
    "GraphTensors.outputs_seen": _OF_LAYERS,
    # Weights that are loaded or set
    "LoadWatch._digests": ("event:load", "parameter"),
    "LoadWatch._filled": ("parameter", "event:init_after_load"),
    "LoadWatch._holds_own": ("event:load",),
    "LoadWatch._loaded": ("event:load", "parameter", "event:init_after_load"),
    "LoadWatch._made": ("parameter",),
    "LoadWatch._read": ("event:weights_read",),
    "LoadWatch._set": ("parameter", "event:init_after_load"),
    # Ranks
    "CollectiveWatch._broadcast": ("event:collective",),
    "CollectiveWatch._called": ("event:collective",),
    "CollectiveWatch._happened": ("event:collective", "event:clip", "event:unscale", "step"),
    "CollectiveWatch._looked_at": ("event:collective",),
    "CollectiveWatch._reduced": ("event:collective",),
    "CollectiveWatch._reduces_by": ("event:collective",),
    "CollectiveWatch.inside_of_graph": ("event:collective",),
    # Random numbers
    "ExactReplay.after": ("alignment",),
    "ExactReplay.before": ("alignment",),
    "ExactReplay.settle": ("alignment",),
    "GeneratorWatch._about_to_draw": ("alignment",),
    "GeneratorWatch._replaced": ("alignment",),
    "NoiseWatch._replace": ("alignment",),
    "NoiseWatch._replaced": ("alignment",),
    "ProcessWatch._seeded": ("event:seed",),
    "SeedWatch._seeded": ("event:seed",),
    # Files and the rest of the process
    "FileWatch._about_to_connect": ("before",),
    "FileWatch._about_to_link": ("before",),
    "FileWatch._about_to_move": ("before", "event:file_written", "event:file_opened"),
    "FileWatch._about_to_write": ("before", "event:file_written", "event:file_opened"),
    "FileWatch._opened": ("event:file_opened",),
    "FileWatch._tell_kept": ("before",),
    "NetworkWatch._connecting": ("event:connected",),
    "ProcessWatch._printed": ("event:printed",),
    "SaveWatch._saving": ("before", "event:file_written", "event:file_opened"),
}


def parts_of(watch: str) -> tuple[str, ...]:
    """What is not complete when this watch is off; everything where nobody knows. A whole class that could not be installed
    takes with it what all of its methods record."""
    name, _, method = watch.partition(".")
    if method == "install" and watch not in PARTS_OF:
        parts = {part for each in PARTS_OF if each.startswith(f"{name}.") for part in PARTS_OF[each]}
        return tuple(part for part in EVERYTHING if part in parts) or EVERYTHING
    return PARTS_OF.get(watch, EVERYTHING)


def known(method: Callable[..., Any]) -> str:
    """Enter a watch under its name."""
    KNOWN.add(method.__qualname__)
    return method.__qualname__


def noting(method: Note) -> Note:
    """For what watches the script outside of any framework (`recorder`): never raises."""
    name = known(method)

    @functools.wraps(method)
    def note(watch: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = watch.recorder
        if recorder.off and name in recorder.off:
            return None
        try:
            return method(watch, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - recording must never break the script
            recorder.contain(name, problem)
            return None

    return note  # type: ignore[return-value]


def installed(watch: Any, patches: Patches, *, visible: bool = False) -> None:
    """Install a watch, or what of it compiled code may call (`visible`); one that cannot be installed is named as a whole."""
    try:
        (watch.install_visible if visible else watch.install)(patches)
    except Exception as problem:  # noqa: BLE001 - a version that the watch does not know is trained with too
        watch.recorder.contain(f"{type(watch).__name__}.install", problem)
