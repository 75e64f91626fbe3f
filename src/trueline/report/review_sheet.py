"""The review sheet: about 50 training samples, most suspicious labels first, as one HTML file that needs no network."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.errors import TruelineError
from trueline.model import Sample
from trueline.store import Run
from trueline.views.margins import suspicion, training_visits
from trueline.views.sample_places import place_of_samples

ABOUT = 50
_MOST_LABELS = 20
_MOST_VALUES = 64
# Pictures have 1, 3 or 4 channels, and sides of at least this.
_CHANNELS = (1, 3, 4)
_SMALLEST_SIDE = 4

_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Label review: {{ run }}</title><style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 1.4em } .grid { display: grid; gap: 1em; grid-template-columns: repeat(auto-fill, minmax(11em, 1fr)) }
.card { border: 1px solid #bbb; border-radius: 6px; padding: .7em; overflow-wrap: anywhere }
.card.odd { border: 2px solid #b00020 }
img { width: 100%; max-width: 10em; image-rendering: pixelated; background: #eee } .label { font-weight: 600 }
.said { color: #b00020 } .place { color: #555; font-size: .85em } pre { white-space: pre-wrap; font-size: .8em; margin: .3em 0 }
</style></head><body>
<h1>Label review: {{ run }}</h1>
<p>{{ cards|length }} training samples of {{ labels }} labels, most suspicious first, out of {{ judged }} that were judged. A red
frame: the model preferred another class over the run. Margins are in units of a usual one; below zero, the label loses.</p>
<div class="grid">{% for card in cards %}
<div class="card{% if card.odd %} odd{% endif %}">
{% if card.picture %}<img alt="sample {{ loop.index }}" src="data:image/png;base64,{{ card.picture }}">{% endif %}
{% if card.text %}<pre>{{ card.text }}</pre>{% endif %}
<div class="label">label {{ card.label }}</div>
{% if card.odd %}<div class="said">model says {{ card.predicted }}</div>{% endif %}
<div class="place">{% if card.margin is not none %}margin {{ "%.2f"|format(card.margin) }} · {% endif %}{{ card.place }}</div>
</div>{% endfor %}
</div></body></html>
"""


class Card(msgspec.Struct, frozen=True):
    """One sample on the sheet. `margin` and `predicted` are None when the sample was never judged in training."""

    label: int
    predicted: int | None
    margin: float | None
    picture: str | None
    text: str | None
    place: str

    @property
    def odd(self) -> bool:
        return self.margin is not None and self.margin < 0 and self.predicted != self.label


def review_sheet(run: Run, about: int = ABOUT) -> str:
    """The sheet as HTML."""
    try:
        import jinja2  # noqa: PLC0415 - only this report needs it
    except ImportError as problem:
        raise TruelineError("The review sheet needs jinja2. Install it with: pip install 'trueline[report]'") from problem
    judged, cards = review_cards(run, about)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    labels = len({card.label for card in cards})
    return environment.from_string(_TEMPLATE).render(run=run.info.name, cards=cards, judged=judged, labels=labels)


def review_cards(run: Run, about: int = ABOUT) -> tuple[int, list[Card]]:
    """How many samples were judged, and the chosen ones: one of each label (20 labels at most), then the most suspicious."""
    visits = training_visits(run)
    ranked: dict[int, float] = {}
    predicted: dict[int, int] = {}
    if visits is not None and visits.count:
        stretches = visits.stretches()
        samples, means = suspicion(stretches)
        ranked = dict(zip(samples.tolist(), means.tolist(), strict=True))
        for stretch in stretches:
            predicted |= dict(zip(stretch.samples.tolist(), stretch.predicted.tolist(), strict=True))
    kept = {sample.fingerprint: sample for sample in run.samples}
    if not kept:
        raise TruelineError(
            f"Run {run.info.name} holds no samples to review: no classifier with one label per sample was recorded, or its "
            "inputs could not be kept. Record the training again with: trueline run SCRIPT"
        )
    by_suspicion = sorted(kept.values(), key=lambda sample: ranked.get(sample.fingerprint, float("inf")))
    chosen = _stratified(by_suspicion, about)
    places = place_of_samples(run, {sample.fingerprint for sample in chosen})
    cards = []
    for sample in chosen:
        picture, text = _content(sample)
        said = predicted.get(sample.fingerprint)
        place = ", ".join(f"{name} {value}" for name, value in places.get(sample.fingerprint, {}).items() if value is not None)
        cards.append(Card(sample.label, said, ranked.get(sample.fingerprint), picture, text, place))
    return len(ranked), cards


def _stratified(samples: list[Sample], about: int) -> list[Sample]:
    """At least one of each label, of 20 labels at most; the order, most suspicious first, is kept."""
    firsts: dict[int, Sample] = {}
    for sample in samples:
        firsts.setdefault(sample.label, sample)
    labels = set(list(firsts)[:_MOST_LABELS])
    chosen = {firsts[label].fingerprint for label in labels}
    for sample in samples:
        if len(chosen) >= about:
            break
        if sample.label in labels:
            chosen.add(sample.fingerprint)
    return [sample for sample in samples if sample.fingerprint in chosen]


def _content(sample: Sample) -> tuple[str | None, str | None]:
    """A picture (PNG in base64) or a text."""
    if sample.dtype == "text":
        return None, sample.content.decode(errors="replace")
    values = np.frombuffer(sample.content, "<f4" if sample.dtype == "float32" else "<i8").reshape(sample.shape)
    pixels = _pixels(values)
    if pixels is not None:
        return base64.b64encode(png(pixels)).decode(), None
    shown = [f"{value:.4g}" for value in values.reshape(-1)[:_MOST_VALUES].tolist()]
    return None, " ".join(shown) + (" …" if values.size > _MOST_VALUES else "")


def _pixels(values: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Height, width and channels in bytes; None for what is no picture. A long square row is taken for a flattened one."""
    if values.ndim == 1 and values.size >= 49 and int(values.size**0.5) ** 2 == values.size and values.dtype.kind == "f":
        values = values.reshape(int(values.size**0.5), -1)
    if values.ndim == 2 and values.dtype.kind == "f":
        values = values[..., None]
    elif values.ndim == 3 and values.shape[0] in _CHANNELS:
        values = np.moveaxis(values, 0, -1)
    if values.ndim != 3 or values.shape[2] not in _CHANNELS or min(values.shape[:2]) < _SMALLEST_SIDE:
        return None
    finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(finite.min()), float(finite.max())
    scaled: NDArray[np.uint8] = ((finite - low) * (255 / ((high - low) or 1.0))).round().astype(np.uint8)
    return scaled


def png(pixels: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file with the pixels (height, width, channels)."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    # Each line starts with its filter: none.
    lines = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
