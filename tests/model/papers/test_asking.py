"""All claims asked of models of every kind, of models wired so that a claim is true or is not, and by the
command."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import torch

from model import Model
from model.papers import results, running
from model.papers.__main__ import main
from model.papers.claims import HOLDS, HOLDS_NOT, NOT_ASKED, VERDICTS, PaperResult, claims
from model.papers.report import report, summary
from tests.cases import cases
from tests.model.papers.wired import encoder, wired
from tests.model.tiny import build, loaded
from viz.command import command

KINDS = ("stories", "induction", "encoder", "translate-en-fr", "attention-only", "llama", "bert")


@cache
def of_kind(name: str) -> tuple[Model, tuple[PaperResult, ...]]:
    """A model of a kind, and what it answers to all claims."""
    model = encoder() if name == "encoder" else loaded(name)
    return model, results(model)


@pytest.mark.slow
@cases("name", KINDS)
def test_each_claim_has_a_verdict_of_every_kind_of_model(name) -> None:
    model, found = of_kind(name)
    assert [one.name for one in found] == list(claims())
    for one in found:
        assert one.verdict in VERDICTS
        assert one.reason.endswith(".")
        assert one.model == model.name
        is_asked = one.verdict != NOT_ASKED
        assert (one.figure is not None, one.control is not None) == (is_asked, is_asked)
        if one.figure is not None and one.control is not None:
            assert one.figure.unit
            assert torch.isfinite(torch.tensor([float(one.figure), float(one.control)])).all()
            assert one.prompts or one.seeds
    hold = [one.name for one in found if one.verdict == HOLDS]
    assert str(len(hold)) in summary(found)


def test_a_decoder_of_words_is_asked_most_claims_and_an_encoder_those_about_what_it_reads() -> None:
    asked = {
        name: {one.name for one in of_kind(name)[1] if one.verdict != NOT_ASKED}
        for name in ("stories", "encoder")
    }
    assert len(asked["stories"]) >= 16
    assert {"first-token", "shuffled-weights", "value-norms", "rollout"} <= asked["encoder"]
    assert asked["encoder"].isdisjoint({"induction", "logit-lens", "other-name", "erasure"})


def test_the_same_model_gives_the_same_answers() -> None:
    names = ("induction", "shuffled-weights", "copying", "rollout")
    assert results(loaded("induction"), names) == results(loaded("induction"), names)


def test_induction_is_true_of_a_model_that_is_wired_for_it() -> None:
    names = ("induction", "second-half", "previous-token")
    found = {one.name: one for one in results(wired(), names)}
    assert {one.verdict for one in found.values()} == {HOLDS}
    induction = found["induction"]
    assert induction.figure is not None
    # All but one word in ten: the first one stands at the place that holds it too, and halves its row.
    assert float(induction.figure) == pytest.approx(0.95, abs=0.01)
    assert "L1H0" in induction.reason
    assert "L0H0" in found["previous-token"].reason


def test_induction_is_not_true_where_the_first_head_looks_nowhere() -> None:
    names = ("induction", "second-half", "previous-token")
    found = {one.name: one for one in results(wired(looks_back=False), names)}
    assert found["induction"].verdict == found["second-half"].verdict == HOLDS_NOT
    assert (
        found["previous-token"].verdict == NOT_ASKED
    )  # there is no induction head that it could feed


@cases("rests, verdict", [(True, HOLDS), (False, HOLDS_NOT)])
def test_heads_that_rest_on_the_first_token_are_sinks(rests, verdict) -> None:
    torch.manual_seed(0)
    (found,) = results(wired(rests=rests), ("first-token",))
    assert found.verdict == verdict


@cases("value, verdict", [(5e4, HOLDS), (0.0, HOLDS_NOT)])
def test_a_number_of_the_first_position_is_massive(value, verdict) -> None:
    model = build("attention-only", positions="learned")
    table = model.module.embedding.positions
    table.weight.data[0, 5] += value
    (found,) = results(model, ("massive",))
    assert found.verdict == verdict
    if value:
        assert "token 0, dimension 5" in found.reason


class StoppedError(Exception):
    """What a turn raises to stop the work."""


def test_progress_comes_claim_by_claim_and_a_turn_that_raises_stops_the_work() -> None:
    turns: list[int] = []

    @contextmanager
    def turn() -> Iterator[None]:
        if len(turns) == 3:
            raise StoppedError
        turns.append(len(turns))
        yield

    names = ("induction", "second-half", "rollout")
    answers = running(loaded("induction"), names, turn)
    first, second = next(answers), next(answers)
    assert [(one.done, one.total, len(one.results)) for one in (first, second)] == [
        (0, 3, 0),
        (1, 3, 1),
    ]
    with pytest.raises(StoppedError):  # the second claim takes a third and a fourth turn
        next(answers)


def test_an_unknown_claim_is_refused() -> None:
    with pytest.raises(ValueError, match="claim of a paper"):
        results(loaded("induction"), ("no-such-claim",))


def test_the_report_has_a_row_for_each_claim_and_a_column_for_each_model() -> None:
    names = ("induction", "logit-lens")
    answers = {name: results(loaded(name), names) for name in ("induction", "translate-en-fr")}
    lines = report(answers).splitlines()
    (head,) = [line for line in lines if line.startswith("| claim | induction | translate-en-fr |")]
    rows = lines[lines.index(head) + 2 :][: len(names)]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["Induction heads", "Logit lens"]
    assert rows[0].split(" | ")[1:] == ["✓ holds", "– |"]
    assert sum(line.startswith("## ") for line in lines) == 3


def test_the_command_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.md"
    main(["induction", "--claims", "induction", "copying", "-o", str(file)])
    written = file.read_text(encoding="utf-8")
    assert "| Induction heads | ✓ holds |" in written
    assert "Heads that copy" in written
    assert "2 of 2" in capsys.readouterr().err


def test_a_report_is_utf8_whatever_the_consoles_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="cp1252"))
    command.main(["papers", "induction", "--claims", "induction", "-o", "-"])
    assert "| Induction heads | ✓ holds |" in printed.getvalue().decode("utf-8")


def test_the_command_refuses_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["no such model"])
    assert "no such model" in capsys.readouterr().err


def test_the_report_of_the_docs_has_every_claim() -> None:
    written = (Path(__file__).parents[3] / "docs" / "papers.md").read_text(encoding="utf-8")
    for claim in claims().values():
        assert f"| {claim.title} |" in written
        assert claim.measured in written
