"""The nouns of a recorded run: what the store hands out and what checks read. No I/O here.

`seq` counts every recorded happening of a run in the order in which they happened, over all kinds of them, so that a
root call, a batch, an event and an operation can be put in order. `step` is the number of the step it belongs to: a step
ends with an optimizer step; where no optimizer ever steps, with each backward pass.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trueline.model.location import Location

MOST_LOSS_CALLS = 8
"""How many calls of loss functions are recorded of one step."""


class RunInfo(msgspec.Struct):
    """`run.json`: what is known of a run as a whole. `status` is `running`, `finished`, `failed` or `interrupted`;
    a run that still says `running` while its process is gone was killed (`killed` when read). `number`: its place in the
    order in which the runs of its folder were started."""

    format: int
    name: str
    command: list[str]
    cwd: str
    started: str
    pid: int
    python: str
    trueline: str
    script: str | None = None
    status: str = "running"
    ended: str | None = None
    exit_code: int | None = None
    error: str | None = None
    frameworks: dict[str, str] = {}
    platform: str = ""
    world_size: int = 1
    seconds: float | None = None
    recorder_error: str | None = None
    number: int | None = None


class FailedWatch(msgspec.Struct, frozen=True):
    """A watch that failed at this step and was taken off: from then on these parts of the record (see parts.py) are not
    complete."""

    watch: str
    parts: tuple[str, ...]
    step: int
    error: str

    @property
    def in_words(self) -> str:
        return f"the watch {self.watch} failed at step {self.step} ({self.error})"


class Module(msgspec.Struct, frozen=True):
    """One module (layer, cell) at one place of a root module's tree. `path` is '' for the root itself.

    `kind` is the framework-neutral kind (`linear`, `conv`, `batch_norm`, `layer_norm`, `norm`, `dropout`, `embedding`,
    `recurrent`, `attention`, `activation`, `softmax`, `log_softmax`, `sigmoid`, `loss`, `pool`, `flatten`, `identity`,
    `container`, `other`); `type` is the framework's class name. `same_as` names the module object seen first when one
    object stands at several paths. `name` is what users read: the path, prefixed by the root's name where a run has
    several roots.
    """

    id: int
    root: int
    path: str
    name: str
    type: str
    kind: str
    same_as: int | None
    built: Location | None
    called: Location | None
    settings: dict[str, Any]


class Parameter(msgspec.Struct, frozen=True):
    """A parameter or buffer. `initialised` is the last call of an init function on it, `loaded` the last load into it."""

    id: int
    root: int
    module: int
    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    buffer: bool
    same_as: int | None
    initialised: Location | None
    loaded: Location | None


class Optimizer(msgspec.Struct, frozen=True):
    id: int
    type: str
    built: Location | None


class OptimizerParameter(msgspec.Struct, frozen=True):
    """One tensor that an optimizer holds; `parameter` is None when no module that was called owns it.

    `steps` counts the optimizer's steps, `without_gradient` those at which this tensor had no gradient at all.
    """

    optimizer: int
    group: int
    position: int
    parameter: int | None
    shape: tuple[int, ...]
    steps: int
    without_gradient: int


class HyperParameter(msgspec.Struct, frozen=True):
    """The value of a group's hyper-parameter from this step on (recorded when it changes)."""

    step: int
    optimizer: int
    group: int
    name: str
    value: Any


class Loader(msgspec.Struct, frozen=True):
    """A source of batches: `sampler` is its class name, `settings` what else the loader was given (shuffle, workers …). `lines`
    are those of the operations of a pipeline (`Shuffle`, `Map`, `Batch`), the source first; other loaders have none."""

    id: int
    dataset: str
    length: int | None
    batch_size: int | None
    sampler: str | None
    built: Location | None
    settings: dict[str, Any]
    lines: tuple[tuple[str, Location | None], ...] = ()

    def line_of(self, *operations: str) -> Location | None:
        """The line of the last of these operations, else the one that the loader is built on."""
        found = [line for name, line in self.lines if name in operations and line is not None]
        return found[-1] if found else self.built

    @property
    def last_line(self) -> Location | None:
        """Where the pipeline got its last operation."""
        found = [line for _, line in self.lines if line is not None]
        return found[-1] if found else self.built


class Step(msgspec.Struct, frozen=True):
    """One training step. `loss` is the value the backward pass started from (the last one, when there were several; the
    unscaled value when a gradient scaler scaled it), NaN kept as NaN. `grad_norm` is the L2 norm over the gradients at
    the optimizer step.

    `cleared`: whether the gradients that this step used started from nothing since the optimizer's previous step: True,
    False (content carried over from the previous step), None (not known, or the first step). `with_gradient` and
    `without_gradient` count the tensors of the stepping optimizer at its step. `sampled` says whether per-tensor
    statistics exist for it.
    """

    id: int
    seq: int
    optimizer: int | None
    loss: float | None
    grad_norm: float | None
    finite: bool
    seconds: float
    wait: float
    sampled: bool
    backwards: int
    cleared: bool | None
    with_gradient: int | None
    without_gradient: int | None


class Event(msgspec.Struct, frozen=True):
    """Something that happened at one point of the run, with its line.

    Kinds: `seed`, `load`, `mode` (value 1 train, 0 eval; subject: module), `zero_grad` (subject: optimizer; None for a
    module's zero_grad), `backward` (value: the loss value; detail: see store/schema.sql), `clip` (value: the norm before
    clipping; detail: kind, limit), `scale`, `unscale`, `scaler_step`, `scaler_update` (value: the scale), `optimizer_step`,
    `scheduler_step`, `functional_dropout` (value 1: active), `gradient_of_gradient` (derivatives that the script asked for;
    detail: see store/schema.sql), `file_opened` (detail: path, size, mtime), `file_written` (opened to be written, or saved by
    the framework; detail: path, new), `connected` (to another machine; detail: address), `printed`, `collective`,
    `eval_loss` (value: what a loss function gave outside of training, without gradients or on a model in eval mode; subject:
    seq of the batch), `init_after_load` (an init function or fill over content that a load had put there; detail: shape),
    `weights_read` (a file of weights; detail: shape and digest of its matrices by name).
    """

    seq: int
    step: int
    kind: str
    subject: int | None
    location: Location | None
    value: float | None
    detail: dict[str, Any]


class RootCall(msgspec.Struct, frozen=True):
    """A call of a module from outside of any other module. Counts are of the modules in its tree: `dropout` and
    `batch_norm` how many there are, `dropout_active` and `batch_norm_batch` how many of them were in training mode.

    `grad` is the grad mode at the call; `fed_by` the seq of an earlier call made without gradients whose output went in;
    `batch` the seq of the batch that was fed. `loss` is True for a module that is itself a loss function.
    """

    seq: int
    step: int
    module: int
    location: Location | None
    training: bool
    grad: bool
    loss: bool
    dropout: int
    dropout_active: int
    batch_norm: int
    batch_norm_batch: int
    batch: int | None
    fed_by: int | None


class Batch(msgspec.Struct, frozen=True):
    """One batch: fetched from a loader, or (loader None) handed to a root module directly.

    `fingerprints` has one 64-bit hash per sample (of all input fields of the sample, without the targets when they can
    be told apart). `targets` are the samples' class labels (`target_kind` 'class') or single values ('value'), when known.
    `fields` describes the tensors of the batch (`name`, `shape`, `dtype`). `nonfinite` has an entry for each field with
    missing values, in every batch and not only in sampled ones: `field`, `nan`, `inf`, `samples` (how many have any).
    """

    seq: int
    step: int
    loader: int | None
    epoch: int | None
    position: int | None
    wait: float
    size: int
    fingerprints: tuple[int, ...]
    targets: tuple[float, ...] | None
    target_kind: str | None
    fields: list[dict[str, Any]]
    nonfinite: list[dict[str, Any]] = []


class FieldStat(msgspec.Struct, frozen=True):
    """One tensor of a batch as its loader gave it (`owner` 'batch', `seq` of the batch), or of the inputs of a root module
    as they entered it (`owner` 'call', `seq` of the root call, `field` the position), feature by feature.

    For the first batches of every loader, the first calls of every root with and without gradients, and sampled steps. `axis`
    is the axis of features (columns of a table, channels of images and of sequences) that `low`, `high`, `mean`, `std` run over;
    None: one number for the whole tensor. They are over finite values; NaN where a feature has none. `count` is the number
    of values per feature.

    `spikes` are features with a value at one end of their range that stands far apart from all others, further than those
    are spread themselves: `feature`, `value`, `count`, and `low`, `high`, `mean`, `std`, `distinct` of the others.
    `padding`, for fields with a time axis (2-d integers, 3-d floats): `value`, `side` ('left', 'right', 'both', 'none'),
    `share` of all positions, `rows` with any, `lengths` as [min, max] of what is left; None where there is none.
    """

    seq: int
    step: int
    owner: str
    field: str
    shape: tuple[int, ...]
    dtype: str
    axis: int | None
    count: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    nan: int
    inf: int
    spikes: list[dict[str, Any]]
    padding: dict[str, Any] | None


class Scores(msgspec.Struct, frozen=True):
    """How a classifier judged the samples of one batch: `margins` (score of the label minus the best other score, in logits)
    and `predicted` classes, in the order of the batch's fingerprints. `training`: at the loss of a training step, else at a
    root call outside of training. Kept as often as one percent of the run's time allows.
    """

    seq: int
    step: int
    batch: int
    training: bool
    labels: tuple[int, ...]
    margins: tuple[float, ...]
    predicted: tuple[int, ...]


class Sample(msgspec.Struct, frozen=True):
    """The content of one training sample as its loader gave it: pictures thinned out to 64 pixels on a side, long series cut.
    Kept for the samples that were judged worst and for some of each class. `dtype` is `float32`, `int64` or `text`."""

    batch: int
    row: int
    label: int
    fingerprint: int
    dtype: str
    shape: tuple[int, ...]
    content: bytes


class LossCall(msgspec.Struct, frozen=True):
    """A call of a loss function of the framework, functional or through its module, on a step that was looked at
    in full; the first MOST_LOSS_CALLS of each step.

    `input` and `target` describe what went in: `shape`, `dtype`, `requires_grad`, `min`, `max`, `op` (seq of the
    operation that made it, when traced), and for an input with a class axis `row_sum` and `row_logsumexp` as [min, max]
    over the samples; for targets `distinct` (count of different values, at most 1000). `settings` are the arguments
    (reduction, weight, label_smoothing, ignore_index, log_target …).
    """

    seq: int
    step: int
    kind: str
    location: Location | None
    grad: bool
    value: float | None
    input: dict[str, Any]
    target: dict[str, Any]
    settings: dict[str, Any]


class Op(msgspec.Struct, frozen=True):
    """One operation of the forward pass or loss computation of a step that was traced (the first ones).

    `name` is the framework-neutral name of the function (`softmax`, `linear`, `add`, `detach` …). `inputs` are references
    to where each tensor came from: `o<seq>` an operation, `p<id>` a parameter, `b<seq>` a tensor of a batch, `g<seq>` a
    derivative that the `gradient_of_gradient` event of this number gave, `t` a tensor of unknown origin. `outputs` hold
    `shape`, `dtype`, `requires_grad`. `module` is the innermost module it ran in. `settings` are its scalar arguments,
    and `fed` (shape and dtype of batch tensors it takes), `index` (of a getitem), masks as the word 'tensor', and `masked_ends`
    (the shares of sequences whose first and last step a `key_padding_mask` leaves out). `used` tells whether a later traced
    operation, the loss or the backward pass took one of its outputs.
    """

    seq: int
    step: int
    name: str
    module: int | None
    location: Location | None
    inputs: list[str]
    outputs: list[dict[str, Any]]
    settings: dict[str, Any]
    used: bool


class TensorStat(msgspec.Struct, frozen=True):
    """Statistics of one tensor at one step. `role`: `input`, `output`, `output_grad` (subject: module), `parameter`,
    `gradient`, `update` (what the optimizer's step added; subject: parameter), `batch` (subject: loader). Step -1 is the state
    before the first step. `dead` is the share of units that are zero throughout: rows of a gradient (first axis), or units of an
    output (second axis) that is zero by half or more; None elsewhere. Statistics of updates are of at most 65,536 values
    evenly drawn from the parameter, and so are the `weight_l2` of the same values before the step; `l2` of both are comparable.
    """

    step: int
    role: str
    subject: int
    position: int
    shape: tuple[int, ...]
    dtype: str
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    l2: float | None
    abs_mean: float | None
    zero_share: float | None
    nan: int
    inf: int
    sketch: tuple[float, ...] | None
    dead: float | None = None
    weight_l2: float | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """The state of one parameter just before the optimizer step of a sampled step (-1: when it was first seen; the last
    one: when the script ended). `digest` is a hash of the content. `row_spread` is the largest difference, over
    the rows (first axis), within any column: 0 when all rows are equal, which is what unbroken symmetry looks like; None for
    fewer than two rows or two axes. `gradient`: 'none' (no gradient), 'zero' or 'value'; None at step -1 and at the end. In
    compiled steps, whose gradients are not seen: 'none' where the loss does not depend on it, 'value' where it does and the step
    changed it, else None.
    """

    step: int
    parameter: int
    trainable: bool
    optimizer: int | None
    gradient: str | None
    digest: str
    row_spread: float | None
