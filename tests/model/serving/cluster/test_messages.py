"""What travels between the app and the cluster comes back as it was, and nothing but a question is asked."""

import gc
import weakref
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

from model.serving.cluster import far_trace
from model.serving.cluster.host import ModelHost
from model.serving.cluster.messages import READ, TRACE, Caller, read, written
from model.serving.engine import Request
from model.system.remote import asked_function
from tests.cases import cases
from tests.model.serving.cluster.in_process import LARGE
from tests.model.tiny import loaded

NAME, SECRET = "house-gpt", "Anna saw a dog"
PREDICTED = "model.analysis.run_comparison:predicted"


def there_and_back(value: Any) -> Any:
    return read(written(value, lambda part: None), lambda reference: reference)


def test_data_comes_back_as_it_was_and_arrays_are_read_only() -> None:
    for value in (
        Request("house-gpt", "The cat"),
        Counter("abca"),
        (1, 2.5, "x", b"y", None, True, slice(1, 3)),
        {"a": frozenset({1}), "b": {2}, "c": range(3)},
    ):
        assert there_and_back(value) == value
    table = np.arange(24.0).reshape(2, 3, 4)
    for array in (table, np.zeros(0, np.float32), np.array([True, False]), table[:, ::2].T):
        other = there_and_back(array)
        assert (other.dtype, other.shape) == (array.dtype, array.shape)
        assert other.tobytes() == array.tobytes()
        assert not other.flags.writeable


def test_an_array_is_sent_once_and_beside_the_message() -> None:
    array = np.zeros(100_000)
    sent = written((array, array), lambda part: None)
    assert array.nbytes <= sent.nbytes < array.nbytes + 1000
    assert len(sent.value) < 1000


def refusals(kind: type[ValueError] = ValueError) -> set[type[ValueError]]:
    """All classes of refusals that the model has, as far as they are loaded."""
    return {one for each in kind.__subclasses__() for one in (each, *refusals(each))}


def test_every_kind_of_refusal_comes_back_with_its_sentence_and_what_it_says_beside() -> None:
    ours = [one for one in refusals() if one.__module__.startswith("model.")]
    assert len(ours) > 5
    for kind in ours:
        refusal = kind.__new__(kind, "A sentence.")
        vars(refusal).update(part="logits")
        other = there_and_back(refusal)
        assert (type(other), str(other), vars(other)) == (kind, "A sentence.", {"part": "logits"})


@cases("name", [
    "os:system", "builtins:eval", "model.loading.registry:load_model", "model.system.remote:asked",
    "model.serving.cluster.host:os.system", "model.nowhere:nothing", "model.run.model:Model.trace",
    "",
])  # fmt: skip
def test_only_functions_that_are_marked_may_be_asked(name) -> None:
    with pytest.raises(LookupError, match="may not be asked"):
        asked_function(name)


class Pointer(NamedTuple):
    """Something that travels as a reference."""

    to: Any


@pytest.fixture(scope="module")
def host() -> ModelHost:
    """One that keeps somebody's run."""
    made = ModelHost(NAME, LARGE, 0)
    assert ask(made, TRACE, request=Request(NAME, SECRET)).kind == "value"
    assert made.load().traces == 1
    return made


def ask(host: ModelHost, function: str, **given: Any) -> Any:
    """The answer to somebody else's question."""
    sent = written((function, given), lambda value: getattr(value, "to", None))
    return host.answer(Caller("other", "another visitor"), sent)


@pytest.mark.parametrize("guess", [0, 1, "", "trace", (NAME,), SECRET, Request])
def test_a_run_is_read_by_its_whole_request_only(host: ModelHost, guess: Any) -> None:
    for to in (("trace", guess), ("record", guess, ("attention", 0)), guess):
        answer = ask(host, PREDICTED, trace=Pointer(to))
        assert answer.kind == "refusal"
        assert b"refers to nothing here" in answer.sent.value


def test_another_text_is_another_run_and_another_model_none(host: ModelHost) -> None:
    before = host.load().passes
    answer = ask(host, READ, request=Request(NAME, SECRET[:-1]), path=("check",))
    assert answer.kind == "value"
    assert host.load().passes == before + 1
    answer = ask(host, TRACE, request=Request("stories", "Once upon a time"))
    assert answer.kind == "refusal"


@pytest.mark.parametrize("path", [(), ("model",), ("attention", 0, "__class__"), ("logits",)])
def test_only_parts_of_a_trace_are_read(host: ModelHost, path: tuple[Any, ...]) -> None:
    with pytest.raises(LookupError, match="No trace has"):
        ask(host, READ, request=Request(NAME, SECRET), path=path)


@pytest.mark.parametrize("ticket", ["", "other", "0" * 24])
def test_a_ticket_of_nobody_says_nothing(host: ModelHost, ticket: str) -> None:
    assert host.place(ticket) == (0, ("", None))
    assert host.step(ticket).kind == "left"
    host.leave(ticket)


def test_a_host_that_nobody_has_any_more_is_gone_with_all_that_it_held() -> None:
    host = ModelHost("induction", LARGE, 0)
    assert host._engine.model("induction", lambda sentence, share: None).name == "induction"
    left = weakref.ref(host)
    del host
    gc.collect()
    assert left() is None


def test_rows_of_logits_that_travel_a_few_at_a_time_are_the_runs_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Here:
        def part(self, request: Request, path: tuple[Any, ...]) -> Any:
            return far_trace.at(trace, path, request)

        def question(self, *asked: Any) -> Any: ...

    monkeypatch.setattr(far_trace, "TOGETHER", 3)
    trace = loaded(NAME).trace(f"{SECRET}. Tom saw Anna")
    source, tokens = far_trace.TraceSource(Request(NAME, trace.text), Here()), len(trace.tokens)
    assert tokens > 7
    assert trace.logits is not None
    for rows in (slice(None), slice(2, 7), slice(4, 5), slice(-2, None)):
        assert np.array_equal(source.rows(tokens, rows), trace.logits[rows])
