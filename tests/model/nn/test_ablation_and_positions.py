"""Heads switched off, and positions left out."""

import numpy as np
import pytest

from model import Intervention, Model
from tests.model.tiny import TINY, build, loaded, of_shape, run, sentence, target

NO_POSITIONS = Intervention(positions=False)
POSITIONED = [name for name in TINY if name != "attention-only"]
LION, TIGER = "lion kills tiger", "tiger kills lion"


def test_an_ablated_head_is_recorded_as_it_was_and_writes_nothing(model: Model) -> None:
    before = run(model)
    for name in model.attention_names:
        head = before.find(name).heads - 1
        after = run(model, Intervention(ablated=frozenset({(name, head)})))
        attention, original = after.find(name), before.find(name)
        np.testing.assert_array_equal(attention.output, original.output)
        assert attention.ablated == (head,)
        assert np.abs(attention.output[head]).max() > 0
        assert (model.head_output(attention, head) == 0).all()
        assert np.abs(model.head_output(original, head)).max() > 0
        for other in range(head):
            kept = model.head_output(original, other)
            np.testing.assert_array_equal(model.head_output(attention, other), kept)
        assert after.check() < 2e-5


@pytest.mark.models([name for name in TINY if name != "bert"])
def test_the_stream_loses_exactly_what_the_ablated_heads_wrote(model: Model) -> None:
    before = run(model)
    for stack in model.stacks():
        name = f"{stack}.0.self"
        after = run(model, Intervention(ablated=frozenset({(name, 0), (name, 2)})))
        lost = sum(model.head_output(before.find(name), head) for head in (0, 2))
        if model.config.norm_place == "pre":
            ours, theirs = before.residual[stack][1], after.residual[stack][1]
        else:
            norms = [
                next(n for n in trace.norms if n.name == f"{name}.norm")
                for trace in (before, after)
            ]
            ours, theirs = (norm.input for norm in norms)
        np.testing.assert_allclose(ours - lost, theirs, atol=1e-4, rtol=1e-4)


def test_ablation_holds_beside_an_intervention_of_another_sublayer() -> None:
    model = loaded("gpt")
    intervention = Intervention(
        scale=1.0, only=frozenset({"decoder.1.self"}), ablated=frozenset({("decoder.0.self", 1)})
    )
    trace = run(model, intervention)
    assert trace.find("decoder.0.self").ablated == (1,)
    assert trace.find("decoder.0.self").scale != 1.0
    assert trace.find("decoder.1.self").scale == 1.0
    assert not np.array_equal(trace.residual["decoder"][1], run(model).residual["decoder"][1])


@pytest.mark.models(POSITIONED)
def test_without_positions_nothing_is_added_and_nothing_is_turned(model: Model) -> None:
    before, after = run(model), run(model, NO_POSITIONS)
    assert after.positions is not None
    assert np.abs(before.positions).max() > 0
    assert (after.positions == 0).all()
    name = model.attention_names[0]
    ours, theirs = before.find(name), after.find(name)
    assert not np.allclose(ours.weights(0), theirs.weights(0), atol=1e-3)
    for stack in model.stacks():
        np.testing.assert_array_equal(
            before.summands[stack]["tokens"], after.summands[stack]["tokens"]
        )
        if model.config.positions != "rotary":
            assert (after.summands[stack]["positions"] == 0).all()
    if model.config.positions == "rotary":
        np.testing.assert_array_equal(
            before.residual[before.source][0], after.residual[after.source][0]
        )
        lengths = (np.linalg.norm(vectors.query, axis=-1) for vectors in (ours, theirs))
        np.testing.assert_allclose(*lengths, rtol=1e-5)
        np.testing.assert_array_equal(ours.query[:, 0], theirs.query[:, 0])


def test_positions_off_changes_nothing_where_there_are_none() -> None:
    model = loaded("attention-only")
    before, after = run(model), run(model, NO_POSITIONS)
    np.testing.assert_array_equal(before.logits, after.logits)


def by_word(model: Model, text: str, intervention: Intervention) -> dict[str, np.ndarray]:
    """Each word's vector after the encoder."""
    trace = model.trace(text, target(model), intervention)
    return {
        token.text: row
        for token, row in zip(trace.tokens, trace.residual["encoder"][-1], strict=True)
    }


@pytest.mark.models(of_shape("encoder", "encoder-decoder"))
def test_without_positions_an_encoder_cannot_tell_who_kills_whom(model: Model) -> None:
    if model.tokenizer.new_words(LION):
        words = list(dict.fromkeys(sentence(model).split()))[:3]
        texts = " ".join(words), " ".join(reversed(words))
    else:
        texts = LION, TIGER
    one, other = (by_word(model, text, NO_POSITIONS) for text in texts)
    assert set(one) == set(other)
    for word, vector in one.items():
        np.testing.assert_allclose(vector, other[word], atol=1e-4)
    one, other = (by_word(model, text, Intervention()) for text in texts)
    assert max(np.abs(one[word] - other[word]).max() for word in one) > 1e-2


def test_without_positions_equal_words_have_equal_vectors_in_an_encoder() -> None:
    model = build("bert")
    trace = model.trace("the cat saw the cat", intervention=NO_POSITIONS)
    last = trace.residual["encoder"][-1]
    np.testing.assert_allclose(last[0], last[3], atol=1e-5)
    np.testing.assert_allclose(last[1], last[4], atol=1e-5)
    with_positions = model.trace("the cat saw the cat").residual["encoder"][-1]
    assert np.abs(with_positions[0] - with_positions[3]).max() > 1e-2
