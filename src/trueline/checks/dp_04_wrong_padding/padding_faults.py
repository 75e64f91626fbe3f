"""Where padding is taken for data: in the loss, or inside of the model."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from trueline.checks.dp_04_wrong_padding.padded_sequences import Knowledge, Padded
from trueline.model import Location, LossCall, Op
from trueline.store import Run
from trueline.views.dataflow import line_of, parent_of, plain, shape_of
from trueline.views.inputs import ModelInputs
from trueline.views.words import either

_RECURRENT = frozenset("lstm gru rnn_tanh rnn_relu".split())
_ATTENTION = frozenset("multi_head_attention_forward scaled_dot_product_attention".split())
_RELAYING = frozenset("permute transpose swapaxes to contiguous".split())
_PER_STEP_LOSSES = ("cross_entropy", "nll_loss")


class PaddingFault(msgspec.Struct, frozen=True):
    summary: str
    detail: str
    values: dict[str, Any]
    location: Location | None
    fix: str
    confidence: float


def loss_fault(run: Run, inputs: ModelInputs, padded: Padded) -> PaddingFault | None:
    """A loss with a target for every step, padding included, that ignores none of them."""
    steps, samples = padded.steps, padded.samples
    for loss in run.loss_calls:
        if loss.step != padded.call.step or loss.kind not in _PER_STEP_LOSSES or not loss.grad:
            continue
        count = math.prod(loss.target.get("shape") or (0,))
        # Targets of a language model are the inputs moved by one step, with or without the last.
        if count not in (samples * steps, samples * (steps - 1)) or "int" not in str(loss.target.get("dtype")):
            continue
        if loss.settings.get("reduction") == "none" or loss.settings.get("weight") is not None:
            continue
        if _are_whole(run, inputs, padded, count):
            continue
        ignored, low, high = loss.settings.get("ignore_index", -100), loss.target.get("min"), loss.target.get("max")
        if low is None or high is None or ignored in (low, high):
            continue
        if low < ignored < high and (ignored == padded.value or not _same_vocabulary(loss, padded)):
            continue
        return _of_loss(loss, padded, count, ignored)
    return None


def packing_fault(knowledge: Knowledge, padded: Padded) -> PaddingFault | None:
    """Sequences that are packed with the lengths of the padded ones: all steps remain, padding among them."""
    for op in knowledge.trace.ops.values():
        if op.step != padded.call.step or plain(op.name) != "pack_padded_sequence" or len(padded.stat.shape) < 2:
            continue
        kept = (shape_of(op) or (0,))[0]
        if kept == padded.samples * padded.steps:
            return PaddingFault(
                "Sequences are packed with the lengths that they have after padding: nothing is left out, and the last state "
                "comes from padding.",
                f"`pack_padded_sequence` keeps all {kept} steps of {padded.samples} sequences of {padded.steps} steps, of which "
                f"{padded.share:.0%} are padding.",
                {"kept": kept, "samples": padded.samples, "steps": padded.steps},
                line_of(knowledge.run, op),
                "Take the lengths before padding: `lengths = [len(sequence) for sequence in sequences]`, then `pad_sequence`.",
                0.93,
            )
    return None


def _are_whole(run: Run, inputs: ModelInputs, padded: Padded, count: int) -> bool:
    """Whether the batch holds targets of this size that are not padded themselves."""
    batch = inputs.batch(padded.call)
    if batch is None or batch.loader is None:
        return False
    entering = {stat.shape for stat in inputs.stats[padded.call.seq]}
    fields = [stat for stat in run.field_stats if stat.owner == "batch" and stat.seq == batch.seq and "int" in stat.dtype]
    whole = [stat for stat in fields if math.prod(stat.shape) == count and stat.padding is None and len(stat.shape) == 2]
    return any(stat.shape not in entering or len(fields) > 1 for stat in whole)


def _same_vocabulary(loss: LossCall, padded: Padded) -> bool:
    """Whether targets look like the inputs: the same smallest or largest value, which is the padding."""
    return padded.value in (loss.target.get("min"), loss.target.get("max"))


def _of_loss(loss: LossCall, padded: Padded, count: int, ignored: Any) -> PaddingFault:
    return PaddingFault(
        f"Padding counts in the loss: about {padded.share:.0%} of its {count} targets are padding, and "
        f"`ignore_index` is {ignored}.",
        f"The {loss.kind.replace('_', '-')} takes targets of {loss.target['min']:g} … {loss.target['max']:g}, "
        f"as many as there are "
        f"steps; none of them is ignored.",
        {"targets": count, "ignore_index": ignored, "min": loss.target["min"], "max": loss.target["max"]},
        loss.location,
        f"Pass `ignore_index={padded.value:g}` to the loss if targets are padded with that value; else pad targets with -100.",
        0.9,
    )


def model_fault(knowledge: Knowledge, padded: Padded) -> PaddingFault | None:
    """The first operation of the traced step that mixes padding into what the model makes of a sequence."""
    root = knowledge.run.modules[padded.module].root
    for op in knowledge.trace.ops.values():
        module = knowledge.run.modules.get(op.module) if op.module is not None else None
        if op.step != padded.call.step or module is None or module.root != root:
            continue
        name = plain(op.name)
        if name in _RECURRENT and padded.side == "right":
            fault = _last_state(knowledge, padded, op)
        elif name in _ATTENTION or name == "softmax":
            fault = _attention(knowledge, padded, op)
        else:
            fault = _mean(knowledge, padded, op)
        if fault is not None:
            return fault
    return None


def mask_fault(knowledge: Knowledge, padded: Padded) -> PaddingFault | None:
    """Attention that is told to leave out the end of every sequence where all have content, and not the other."""
    for op in knowledge.trace.ops.values():
        ends = op.settings.get("masked_ends")
        if ends is None or padded.steps not in shape_of(op):
            continue
        content, filling = ends if padded.side == "right" else reversed(ends)
        if content < 1.0 or filling == 1.0 or padded.lengths[0] == 0:
            continue
        side = "first" if padded.side == "right" else "last"
        return PaddingFault(
            "The padding mask is inverted: attention leaves out the content of every sequence and looks at the padding.",
            f"The {side} step of every sequence is content, and `key_padding_mask` tells `{plain(op.name)}` to leave it out in "
            f"all of them; the other end, where {padded.rows:.0%} of the sequences have padding, in {filling:.0%}.",
            {"masked_first": ends[0], "masked_last": ends[1]},
            line_of(knowledge.run, op) or op.location,
            f"True means left out: `key_padding_mask=(tokens == {padded.value:g})`, not its opposite.",
            0.95,
        )
    return None


def _last_state(knowledge: Knowledge, padded: Padded, op: Op) -> PaddingFault | None:
    shape = shape_of(op)
    if len(shape) != 3 or set(shape[:2]) != {padded.samples, padded.steps}:
        return None
    for taker in _takers(knowledge, op):
        taken = shape_of(taker)
        index = str(taker.settings.get("index", ""))
        by_index = plain(taker.name) == "getitem" and len(taken) == 2 and taken[0] == padded.samples and not index.endswith(", 0")
        by_index = by_index and "tensor" not in index and "mask" not in index and not index.startswith(":, 0")
        by_squeeze = plain(taker.name) == "squeeze" and len(taken) == 2 and taken[0] == padded.samples
        if by_index or by_squeeze:
            where = line_of(knowledge.run, taker)
            module = knowledge.run.modules[op.module] if op.module is not None else None
            name = module.name if module is not None else plain(op.name)
            return PaddingFault(
                f"The last state of `{name}` is read from padding: sequences are padded on the right and not packed.",
                f"`{name}` reads {padded.steps} steps of every sequence, of which {padded.share:.0%} are padding "
                f"after the content, and "
                "its last state is used.",
                {"operation": plain(op.name), "index": index, "shape": list(taken)},
                None if where is None else where.of_module(name),
                either(
                    knowledge.run,
                    pytorch="Pack the sequences with their lengths (`pack_padded_sequence(x, lengths, batch_first=True, "
                    "enforce_sorted=False)`), take the state at the last real step, or pad on the left.",
                    mindspore="Give the layer the lengths (`seq_length=lengths`) and use the state that it returns, take the "
                    "output at the last real step, or pad on the left.",
                ),
                0.85,
            )
    return None


def _takers(knowledge: Knowledge, op: Op) -> list[Op]:
    """What takes the states, in whatever order of axes they are handed over, and after what the layer itself does to them."""
    found: list[Op] = []
    waiting = [op]
    while waiting:
        for taker in knowledge.trace.consumers.get(waiting.pop().seq, []):
            owner = knowledge.run.modules.get(taker.module) if taker.module is not None else None
            relays = plain(taker.name) in _RELAYING or (owner is not None and owner.kind == "recurrent")
            (waiting if relays else found).append(taker)
    return found


def _attention(knowledge: Knowledge, padded: Padded, op: Op) -> PaddingFault | None:
    shape = shape_of(op)
    if plain(op.name) == "softmax":
        over_steps = len(shape) >= 3 and shape[-2:] == (padded.steps, padded.steps) and padded.samples in shape[:-2]
        own_mask = any(plain(part.name) in {"masked_fill", "where", "tril", "triu"} for part in _behind(knowledge, op))
        if not over_steps or own_mask:
            return None
    elif padded.steps not in shape or padded.samples not in shape or op.settings.get("is_causal"):
        return None
    where = line_of(knowledge.run, op)
    # Ready-made attention lies in layers of layers; the user's line is that of the outermost call.
    where = where if where is not None else op.location
    return PaddingFault(
        "Attention takes padding for content: it is given no mask.",
        f"`{plain(op.name)}` runs over {padded.steps} steps of which {padded.share:.0%} are padding, without key_padding_mask or "
        "attn_mask, and the model never asks where padding is.",
        {"operation": plain(op.name), "shape": list(shape)},
        where,
        f"Give it `key_padding_mask=(tokens == {padded.value:g})` (`src_key_padding_mask` of a TransformerEncoder).",
        0.85,
    )


def _behind(knowledge: Knowledge, op: Op) -> list[Op]:
    """The few operations before: scaling and masks of attention scores."""
    found, waiting = [], [op]
    for _ in range(6):
        waiting = [source for one in waiting for source in knowledge.trace.sources(one)]
        found.extend(waiting)
    return found


def _mean(knowledge: Knowledge, padded: Padded, op: Op) -> PaddingFault | None:
    name, shape = plain(op.name), shape_of(op)
    if name == "embedding_bag":
        wrong = op.settings.get("padding_idx") != padded.value and op.settings.get("mode", "mean") == "mean"
        over_time = wrong and shape[0] == padded.samples
    elif name in {"mean", "adaptive_avg_pool1d"}:
        sources = knowledge.trace.sources(op)
        before = shape_of(sources[0]) if sources else ()
        over_time = len(before) == 3 and before[0] == padded.samples and padded.steps in before[1:] and before[1] != before[2]
        over_time = over_time and padded.steps not in shape[1:] and shape[0] == padded.samples
    else:
        return None
    if not over_time:
        return None
    return PaddingFault(
        "Padding is averaged into the mean over time: the mean depends on how much a sequence was filled up.",
        f"`{name}` averages over {padded.steps} steps, of which {padded.share:.0%} are padding; lengths or a "
        f"mask are never used.",
        {"operation": name, "steps": padded.steps, "share": padded.share},
        line_of(knowledge.run, op),
        "Sum the real steps only and divide by their number: `(x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)`"
        + either(
            knowledge.run,
            pytorch=", or give the EmbeddingBag its padding_idx." if name == "embedding_bag" else ".",
            mindspore=".",
        ),
        0.8,
    )


def embedding_fault(knowledge: Knowledge, padded: Padded) -> PaddingFault | None:
    """An Embedding that keeps another index at zero than the one that sequences are padded with."""
    for op in knowledge.first_takers(padded):
        index = op.settings.get("padding_idx")
        if plain(op.name) != "embedding" or index is None or index < 0 or index == padded.value:
            continue
        module = knowledge.run.modules.get(op.module) if op.module is not None else None
        where = module.built if module is not None else op.location
        if module is not None and parent_of(knowledge.run, module.id) is None:
            where = module.built or op.location
        return PaddingFault(
            f"The Embedding's padding_idx is {index}, but sequences are padded with {padded.value:g}: token "
            f"{index} is kept at zero and "
            "the padding is trained.",
            f"`padding_idx={index}`; {padded.share:.0%} of all steps are {padded.value:g}, at the end of the sequences only.",
            {"padding_idx": index, "padding": padded.value},
            None if where is None else where.of_module(module.name if module is not None else None),
            f"Pad with {index}, or pass `padding_idx={padded.value:g}` to the Embedding.",
            0.85,
        )
    return None
