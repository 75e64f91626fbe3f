"""Datasets without a training run: what is missing in them, mislabelled, out of balance, or not the standard's."""

from trueline.datasets.examine import examine
from trueline.datasets.open import open_dataset
from trueline.datasets.summary import TableSummary
from trueline.datasets.table import Table

__all__ = ["Table", "TableSummary", "examine", "open_dataset"]
