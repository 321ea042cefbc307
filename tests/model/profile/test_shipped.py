"""The profiles that ship are those of the shipped models over the texts that their card names."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from model import load_model
from model.loading.registry import models
from model.profile import Profile, open_profile
from model.profile.battery import KINDS
from model.profile.examples import KEPT
from model.profile.shipped import (
    made,
    model_and_step,
    profile_of,
    shipped_profile,
    shipped_profiles,
)
from model.profile.window import Profiled, window_sums
from model.run.weights_hash import weights_hash
from tools import profiles_card
from tools.training.profiles import PLANS, model_of

WINDOWS = 2  # of a profile that are computed again
SHIPPED = sorted(shipped_profiles())


def test_every_model_that_ships_has_a_profile() -> None:
    assert {name for name, entry in models.items() if entry.ships} <= {*SHIPPED} <= {*PLANS}


def test_all_profiles_together_are_small() -> None:
    files = [file for folder in shipped_profiles().values() for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) <= 8e6


def test_the_card_is_of_the_files() -> None:
    assert profiles_card.PAGE.read_text(encoding="utf-8") == profiles_card.card(), (
        "run python -m tools.profiles_card"
    )


def test_the_guides_table_of_verdicts_is_of_the_files() -> None:
    page = profiles_card.GUIDE.read_text(encoding="utf-8")
    assert page == profiles_card.guide(page), "run python -m tools.profiles_card"
    rows = [line for line in page.splitlines() if line.startswith("| `") and "|---" not in line]
    given = {name: open_profile(folder).given for name, folder in shipped_profiles().items()}
    every = sum(map(len, given.values()))
    assert f"All {every} labels" in page
    assert len([row for row in rows if row.count("|") == 8]) >= every
    for name, mine in given.items():
        assert (mine["does"] != "").all(), (
            name
        )  # every label that weights give has its second verdict
        claims = [kind.name for kind in KINDS if kind.does and not kind.like]
        wrong = mine[mine["label"].isin(claims)]
        (row,) = [one for one in rows if one.startswith(f"| `{name}` |") and one.count("|") == 9]
        cells = [int(cell) for cell in row.split("|")[2:-1]]
        assert cells[0] == sum(cells[1:5])
        assert cells[5:] == [len(wrong), int((~wrong["earned"]).sum())]


def test_the_texts_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    hashes = {
        plan.file: hashlib.sha256(plan.written(tmp_path).read_bytes()).hexdigest()
        for plan in set(PLANS.values())
    }
    for name, folder in shipped_profiles().items():
        plan, how = PLANS[name], made(folder)
        assert open_profile(folder).about.corpus == hashes[plan.file], name
        assert (how.text, how.source) == (plan.text, plan.source)


def test_windows_computed_again_have_the_examples_of_the_profile(subtests: pytest.Subtests) -> None:
    for name in [name for name in SHIPPED if model_and_step(name)[0] in models]:
        with subtests.test(name=name):
            model = model_of(name)
            found = open_profile(shipped_profiles()[name])
            assert found.about.weights == weights_hash(model), "other weights were profiled"
            assert (profile_of(model) is None) == (model_and_step(name)[1] is not None)
            profiled = Profiled.of(model)
            windows = np.unique(found.sums.examples.rows["window"])
            for number in windows[:: max(1, len(windows) // WINDOWS)][:WINDOWS].tolist():
                again = window_sums(profiled, found.texts[number], number, found.about.window)
                assert_listed(found, again.examples.rows, number)


def assert_listed(found: Profile, again: np.ndarray, number: int) -> None:
    """Every example of one window that was computed again is in the profile, or is weaker than KEPT that
    are."""
    rows = found.sums.examples.rows
    for one in again:
        mine = rows[(rows["head"] == one["head"]) & (rows["criterion"] == one["criterion"])]
        here = mine[mine["window"] == number]
        if len(here):
            assert here["score"] == pytest.approx(one["score"], rel=1e-4, abs=1e-5)
            assert here["weight"] == pytest.approx(one["weight"], rel=1e-4, abs=1e-5)
        else:
            assert len(mine) == KEPT
            assert one["score"] <= mine["score"].min() + 1e-4


def test_other_weights_have_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("induction")
    found = shipped_profile("induction")
    assert profile_of(model) is found
    assert weights_hash(model) == found.about.weights
    other = load_model("induction")
    other.module.embedding.tokens.weight[0, 0] += 1
    assert profile_of(other) is None
    assert shipped_profile("no such model") is None
