"""All heads at once: the same numbers as of one head, and a plane on which similar heads are near."""

from dataclasses import replace

import numpy as np
import pytest

from model.profile.every_head import by_class, by_distance, mean_maps, to_class
from model.profile.projection import FEATURES, features, most_similar, projected
from tests.model.profile.synthetic import KINDS, many_heads, small_profile


def test_all_heads_at_once_have_the_numbers_of_each() -> None:
    profile = small_profile()
    distances, maps, classes = by_distance(profile), mean_maps(profile), by_class(profile)
    for at, head in enumerate(profile.sums.heads):
        assert np.array_equal(distances[at], profile.by_distance(head))
        assert np.array_equal(maps[at], profile.mean_map(head))
        assert np.array_equal(classes[at], profile.by_class(head).to_numpy(), equal_nan=True)
    assert to_class(profile).sum(1) == pytest.approx(np.ones(len(maps)), abs=1e-6)


def test_heads_of_one_kind_lie_together_and_shares_and_places_are_those_of_the_features() -> None:
    profile = many_heads(60)
    plane = projected([profile])
    scaled = plane.standardised[0]
    assert scaled.mean(0) == pytest.approx(np.zeros(len(FEATURES)), abs=1e-9)
    assert plane.places[0] == pytest.approx(scaled @ plane.loadings.T)
    variance = plane.places[0].var(0) / scaled.var(0).sum()
    assert plane.shares == pytest.approx(tuple(variance))
    assert plane.shares[0] >= plane.shares[1] > 0
    kinds = np.arange(60) % len(KINDS)
    assert most_similar(scaled, scaled[::-1]) == list(range(60))[::-1]
    middles = np.array([plane.places[0][kinds == kind].mean(0) for kind in range(len(KINDS))])
    away = np.linalg.norm(plane.places[0][:, None] - middles, axis=2)
    assert (away.argmin(1) == kinds).mean() > 0.9


def test_two_profiles_share_a_plane_and_a_missing_number_counts_as_the_mean() -> None:
    one, other = many_heads(20), small_profile()
    plane = projected([one, other])
    assert [len(places) for places in plane.places] == [20, len(other.sums.heads)]
    assert projected([one, one]).places[0] == pytest.approx(projected([one, one]).places[1])
    known = features(other)
    assert np.isnan(known).any()
    assert np.isfinite(plane.places[1]).all()
    silent = replace(one, sums=replace(one.sums, numbers={
        name: np.zeros_like(numbers) for name, numbers in one.sums.numbers.items()
    }))  # fmt: skip
    assert (projected([silent]).places[0] == 0).all()
