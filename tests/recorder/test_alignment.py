"""Batches of one run in the shape that another one needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trueline.recorder.alignment import Alignment, fitted
from trueline.store.feed import Feed


def test_other_batch_size_and_type() -> None:
    given = np.arange(12, dtype=np.int64).reshape(4, 3)
    found = fitted(given, np.zeros((2, 3), np.int32))
    assert found is not None
    assert (found.shape, found.dtype) == ((4, 3), np.int32)


def test_channels_first_and_last() -> None:
    given = np.random.default_rng(0).normal(size=(2, 3, 8, 6)).astype(np.float32)
    found = fitted(given, np.zeros((2, 8, 6, 3), np.float32))
    assert found is not None
    assert np.array_equal(found, given.transpose(0, 2, 3, 1))


def test_images_as_rows_of_numbers() -> None:
    given = np.arange(32, dtype=np.float32).reshape(2, 1, 4, 4)
    found = fitted(given, np.zeros((2, 16), np.float32))
    assert found is not None
    assert np.array_equal(found, given.reshape(2, 16))


def test_targets_of_sequences_in_one_row() -> None:
    given = np.arange(6)
    found = fitted(given, np.zeros((2, 3), np.int64))
    assert found is not None
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_is_ignored_is_marked_as_in_mine() -> None:
    given = np.array([[3, 1, -100], [2, -100, -100]])
    marked = fitted(given, np.array([[0, 5, 4], [2, -1, -1]]))
    assert marked is not None
    assert marked.tolist() == [[3, 1, -1], [2, -1, -1]]
    # Mine has a mask in the place of a mark.
    masked = fitted(given, np.array([[3, 1, 0], [2, 0, 7]]))
    assert masked is not None
    assert masked.tolist() == [[3, 1, 0], [2, 0, 7]]


def test_the_same_samples_in_patches_stay_as_they_are() -> None:
    images = np.random.default_rng(0).normal(size=(3, 1, 4, 4)).astype(np.float32)
    patches = images.reshape(3, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4).reshape(3, 4, 4)
    found = fitted(images, patches)
    assert found is not None
    assert np.array_equal(found, patches)
    # Other samples are taken as they come.
    other = fitted(images, patches + 1)
    assert other is not None
    assert np.array_equal(other, images.reshape(3, 4, 4))


def test_what_does_not_mean_the_same_does_not_fit() -> None:
    assert fitted(np.zeros((4, 3)), np.zeros((4, 3), np.int64)) is None
    assert fitted(np.zeros((4, 3)), np.zeros((4, 5))) is None


def test_batches_of_the_reference_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = Alignment(tmp_path / "a")
    for number in range(3):
        assert first.fetched([np.full((2, 2), float(number)), np.array([number, number])], step=0) is None
    first.close()
    kept = Feed(tmp_path / "a")
    assert len(kept) == 3
    second = Feed(tmp_path / "b")
    second.write(0, [np.zeros(1)])
    assert second.read(1) is None
    batch = kept.read(2)
    assert batch is not None
    assert [part.tolist() for part in batch] == [[[2.0, 2.0], [2.0, 2.0]], [2, 2]]


def test_batch_that_was_for_evaluation_is_taken_back(tmp_path: Path) -> None:
    kept = Alignment(tmp_path)
    kept.fetched([np.zeros((2, 2))], step=0)
    kept.took_back()
    kept.fetched([np.ones((2, 2))], step=0)
    kept.close()
    assert len(Feed(tmp_path)) == 1
    assert Feed(tmp_path).read(0)[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]  # type: ignore[index]


def test_noise_is_one_unit_in_the_last_place(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    moved = Alignment(tmp_path, perturbed=True).nudged(values)
    assert np.array_equal(np.abs(moved - values) <= np.spacing(np.abs(values)), np.ones(1000, bool))
    assert (moved > values).any()
    assert (moved < values).any()
    whole = np.arange(5)
    assert Alignment(tmp_path, perturbed=True).nudged(whole) is whole


def test_marks_of_what_is_ignored_are_mine() -> None:
    given = np.array([[3, 4, -1], [5, -1, -1]])
    mine = np.array([[1, -100, -100], [2, 6, 7]])
    found = fitted(given, mine)
    assert found is not None
    assert found.tolist() == [[3, 4, -100], [5, -100, -100]]


def test_time_first_is_given_samples_first() -> None:
    given = np.arange(6).reshape(2, 3)
    found = fitted(given, np.zeros((3, 2), np.int64))
    assert found is not None
    assert found.tolist() == given.T.tolist()


def test_what_the_model_computed_stays(tmp_path: Path) -> None:
    reference = Alignment(tmp_path / "reference")
    (tmp_path / "reference").mkdir()
    x, code, other = np.ones((4, 6), np.float32), np.full((4, 2), 2, np.float32), np.full((4, 2), 3, np.float32)
    reference.fetched([x], step=0)
    reference.beside(code)
    reference.beside(other)
    reference.close()
    mine = Alignment(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    mine._given = reference._kept
    assert mine.fetched([x], step=0) is not None
    # Nearly the first of the two, then nearly the second: neither is replaced.
    assert mine.beside(code * np.float32(1 + 1e-6)) is None
    assert mine.beside(other) is None
    # Nothing is left.
    assert mine.beside(code + 5) is None


def test_targets_that_a_mask_picked_are_not_those_of_the_batch(tmp_path: Path) -> None:
    reference = Alignment(tmp_path / "reference")
    (tmp_path / "reference").mkdir()
    reference.fetched([np.zeros((4, 9), np.int64), np.arange(4)], step=0)
    reference.close()
    mine = Alignment(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    mine._given = reference._kept
    assert mine.fetched([np.ones((4, 9), np.int64)], step=0) is not None
    assert mine.target(np.zeros(23, np.int64)) is None
    assert mine.unfit is not None
