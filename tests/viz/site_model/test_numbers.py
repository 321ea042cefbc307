"""What a model computes in the browser is what PyTorch computes, up to the rounding of float32."""

import random

import numpy as np

from model.analysis.run_comparison import rounding
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.training.grammar import sentence
from tests.hostile.attacks import SHORT
from tests.hostile.words import ORDINARY
from tests.viz.site_model.in_node import Job, changes_of, each_model, in_node, traced
from viz.site.model.parts import probe_of

_GIVEN = ("Tom Hill saw a red ball. Anna gave the ball to Tom", "a", *SHORT[:4])


def sentences(name: str) -> list[str]:
    """Twenty of them: what the model reads, of one token and more."""
    dice = random.Random(name)
    if name == "induction":
        letters = [" ".join(dice.choices("abcdefgh1234", k=n)) for n in range(2, 40, 2)]
        return ["x", *letters]
    if name == "translate-en-fr":
        drawn = np.random.default_rng(4)
        return [" ".join(sentence(drawn).english) for _ in range(20)]
    written = [" ".join(dice.choices(ORDINARY, k=dice.randint(2, 24))) for _ in _GIVEN * 4]
    return [*_GIVEN, *written][:20]


def expected(trace: Trace) -> dict[str, tuple[Array, Array]]:
    """The arrays of a run by their paths in js/pass.js, each with those it is computed from: their largest
    number says how far rounding may move it."""
    found = {"logits": trace.logits}
    for stack, parts in trace.summands.items():
        found |= {f"summands/{stack}/{name}": part for name, part in parts.items()}
    for stack, states in trace.residual.items():
        found |= {f"streams/{stack}/{n}": state for n, state in enumerate(states)}
    for n, attention in enumerate(trace.attention):
        for part in ("query", "key", "value", "output"):
            found[f"layers/{n}/{part}"] = getattr(attention, part)
    alone = {path: (array, array) for path, array in found.items() if array is not None}
    for n, norm in enumerate(trace.norms):
        alone[f"norms/{n}/mean"] = norm.mean, norm.input
        alone[f"norms/{n}/inverse"] = norm.inverse_deviation, norm.inverse_deviation
        alone[f"norms/{n}/output"] = norm.output, norm.output
    return alone


@each_model
def test_every_recorded_array_is_pytorchs_with_and_without_each_switch(name: str) -> None:
    asked = [(text, change) for text in sentences(name) for change in changes_of(name)]
    assert len(asked) == 20 * 6
    largest: dict[str, float] = {}  # difference, of logits by change
    last: set[bytes] = set()  # logits of the last sentence
    for (text, change), got in zip(asked, in_node(name, Job(runs=asked))["runs"], strict=True):
        trace = traced(name, text, change)
        for path, (array, source) in expected(trace).items():
            gap, allowed = float(np.abs(got[path] - array.ravel()).max()), rounding(trace, source)
            assert gap <= allowed, f"{path} of {text!r}, {change}: {gap:.2g}, not {allowed:.2g}"
            if path == "logits":
                largest[change] = max(largest.get(change, 0.0), gap)
        if text == asked[-1][0]:
            last.add(got["logits"].tobytes())
    print(name, {change: f"{gap:.1e}" for change, gap in largest.items()})
    assert min(largest.values()) > 0, "not one logit differs: is this PyTorch's own?"
    assert len(last) == 6, "a switch changes nothing"


@each_model
def test_a_browser_says_how_far_it_is_from_pytorch(name: str) -> None:
    probe = traced(name, probe_of(name))
    assert 0 < in_node(name, Job())["probe"] <= rounding(probe)
