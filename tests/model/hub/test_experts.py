"""Which experts read each token: the router's own numbers, as the library hands them out."""

import numpy as np

from model.analysis.stream.stream import written
from model.trace.arrays import softmax
from tests.cases import cases
from tests.model.hub_models import eager_stock, loaded, traced


@cases("family", ["mixtral", "qwen3_moe", "gpt_oss"])
def test_logits_of_the_router_are_the_librarys_and_chosen_experts_have_the_largest(family) -> None:
    model = loaded(family)
    trace = traced(model, record="full")
    theirs = eager_stock(model, trace, output_router_logits=True).router_logits
    assert len(trace.experts) == len(theirs) == model.config.decoder_layers
    for record, logits in zip(trace.experts, theirs, strict=True):
        assert record.logits.shape == (len(trace.tokens), model.config.experts)
        np.testing.assert_allclose(record.logits, logits.reshape(record.logits.shape), atol=1e-5)
        largest = np.sort(np.argsort(-record.logits, -1)[:, :2], -1)
        np.testing.assert_array_equal(np.sort(record.chosen, -1), largest)
        weights = np.take_along_axis(softmax(record.logits), record.chosen, -1)
        if family != "qwen3_moe":  # its config leaves them as they are
            weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(record.weights, weights, atol=1e-6)


def test_layers_with_experts_stand_beside_layers_with_neurons() -> None:
    """DeepSeek's first layer has neurons; its later ones choose experts by corrected scores in groups."""
    model = loaded("deepseek_v3")
    trace = traced(model, record="full")
    assert [record.name for record in trace.feed_forward] == ["decoder.0.feed_forward"]
    assert [one.name for one in trace.experts] == [f"decoder.{n}.feed_forward" for n in (1, 2)]
    router = model.module.body.model.layers[1].mlp.gate
    for record in trace.experts[:1]:
        scores = 1 / (1 + np.exp(-record.logits))
        kept = np.take_along_axis(scores, record.chosen, -1)
        expected = kept / kept.sum(-1, keepdims=True) * router.routed_scaling_factor
        np.testing.assert_allclose(record.weights, expected, rtol=1e-5)


def test_the_sum_over_the_chosen_experts_is_what_the_layer_writes() -> None:
    model = loaded("mixtral")
    trace = traced(model, record="full")
    record, name = trace.experts[1], "decoder.1.feed_forward"
    norm = next(one for one in trace.norms if one.name == f"{name}.norm")
    experts = model.module.body.model.layers[1].mlp.experts
    into, out = (weight.numpy() for weight in (experts.gate_up_proj, experts.down_proj))
    total = np.zeros_like(norm.output)
    for expert in range(model.config.experts):
        gate, up = np.split(norm.output @ into[expert].T, 2, axis=-1)
        total += record.shares[:, expert, None] * (
            (gate / (1 + np.exp(-gate)) * up) @ out[expert].T
        )
    np.testing.assert_allclose(total, written(model, trace, name), atol=1e-5)
