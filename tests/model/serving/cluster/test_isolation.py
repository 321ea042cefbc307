"""What one replica of the app, or one of its visitors, may read of what others have asked."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from model import load_model
from model.serving.cluster.asking import reference
from model.serving.cluster.host import ModelHost
from model.serving.cluster.messages import READ, TRACE, Caller
from model.serving.cluster.travelling import written
from model.serving.engine import Request
from tests.model.serving.cluster.in_process import LARGE, Here, engine_beside

NAME, SECRET = "house-gpt", "Anna saw a dog"
PREDICTED = "model.analysis.run_comparison:predicted"


class Reference:
    """Something that travels as this reference."""

    def __init__(self, to: Any) -> None:
        self.to = to


def ask(host: ModelHost, function: str, **given: Any) -> Any:
    """The kind of the answer to somebody else's question."""

    def refer(value: Any) -> Any:
        return value.to if isinstance(value, Reference) else reference(value)

    return host.answer(Caller("other", "another visitor"), written((function, given), refer))


@pytest.fixture(scope="module")
def host() -> ModelHost:
    """One that keeps somebody's run."""
    made = ModelHost(NAME, LARGE)
    answer = ask(made, TRACE, request=Request(NAME, SECRET))
    assert answer.kind == "value"
    assert [one.traces for one in [made.load()]] == [1]
    return made


@pytest.mark.parametrize("guess", [0, 1, "", "trace", (NAME,), SECRET, Request])
def test_a_run_is_read_by_its_whole_request_only(host: ModelHost, guess: Any) -> None:
    for to in (("trace", guess), ("record", guess, ("attention", 0)), ("rows", guess), guess):
        answer = ask(host, PREDICTED, trace=Reference(to))
        assert answer.kind == "refusal"
        assert b"refers to nothing here" in answer.sent


def test_a_part_is_read_by_its_whole_request_only(host: ModelHost) -> None:
    for given in ({"path": ("check",)}, {"request": SECRET, "path": ("check",)}, {"number": 0}):
        with pytest.raises(LookupError, match="may not be asked"):
            ask(host, READ, **given)


def test_another_text_is_another_run(host: ModelHost) -> None:
    before = host.load().passes
    answer = ask(host, READ, request=Request(NAME, SECRET[:-1]), path=("check",))
    assert answer.kind == "value"
    assert host.load().passes == before + 1


def test_an_actor_runs_no_other_model(host: ModelHost) -> None:
    answer = ask(host, TRACE, request=Request("stories", "Once upon a time"))
    assert answer.kind == "refusal"
    assert b"another model" in answer.sent


@pytest.mark.parametrize("ticket", ["", "other", "0" * 24])
def test_a_ticket_that_is_not_held_says_nothing(host: ModelHost, ticket: str) -> None:
    assert host.place(ticket) == (0, ("", None))
    assert host.step(ticket).kind == "left"
    assert host.rows(ticket, "decoder.0.self", 0) is None
    host.leave(ticket)


@pytest.fixture
def hosts() -> Here:
    return Here()


def test_a_trace_file_that_is_dropped_stays_with_the_app(
    hosts: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_model(NAME).trace(SECRET).save(tmp_path / "run.trace")
    content = (tmp_path / "run.trace").read_bytes()
    one, other = (engine_beside(hosts, monkeypatch) for _ in range(2))
    name = one.keep_file(BytesIO(content), len(content))
    trace = one.trace(Request(name, SECRET), lambda place: None)
    assert trace.attention[0].weights(0).shape == (len(trace.tokens),) * 2
    assert hosts.hosts == {}
    assert not other.has(name)


def test_one_visitor_s_reading_is_not_kept_for_another_request(
    hosts: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_beside(hosts, monkeypatch)
    both = [engine.trace(Request(NAME, text), lambda place: None) for text in (SECRET, "Anna saw")]
    assert both[0].text == SECRET
    assert both[1].text == "Anna saw"
    assert both[0].attention[0].weights(0).shape != both[1].attention[0].weights(0).shape
