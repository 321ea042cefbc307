"""What the runs say of a claim: an order holds where every seed has it."""

import pytest

from model.training import claims
from model.training.claims import CLAIMS, Claim

TRIED = Claim("", "", {"a": "x", "b": "y"}, (("a", "b"),), "", measure="held_out_loss")


def runs_ending(first: list[float | None], second: list[float | None]) -> claims.Runs:
    return {
        name: {
            str(seed): [{"step": 0, "held_out_loss": 9.0}, {"step": 9, "held_out_loss": value}]
            for seed, value in enumerate(values)
        }
        for name, values in (("x", first), ("y", second))
    }


@pytest.mark.parametrize(("first", "second", "expected"), [
    ([1, 1, 1, 1], [2, 2, 2, 2], "supported"),
    ([1, 1, 1, 3], [2, 2, 2, 2], "in part"),
    ([3, 3, 3, 3], [2, 2, 2, 2], "contradicted"),
    ([3, 3, 3, 3], [None, None, None, None], "supported"),
    ([None, 1, 1, 1], [2, 2, 2, 2], "in part"),
])  # fmt: skip
def test_a_claim_holds_where_every_seed_has_its_order(
    first: list[float | None], second: list[float | None], expected: str
) -> None:
    runs = runs_ending(first, second)
    assert claims.verdict(TRIED, runs) == expected
    ended = claims.ending(TRIED, "b", runs)
    if None not in second:
        assert (ended.mean, ended.spread) == (2, (2, 2))


def test_every_claim_speaks_of_variants_that_were_run() -> None:
    for claim in CLAIMS:
        assert set(claim.variants.values()) <= claims.shipped_runs().keys()
        assert {name for pair in claim.better for name in pair} <= claim.variants.keys()
