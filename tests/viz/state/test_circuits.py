"""What the circuits among the examples say holds on the model: leaving their heads out does what they say."""

from collections.abc import Iterable

import numpy as np
import pytest

from model import Intervention, Trace
from model.arithmetic.attention import softmax
from model.nn.places import Head
from model.trace.arrays import Array
from tests.cases import cases
from tests.viz.state.test_examples import CIRCUITS, loaded, traced
from viz.notation.numbers import moves
from viz.state.presets import SentenceExample

named = pytest.mark.parametrize("title", CIRCUITS)


def without(example: SentenceExample, heads: Iterable[Head]) -> Trace:
    intervention = Intervention(ablated=frozenset(heads))
    return loaded(example.view.model).trace(example.view.text, intervention=intervention)


def probabilities(example: SentenceExample, trace: Trace) -> Array:
    """(vocabulary,): of the token after the chosen query."""
    return softmax(trace.logits[example.view.query].astype(np.float64))


def word(example: SentenceExample, shares: Array) -> str:
    """The most likely token, without its space."""
    return loaded(example.view.model).target_tokenizer.decode([int(shares.argmax())]).strip()


def left_with(example: SentenceExample, heads: Iterable[Head]) -> float:
    """What remains of the probability of the token that the unchanged model predicts."""
    before = probabilities(example, traced(example))
    return float(probabilities(example, without(example, heads))[before.argmax()])


def test_there_are_eight_circuits_on_models_that_ship() -> None:
    assert len(CIRCUITS) >= 8
    names = {example.view.model for example in CIRCUITS.values()}
    assert names == {"house-gpt", "stories", "induction", "translate-en-fr"}


@named
def test_leaving_its_heads_out_does_to_the_prediction_what_a_circuit_says(title: str) -> None:
    example = CIRCUITS[title]
    before = probabilities(example, traced(example))
    after = left_with(example, example.without)
    said = f"“{word(example, before)}” "
    assert said in example.look_for
    assert moves(float(before.max()), after, 2) in example.look_for
    assert after < 0.1


@cases(
    "title",
    [title for title, example in CIRCUITS.items() if example.view.place == "decoder.0.self"],
)
def test_the_heads_of_the_next_layer_lean_on_those_of_layer_0(title) -> None:
    """Each that had most of its weight on the word that is predicted loses a fifth of all weight there."""
    example = CIRCUITS[title]
    answer = word(example, probabilities(example, traced(example)))
    keys = [at for at, token in enumerate(traced(example).tokens) if token.text.strip() == answer]
    found, left = (
        np.array([next_layer.weights(head)[-1][keys].sum() for head in range(next_layer.heads)])
        for run in (traced(example), without(example, example.without))
        for next_layer in [run.find("decoder.1.self")]
    )
    counted = found > 0.5
    assert counted.sum() >= len(found) / 2
    assert counted.all() or "All four heads" not in example.look_for
    assert (left[counted] < found[counted] - 0.2).all()


@cases("title, also", [
    ("Circuit: a name copied in layer 1", [0, 1, 2, 3, 4, 5, 6, 7]),
    ("Circuit: three heads copy a family name", [1, 2, 3]),
    ("Circuit: a thing by its colour", [1, 2, 3]),
    ("Circuit: four heads for one job", [0, 1, 2, 3]),
    ("Circuit: the noun before its adjective", [0, 1, 2, 3]),
    ("Circuit: two heads that see the word before", [2, 5]),
])  # fmt: skip
def test_the_other_heads_attend_to_the_same_key(title, also) -> None:
    view, run = CIRCUITS[title].view, traced(CIRCUITS[title])
    for head in also:
        row = run.find(view.place).weights(head)[view.query]
        assert (head, row.argmax()) == (head, view.key)


def test_one_head_alone_is_missed_less() -> None:
    example = CIRCUITS["Circuit: three heads copy a family name"]
    assert left_with(example, [(example.view.place, example.view.head)]) > 0.7
    example = CIRCUITS["Circuit: four heads for one job"]
    for head in range(4):
        assert left_with(example, [(example.view.place, head)]) > 0.85


def test_the_last_layers_are_not_part_of_copying_a_name() -> None:
    example = CIRCUITS["Circuit: a name copied in layer 1"]
    for layer in (2, 3):
        left = left_with(example, [(f"decoder.{layer}.self", head) for head in range(8)])
        assert f"{left:.2f}" == "1.00"


@cases(
    "title, now",
    [
        ("Circuit: the noun before its adjective", "joli"),
        ("Circuit: an adjective still to come", "mange"),
    ],
)
def test_without_its_cross_attention_the_translator_writes_another_word(title, now) -> None:
    example = CIRCUITS[title]
    assert word(example, probabilities(example, without(example, example.without))) == now
    assert f"most likely word: “{now}”" in example.look_for


def test_the_crossing_of_noun_and_adjective_is_there() -> None:
    example = CIRCUITS["Circuit: the noun before its adjective"]
    rows = traced(example).find(example.view.place).weights(example.view.head)
    assert (rows[1].argmax(), rows[2].argmax()) == (2, 1)
