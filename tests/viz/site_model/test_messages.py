"""What the browser draws from after a pass of its own is what Python would send: the same fields, the same
words, the same numbers up to rounding."""

import re
from typing import Any

import numpy as np
import pytest

from model.analysis.run_comparison import rounding
from model.analysis.stream.around_heads import AroundHeads
from model.code.origin import origin
from model.trace.trace import Trace
from tests.hostile.attacks import SHORT
from tests.viz.site_model.in_node import Job, changes_of, each_model, in_node, loaded, traced
from viz.explorer.message import payload
from viz.notebook.run import Run
from viz.site.model.parts import parts
from viz.site.recording import recorded_run
from viz.state.intervention_words import change_in_words
from viz.state.link import View

TEXTS = {
    "induction": ("a", "a b", "a b c", "a b c d a b c", " ".join("abcd" * 8)),
    "house-gpt": ("the cat saw", "the cat saw a dog and the dog saw Tom . " * 3),
    "stories": (
        *("the", "the cat", "the cat saw"),
        f" 猫 it's {SHORT[0]}\n{SHORT[3]} e\u0301",
        "the cat saw a dog and the dog saw Tom . " * 3,  # whose map has blocks of several cells
    ),
    "translate-en-fr": (
        *("a", "the cat", "the cat sleeps", "My sisters do not see the old white horse."),
        "the cat sees a dog and the dog sees the small mouse " * 2 + "and a cat and two dogs",
        " ".join("a" * 32),  # the decoder writes as much as it can
    ),
}
PRINTED = re.compile(r"<?\d+\.\d+")
LAYERS = {"translate-en-fr": range(6)}  # of which messages are compared
_FIRST = 0, 1  # of the others
_OWN = {"digest", "part"}  # names by which a browser knows arrays again
_BESIDE = {"heroes", "claims", "device"}  # what a site adds to a message


def expected(traces: list[Trace], place: str) -> dict[str, Any]:
    """The message that Python sends. traces: the run, and the unchanged one where something is changed."""
    model = loaded(traces[0].model)
    attention, *before = [trace.find(place) for trace in traces]
    message: Any = payload(
        attention,
        queries=[token.text for token in traces[0].queries_of(attention)],
        keys=[token.text for token in traces[0].keys_of(attention)],
        head=0,
        check=traces[0].check(),
        baseline=before[0] if before else None,
        stage="output",
        layers=model.attention_names,
        origin=origin(model, traces[0], attention),
        around=[AroundHeads(model, trace, trace.find(place)) for trace in traces],
    )
    message["stages"][0] |= {"step": ""}  # nothing stands before it
    return message


def hold(got: Any, right: Any, share: float, path: str) -> None:
    """Holds a message, or a part of one, against another: words and counts are equal, numbers near."""
    match right:
        case np.ndarray() if right.dtype == np.uint8:
            assert np.abs(np.subtract(got, right.ravel(), dtype=int)).max() <= 1, path
        case np.ndarray():
            largest = max(1.0, float(np.abs(right).max()))
            np.testing.assert_allclose(
                got, right.ravel(), rtol=0, atol=share * largest, err_msg=path
            )
        case dict():
            assert sorted(got) == sorted(right), path
            for key in right.keys() - _OWN:
                hold(got[key], right[key], share, f"{path}/{key}")
        case list() | tuple():
            assert len(got) == len(right), path
            for n, (one, other) in enumerate(zip(got, right, strict=True)):
                hold(one, other, share, f"{path}/{n}")
        case str() if PRINTED.fullmatch(right):
            unit = 10.0 ** -len(right.partition(".")[2])
            numbers = [float(text.removeprefix("<")) for text in (got, right)]
            assert len(got) == len(right), path
            assert abs(numbers[0] - numbers[1]) < 1.5 * unit, path  # the last digit is certain to 1
        case float():
            assert got == pytest.approx(right, rel=share, abs=share * 10), path
        case _:
            assert got == right, path


@each_model
def test_a_run_of_the_browsers_is_as_python_records_it(name: str) -> None:
    """The messages of its layers as the app sends them; beside them the next token, the loss and all heads,
    with the numbers as they are printed."""
    changes = changes_of(name)
    asked = [(text, change) for text in TEXTS[name] for change in changes]
    for case, got in zip(asked, in_node(name, Job(recordings=asked))["recordings"], strict=True):
        text, change = case
        traces = [traced(name, *case), *([traced(name, text)] if changes[change].changes else [])]
        share = max(rounding(trace, np.ones(1)) for trace in traces)
        for layer in LAYERS.get(name, _FIRST):
            message = {key: x for key, x in got["layers"][layer].items() if key not in _BESIDE}
            hold(message, expected(traces, traces[0].attention[layer].name), share, f"{case} ")
        view = View(text, name, traces[0].attention[0].name)
        changed = change_in_words(traces[0])
        run = Run(traces[0], next(iter(traces[1:]), None), loaded(name), changed)
        right: Any = recorded_run(run, got["run"], view, ())
        for part in ("tokens", "targets", "outcome", "heads"):
            hold(got[part], right[part], share, f"{case} {part}")
        for one, other in zip(got["layers"], right["layers"], strict=True):
            hold(one["heroes"], other["heroes"], share, f"{case} heroes")
        assert "within" in got["where"]


def test_each_run_has_arrays_of_its_own_name() -> None:
    """A browser that knows a digest takes the arrays that it has."""
    text, other = TEXTS["stories"][2], TEXTS["stories"][1]
    asked = [(text, "nothing"), (text, "heads"), (other, "nothing")]
    runs = in_node("stories", Job(recordings=asked))["recordings"]
    digests = [message["layer"]["digest"] for run in runs for message in run["layers"]]
    assert len({*digests}) == len(asked) * 2
    changed = [message["baseline"]["digest"] for message in runs[1]["layers"]]
    assert changed == digests[:2]


def test_only_what_the_browser_computes_is_offered() -> None:
    with pytest.raises(ValueError, match="does not run in a browser"):
        parts(loaded("paper-base"))
