"""What the browser draws from after a pass of its own is what Python would send: the same fields, the same
words, the same numbers up to rounding."""

from typing import Any

import numpy as np
import pytest

from model.analysis.run_comparison import rounding
from model.analysis.stream.around_heads import AroundHeads
from model.code.origin import origin
from tests.hostile.attacks import SHORT
from tests.viz.site_model.in_node import CHANGES, Job, in_node, loaded
from viz.explorer.message import payload
from viz.site.model.parts import MODELS, parts, script, vocabulary_script

TEXTS = {
    "induction": ("a", "a b", "a b c", "a b c d a b c"),
    "": ("the", "the cat", "the cat saw", f" 猫 it's {SHORT[0]}\n{SHORT[3]} e\u0301"),
}
_OWN = {"digest", "part"}  # names by which a browser knows arrays again


def expected(name: str, text: str, change: str, layer: int) -> tuple[dict[str, Any], float]:
    """The message that Python sends, and how far rounding may move a number of 1 in it."""
    model, intervention = loaded(name), CHANGES[change][1]
    place = model.attention_names[layer]
    traces = [model.trace(text, intervention=intervention)]
    traces += [model.trace(text)] if intervention.changes else []
    attention, *before = [trace.find(place) for trace in traces]
    tokens = [token.text for token in traces[0].tokens]
    message = payload(
        attention,
        queries=tokens,
        keys=tokens,
        head=0,
        check=traces[0].check(),
        baseline=before[0] if before else None,
        stage="output",
        layers=model.attention_names,
        origin=origin(model, traces[0], attention),
        around=[AroundHeads(model, trace, trace.find(place)) for trace in traces],
    )
    return message, max(rounding(trace, np.ones(1)) for trace in traces)


def hold(got: Any, right: Any, share: float, path: str) -> None:
    """Holds a message, or a part of one, against another: words and counts are equal, numbers near."""
    match right:
        case np.ndarray():
            largest = max(1.0, float(np.abs(right).max()))
            np.testing.assert_allclose(
                got["array"], right.ravel(), rtol=0, atol=share * largest, err_msg=path
            )
        case dict():
            assert sorted(got) == sorted(right), path
            for key in right.keys() - _OWN:
                hold(got[key], right[key], share, f"{path}/{key}")
        case list() | tuple():
            assert len(got) == len(right), path
            for n, (one, other) in enumerate(zip(got, right, strict=True)):
                hold(one, other, share, f"{path}/{n}")
        case float() if path.startswith(("/layer/range", "/baseline/range", "/check")):
            assert got == pytest.approx(right, rel=share, abs=share * 10), path
        case _:
            assert got == right, path


@pytest.mark.parametrize("name", MODELS)
def test_a_message_of_the_browsers_is_one_of_pythons(name: str) -> None:
    asked = [
        (text, change, layer)
        for text in TEXTS.get(name, TEXTS[""])
        for change in CHANGES
        for layer in (0, 1)
    ]
    for case, got in zip(asked, in_node(name, Job(messages=asked))["messages"], strict=True):
        hold(got, *expected(name, *case), "")


def test_each_run_has_arrays_of_its_own_name() -> None:
    """A browser that knows a digest takes the arrays that it has."""
    text = TEXTS[""][2]
    asked = [
        (text, "nothing", 0),
        (text, "nothing", 1),
        (text, "heads", 0),
        (TEXTS[""][1], "nothing", 0),
    ]
    messages = in_node("stories", Job(messages=asked))["messages"]
    assert len({message["layer"]["digest"] for message in messages}) == len(asked)
    again = in_node("stories", Job(messages=[asked[0], asked[2]]))["messages"]
    assert again[1]["baseline"]["digest"] == again[0]["layer"]["digest"]


def test_only_what_the_browser_computes_is_offered() -> None:
    with pytest.raises(ValueError, match="does not run in a browser"):
        parts(loaded("translate-en-fr"))


def test_a_script_may_stand_in_a_page() -> None:
    text = script(loaded("stories"))
    assert "\\u003c" in text, "one of its tokens is a <"
    assert "<" not in text + vocabulary_script()
