"""Parts that are gathered by layer stay the same sum."""

import numpy as np

from model.analysis.attribution.score_parts import FEW, PartGroup, grouped, summed

LAYERS = 3
PARTS = (
    "token",
    *(f"decoder.{layer}.self.{head}" for layer in range(LAYERS) for head in range(6)),
    "decoder.1.feed_forward",
    "bias",
)


def test_few_parts_stand_alone_and_many_are_gathered_by_layer() -> None:
    assert grouped(PARTS[:FEW]) == tuple(PartGroup((at,)) for at in range(FEW))
    token, *layers, bias = grouped(PARTS)
    assert (token, bias) == (PartGroup((0,)), PartGroup((20,)))
    assert [group.layer for group in layers] == [0, 1, 2]
    assert layers[1].members == (*range(7, 13), 19)


def test_an_opened_layer_shows_its_parts_and_each_part_counts_once() -> None:
    groups = grouped(PARTS, opened=1)
    assert sum(group.layer is None for group in groups) == 2 + 7
    assert sorted(at for group in groups for at in group.members) == list(range(len(PARTS)))


def test_sums_of_groups_are_the_sums_of_their_parts() -> None:
    values = np.random.default_rng(0).normal(size=(len(PARTS), len(PARTS)))
    rows, columns = grouped(PARTS, opened=2), grouped(PARTS)
    sums = summed(values, rows, columns)
    assert sums.shape == (len(rows), len(columns))
    expected = sum(values[at, other] for at in range(1, 7) for other in (*range(7, 13), 19))
    np.testing.assert_allclose(sums[1, 2], expected)
    np.testing.assert_allclose(sums.sum(), values.sum())
