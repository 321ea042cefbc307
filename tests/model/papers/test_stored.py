"""Answers that were computed beforehand are the model's own, to the digits that are shown."""

import pytest

from model import load_model
from model.papers import results
from model.papers.claims import PaperResult, claims
from model.papers.stored import as_json, has_stored, read_stored, stored_results
from model.run.weights_hash import weights_hash

SMALL = ("induction", "stories")
LARGE = ("house-gpt", "translate-en-fr", "minilm")


def _shown(results: tuple[PaperResult, ...]) -> list[tuple[str, ...]]:
    return [
        (one.name, one.verdict, str(one.figure), str(one.control), one.reason) for one in results
    ]


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(one, marks=pytest.mark.slow) for one in LARGE)]
)
def test_a_stored_answer_is_what_the_model_answers_now(name: str) -> None:
    model = load_model(name, device="cpu")
    stored = stored_results(name, weights_hash(model))
    assert [one.name for one in stored] == list(claims())
    assert _shown(stored) == _shown(results(model))


def test_other_weights_have_no_stored_answers() -> None:
    assert has_stored("stories")
    assert stored_results("stories", "0" * 64) == ()
    assert stored_results("no-such-model", "0" * 64) == ()
    model = load_model("stories", device="cpu")
    assert weights_hash(model) == read_stored()["stories"][0]
    assert weights_hash(model) != read_stored()["induction"][0]


def test_the_file_is_read_as_it_was_written() -> None:
    from model.papers.stored import FILE

    assert as_json(read_stored()) == FILE.read_text(encoding="utf-8")
