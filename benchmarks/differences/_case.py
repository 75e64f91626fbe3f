"""A script, its reference, and what is expected of their comparison: faithful pairs, and those with a planted difference.

Each folder of `models/` holds one model three times: `reference.py`, `refactor.py` (PyTorch too, in other words) and `port.py`
(MindSpore). Variants are faithful pairs made by edits of both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.differences import _planted_cnn, _planted_lstm, _planted_resnet, _planted_transformer
from benchmarks.differences._difference import Difference, Edit, applied, planted

MODELS = Path(__file__).parent / "models"
WAYS = {"refactor": "pytorch", "port": "mindspore"}
FAITHFUL = "faithful"
MINE = "mine.py"
REFERENCE = "ref.py"

PLANTED: dict[str, dict[str, list[Difference]]] = {
    "cnn": {"refactor": _planted_cnn.REFACTOR, "port": _planted_cnn.PORT},
    "resnet": {"refactor": _planted_resnet.REFACTOR, "port": _planted_resnet.PORT},
    "lstm": {"refactor": _planted_lstm.REFACTOR, "port": _planted_lstm.PORT},
    "transformer": {"refactor": _planted_transformer.REFACTOR, "port": _planted_transformer.PORT},
}


@dataclass(frozen=True)
class Variant:
    """A faithful pair made of `reference.py` and `refactor.py` of a model by the same change on both sides."""

    model: str
    name: str
    reference: Edit
    refactor: Edit


def _cast(indent: str, *statements: str) -> Edit:
    """Put these statements under autocast."""
    context = f'{indent}with torch.autocast("cpu", dtype=torch.bfloat16):'
    return Edit(
        "\n".join(f"{indent}{each}" for each in statements),
        "\n".join([context, *(f"{indent}    {each}" for each in statements)]),
    )


VARIANTS = (
    Variant(
        "cnn",
        "bfloat16",
        _cast("        ", "logits = net(x)", "loss = F.cross_entropy(logits, y)"),
        _cast("        ", "prediction = model(inputs)", "loss = criterion(prediction, targets)"),
    ),
    Variant(
        "transformer",
        "bfloat16",
        _cast("    ", "logits = model(x)", "loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())"),
        _cast("        ", "scores = gpt(tokens)", "loss = cross_entropy(scores.transpose(1, 2), following)"),
    ),
)


@dataclass(frozen=True)
class Case:
    """One comparison to make. Without a difference it is a faithful pair, of which no divergence may be reported."""

    name: str
    model: str
    way: str
    """`refactor` or `port`."""
    files: dict[str, str]
    difference: Difference | None = None
    lines: tuple[int, ...] = ()
    """The lines of the script that count as the right place."""

    @property
    def kind(self) -> str:
        return self.difference.kind.name if self.difference else FAITHFUL

    @property
    def framework(self) -> str:
        return WAYS[self.way]


def script(model: str, name: str) -> str:
    return (MODELS / model / f"{name}.py").read_text(encoding="utf-8")


def faithful() -> list[Case]:
    """Pairs that compute the same."""
    pairs = [
        Case(f"{model}/{way}/{FAITHFUL}", model, way, {MINE: script(model, way), REFERENCE: script(model, "reference")})
        for model in PLANTED
        for way in WAYS
    ]
    return pairs + [_varied(variant) for variant in VARIANTS]


def _varied(variant: Variant) -> Case:
    mine, _ = applied(script(variant.model, "refactor"), variant.refactor)
    reference, _ = applied(script(variant.model, "reference"), variant.reference)
    name = f"{variant.model}/refactor/{FAITHFUL}_{variant.name}"
    return Case(name, variant.model, "refactor", {MINE: mine, REFERENCE: reference})


def different() -> list[Case]:
    """Pairs with one planted difference each."""
    return [_planted(model, way, made) for model, ways in PLANTED.items() for way, every in ways.items() for made in every]


def _planted(model: str, way: str, made: Difference) -> Case:
    mine = planted(script(model, way), made)
    files = {MINE: mine.text, REFERENCE: script(model, "reference")}
    return Case(f"{model}/{way}/{made.kind.name}", model, way, files, made, mine.lines)


def only(found: Iterable[Case], wanted: list[str]) -> list[Case]:
    """The cases whose name contains one of these words; all of them when nothing is wanted."""
    return [case for case in found if not wanted or any(word in case.name for word in wanted)]
