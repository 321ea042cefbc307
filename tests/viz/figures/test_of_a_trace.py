"""The public pictures of a run hold the run's own numbers."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model import Intervention, Trace, load_model
from model.arithmetic.attention import softmax
from tests.cases import cases
from viz import figures

TEXT = "the cat sat on the mat and the cat sat"
PLACE = "decoder.1.self"
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "figures.md"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_model("house-gpt").trace(TEXT)


def test_every_public_name_is_a_picture() -> None:
    assert all(callable(getattr(figures, name)) for name in figures.__all__)
    with pytest.raises(AttributeError):
        _ = figures.nothing  # type: ignore[attr-defined]


def test_the_guide_has_a_row_for_each_picture() -> None:
    rows = re.findall(r"^\| `(\w+)\(", GUIDE.read_text(encoding="utf-8"), re.M)
    assert sorted(rows) == sorted(figures.__all__)


def test_weights_are_softmax_of_queries_and_keys(trace: Trace) -> None:
    attention = trace.find(PLACE)
    scores = attention.query[7] @ attention.key[7].T * attention.scale
    scores[~np.tri(len(scores), dtype=bool)] = -np.inf
    drawn = figures.weights(trace, PLACE, 7).data[-1].z
    np.testing.assert_allclose(np.nan_to_num(drawn), softmax(scores), atol=1e-6)


@cases("which", ["query", "key", "value", "output"])
def test_vectors_are_the_recorded_ones(which, trace: Trace) -> None:
    drawn = figures.token_vectors(trace, PLACE, 3, which)  # type: ignore[arg-type]
    np.testing.assert_array_equal(drawn.data[-1].z, getattr(trace.find(PLACE), which)[3])


def test_a_difference_is_the_changed_run_less_the_other(trace: Trace) -> None:
    changed = load_model("house-gpt").trace(TEXT, intervention=Intervention(scale=0.1))
    drawn = figures.difference(trace, changed, PLACE, 7).data[-1].z
    weights = [run.find(PLACE).weights(7) for run in (changed, trace)]
    np.testing.assert_allclose(drawn, weights[0] - weights[1], atol=1e-7)
    assert np.abs(drawn).max() > 0.1


def test_heads_stand_in_rows_of_layers(trace: Trace) -> None:
    drawn = figures.heads(trace)
    names = next(one for one in drawn.data if one.name == "heads")
    assert len(names.x) == 4 * 8


def test_a_statistic_is_a_number_for_each_head(trace: Trace) -> None:
    drawn = figures.statistic(trace, "previous").data
    cells = next(one for one in drawn if one.type == "heatmap").z
    weights = trace.find("decoder.0.self").weights(1)
    assert cells.shape == (4, 8)
    assert cells[0, 1] == pytest.approx(np.diagonal(weights, -1).mean(), abs=1e-6)


def test_what_the_run_does_not_have_is_refused(trace: Trace, subtests: pytest.Subtests) -> None:
    for draw, said in [
        (lambda trace: figures.weights(trace, PLACE, 8), "has heads 0 to 7, not 8"),
        (lambda trace: figures.weights(trace, "decoder.9.self", 0), "There is no attention"),
        (lambda trace: figures.token_vectors(trace, PLACE, 0, "W_Q"), "which is 'W_Q'"),
        (
            lambda trace: figures.matrix(np.eye(1), rows=["a"], columns=["b"], quantity="effect"),
            "quantity is 'effect'",
        ),
        (lambda trace: figures.statistic(trace, "kindness"), "There is no statistic 'kindness'"),
        (
            lambda trace: figures.difference(
                trace, load_model("house-gpt").trace("the cat"), PLACE, 0
            ),
            "has weights of",
        ),
        (lambda trace: figures.matrix(np.eye(2), rows=["a"], columns=["b", "c"]), "2, 2"),
    ]:
        with subtests.test(said=said), pytest.raises(ValueError, match=said):
            draw(trace)  # type: ignore[operator]


def test_a_statistic_that_the_text_cannot_tell_says_why() -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        figures.statistic(load_model("house-gpt").trace("the cat sat"), "induction")


@pytest.mark.process
def test_scripts_need_neither_streamlit_nor_duckdb() -> None:
    scripts = (
        "from model.capture import capture", "from model.analysis import score_parts",
        "from model import load_model; load_model('stories').trace('Once')",
        "from viz import figures; figures.weights", "from viz.notebook import show",
    )  # fmt: skip
    ask = "\nassert not {'streamlit', 'duckdb'} & {*sys.modules}\n"
    asked = "import sys\n" + "".join(script + ask for script in scripts)
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
