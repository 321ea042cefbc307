"""What edges carry adds up to what their head writes, and with the other parts to the logit."""

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis import edge_values
from model.analysis.heads.contributions import parts_of_logit
from model.analysis.heads.sinks import token_as_key
from model.analysis.heads.statistics import families
from model.trace.unproven import UnprovenError
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, of_shape, run

PREDICTING = of_shape("decoder", "encoder-decoder")


def sum_to_logits(model: Model, trace: Trace) -> None:
    last = trace.logits[-1].astype(float)
    token, other = int(last.argmax()), int(last.argmin())
    edges = [
        edge_values(model, trace, one.name, head)
        for one in trace.attention
        if one.stack == "decoder"
        for head in range(one.heads)
    ]
    position = len(trace.logits) - 1
    rest = [part for part in parts_of_logit(model, trace, position, token) if part.kind != "head"]
    total = sum(part.effect for part in rest) + sum(edge.logit(token).sum() for edge in edges)
    assert total == pytest.approx(last[token], abs=1e-4 * max(1, abs(last[token])))
    for edge in edges[:4]:
        apart = edge.logit(token) - edge.logit(other)
        np.testing.assert_allclose(edge.logit(token, against=other), apart, atol=1e-6)
        assert not edge.logit(token)[:-1].any()


@cases("name", ["gpt", "llama", "gpt-post", "translator"])
def test_edges_of_any_row_are_their_heads_part_of_the_logit_after_it(name) -> None:
    model = loaded(name)
    trace = run(model)
    for part in parts_of_logit(model, trace, 2, 5):
        if part.kind == "head":
            edges = edge_values(model, trace, part.name, part.head or 0).logit(5, position=2)
            assert edges[2].sum() == pytest.approx(part.effect, abs=1e-5)
            assert not np.delete(edges, 2, axis=0).any()


def test_the_key_that_carries_most_has_the_longest_vector() -> None:
    model = loaded("gpt")
    edges = edge_values(model, run(model), "decoder.1.self", 1)
    assert edges.carries_most.tolist() == [int(row.argmax()) for row in edges.norms]


@pytest.mark.models(PREDICTING)
def test_edges_and_the_other_parts_sum_to_the_logit(model: Model, trace: Trace) -> None:
    sum_to_logits(model, trace)


@pytest.mark.slow
def test_edges_and_the_other_parts_sum_to_the_logit_in_every_family(
    subtests: pytest.Subtests,
) -> None:
    for family in [
        name for name, family in hub_models.FAMILIES.items() if not family[0].endswith("Model")
    ]:
        with subtests.test(family=family):
            model = hub_models.loaded(family)
            sum_to_logits(model, hub_models.traced(model))


def test_the_edges_of_a_query_add_up_to_what_its_head_writes(model: Model, trace: Trace) -> None:
    for attention in trace.attention:
        for head in (0, attention.heads - 1):
            edges = edge_values(model, trace, attention.name, head)
            size = float(np.abs(edges.written).max())
            np.testing.assert_allclose(
                edges.weights @ edges.written,
                model.head_output(attention, head),
                atol=1e-5 * max(size, 1),
            )


def test_norms_are_the_lengths_of_the_written_vectors() -> None:
    model = loaded("gpt")
    trace = run(model)
    attention = trace.find("decoder.1.self")
    width = attention.value.shape[-1]
    output = model.module.attentions()[1].output.weight.numpy()[:, 2 * width : 3 * width]
    lengths = np.sqrt(np.square(attention.value[2] @ output.T).sum(-1))
    edges = edge_values(model, trace, "decoder.1.self", 2)
    np.testing.assert_allclose(edges.norms, attention.weights(2) * lengths, rtol=1e-5)


def test_the_edges_of_an_ablated_head_carry_nothing() -> None:
    model = loaded("gpt")
    trace = run(model, Intervention(ablated=frozenset({("decoder.0.self", 2)})))
    edges = edge_values(model, trace, "decoder.0.self", 2)
    assert not edges.norms.any()
    assert not edges.logit(3).any()
    assert edge_values(model, trace, "decoder.0.self", 1).norms.any()


def test_edges_carry_the_weights_after_dropout() -> None:
    model = loaded("gpt")
    trace = run(model, Intervention(dropout=0.5))
    attention = trace.attention[0]
    assert attention.drops
    np.testing.assert_array_equal(
        edge_values(model, trace, attention.name, 0).weights, attention.dropped(0)
    )


def test_what_reaches_no_logit_is_refused() -> None:
    encoder = loaded("bert")
    edges = edge_values(encoder, run(encoder), "encoder.0.self", 0)
    with pytest.raises(ValueError, match="predicts no next token"):
        edges.logit(0)
    translator = loaded("translator")
    edges = edge_values(translator, run(translator), "encoder.0.self", 0)
    with pytest.raises(ValueError, match="writes to the encoder's stream"):
        edges.logit(0)
    decoder = loaded("gpt")
    edges = edge_values(decoder, run(decoder), "decoder.0.self", 0)
    with pytest.raises(ValueError, match="none has the id 9999"):
        edges.logit(0, against=9999)
    with pytest.raises(ValueError, match="heads 0 to 2, not -4"):
        edge_values(decoder, run(decoder), "decoder.0.self", -4)


def test_without_a_proven_w_o_nothing_is_said_of_what_an_edge_carries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = loaded("gpt")
    trace = run(model)
    family, *_ = families(trace)
    known = token_as_key(model, trace, family)
    monkeypatch.setattr(model.module, "unproven", {"output": "it has no single output matrix"})
    with pytest.raises(UnprovenError, match="what single heads write"):
        edge_values(model, trace, "decoder.0.self", 0)
    without = token_as_key(model, trace, family)
    assert np.isnan(without.carried).all()
    assert np.array_equal(without.weight, known.weight)
    before = edge_values(model, trace, "decoder.0.self", 0, through_output=False)
    output = trace.find("decoder.0.self").output[0]
    assert np.abs(before.weights @ before.written - output).max() < 1e-6
    with pytest.raises(UnprovenError, match="what single heads write"):
        before.logit(0)
