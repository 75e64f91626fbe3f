"""What a pass over a table found out: the nouns that the findings, the report and the JSON document are made of."""

from __future__ import annotations

import msgspec

from trueline.datasets.duplicates import Duplicates
from trueline.datasets.sentinels import Sentinel


class FieldSummary(msgspec.Struct):
    """One field. `count` is the number of its values, present or not: the rows, or rows times features for arrays.

    `words` are texts where a number should be, or that say that there is no value, with their counts. `doubtful` are words that
    may as well be categories ("none", "NA"). `free_text` marks fields of texts that hardly repeat: there an empty text can be
    meant. `distinct` is exact up to 1,024.
    """

    name: str
    type: str
    role: str = "feature"
    count: int = 0
    null: int = 0
    nan: int = 0
    inf: int = 0
    empty: int = 0
    blank: int = 0
    words: dict[str, int] = {}
    doubtful: dict[str, int] = {}
    sentinels: list[Sentinel] = []
    first_missing: int | None = None
    distinct: int = 0
    constant: str | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    free_text: bool = False

    @property
    def missing(self) -> int:
        plain = self.null + self.nan + self.inf + self.empty + self.blank
        return plain + sum(self.words.values()) + sum(sentinel.count for sentinel in self.sentinels)


class LabelSummary(msgspec.Struct):
    """The label: `kind` is `class` (counts are known), `value` (a number to predict) or `many` (too many to be classes)."""

    field: str
    guessed: bool
    kind: str
    counts: dict[str, int] = {}
    hashes: dict[int, str] = {}


class Candidate(msgspec.Struct, frozen=True):
    """A row whose label a cross-validated classifier doubts: `quality` is its probability for the given label."""

    row: int
    label: str
    likelier: str
    quality: float


class LabelErrors(msgspec.Struct):
    """What cleanlab says: the candidates, worst first (not all of them), how many there are, of how many rows, and how often the
    classifier that it relies on is right."""

    candidates: list[Candidate]
    total: int
    rows: int
    accuracy: float


class TableSummary(msgspec.Struct):
    """`chance_pairs` is how many pairs of rows with equal features chance alone would give, were the fields independent;
    `ignored` are fields that number the rows. `complete` is False when a limit ended the pass."""

    name: str
    rows: int
    row_word: str
    fields: list[FieldSummary]
    label: LabelSummary | None
    duplicates: Duplicates
    chance_pairs: float
    ignored: list[str] = []
    notes: list[str] = []
    faults: list[str] = []
    complete: bool = True
    label_errors: LabelErrors | None = None

    def field(self, name: str) -> FieldSummary:
        return next(field for field in self.fields if field.name == name)

    @property
    def repeats_are_real(self) -> bool:
        """Whether rows with equal features are copies of each other: chance would hardly have made a single pair of them."""
        return self.chance_pairs < 0.01
