"""The residual stream: what each sub-layer and each head adds to it."""

import numpy as np
import pytest
import torch

from model import Model, Trace
from model.analysis.stream.stream import summed
from model.nn.config import Stack
from model.nn.layers import ACTIVATIONS
from tests.cases import cases
from tests.model.tiny import TINY, loaded


def sublayers(model: Model, stack: Stack) -> list[str]:
    """The names of what writes to a stream, in order: state i + 1 is what the i-th left behind."""
    config = model.config
    kinds = ["self", "cross"] if stack == "decoder" and len(model.stacks()) == 2 else ["self"]
    kinds += ["feed_forward"] if config.d_mlp else []
    layers = config.decoder_layers if stack == "decoder" else config.encoder_layers
    return [f"{stack}.{layer}.{kind}" for layer in range(layers) for kind in kinds]


def bias(model: Model, name: str) -> np.ndarray:
    layer = next(layer for layer in model.module.attentions() if layer.place.name == name)
    given = layer.output.bias
    return np.zeros(model.config.d_model) if given is None else given.detach().cpu().numpy()


def test_heads_and_bias_together_are_what_attention_adds_to_the_stream(
    model: Model, trace: Trace
) -> None:
    for stack in model.stacks():
        states = trace.streams[stack]
        for number, name in enumerate(sublayers(model, stack)):
            if name.endswith("feed_forward"):
                continue
            attention = trace.find(name)
            written = sum(model.head_output(attention, head) for head in range(attention.heads))
            expected = states[number] + written + bias(model, name)
            if model.config.norm_place == "post":
                norm = next(norm for norm in trace.norms if norm.name == f"{name}.norm")
                np.testing.assert_allclose(expected, norm.input, atol=1e-4, rtol=1e-4)
            else:
                np.testing.assert_allclose(expected, states[number + 1], atol=1e-4, rtol=1e-4)


def test_queries_keys_and_values_are_projections_of_what_the_sublayer_reads(
    model: Model, trace: Trace
) -> None:
    norms = {norm.name: norm for norm in trace.norms}
    post, rotary = model.config.norm_place == "post", model.config.positions == "rotary"
    for layer, attention in zip(model.module.attentions(), trace.attention, strict=True):
        number = sublayers(model, attention.stack).index(attention.name)
        state = trace.residual[attention.stack][number]
        x = read = state if post else norms[f"{attention.name}.norm"].output
        if attention.kind == "cross":
            read = trace.residual["encoder"][-1] if post else norms["encoder.final.norm"].output
        sources = {
            "query": (layer.query, x),
            "key": (layer.key, read),
            "value": (layer.value, read),
        }
        for name, (projection, source) in sources.items():
            if rotary and name != "value" and attention.kind != "cross":
                continue  # turned by their positions: test_rotary holds those
            wanted = projection.cpu()(torch.tensor(source))
            projection.to(model.device)
            heads = wanted.unflatten(-1, (attention.heads, -1)).transpose(0, 1)
            np.testing.assert_allclose(
                getattr(attention, name), heads.numpy(), atol=1e-4, rtol=1e-4, err_msg=name
            )


@pytest.mark.models([name for name in TINY if name != "attention-only"])
def test_the_feed_forward_is_its_formula_on_each_token_alone(model: Model, trace: Trace) -> None:
    activation = ACTIVATIONS[model.config.activation]
    assert trace.feed_forward
    for record in trace.feed_forward:
        stack, layer, _ = record.name.split(".")
        blocks = model.module.encoder if stack == "encoder" else model.module.decoder
        feed_forward = blocks.blocks[int(layer)].feed_forward
        number = sublayers(model, stack).index(record.name)
        post = model.config.norm_place == "post"
        norm = next(norm for norm in trace.norms if norm.name == f"{record.name}.norm")
        read = torch.tensor(trace.residual[stack][number] if post else norm.output)
        read = read.to(model.device)
        gate = feed_forward.gate
        before = (gate or feed_forward.w_in)(read)
        hidden = (
            activation(before) if gate is None else activation(before) * feed_forward.w_in(read)
        )
        np.testing.assert_allclose(record.before, before.cpu(), atol=1e-5)
        np.testing.assert_allclose(record.hidden, hidden.cpu(), atol=1e-5)
        added = feed_forward.w_out(hidden).cpu().numpy() + trace.residual[stack][number]
        after = norm.input if post else trace.residual[stack][number + 1]
        np.testing.assert_allclose(added, after, atol=1e-4, rtol=1e-4)


def test_activations_are_the_published_functions() -> None:
    x = torch.linspace(-4, 4, 33)
    cubic = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
    published = {
        "relu": x.clamp(min=0),
        "relu2": x.clamp(min=0) ** 2,
        "gelu": x * torch.special.ndtr(x),
        "gelu_tanh": 0.5 * x * (1 + cubic.tanh()),
        "silu": x * torch.sigmoid(x),
    }
    published |= {"swiglu": published["silu"], "geglu": published["gelu"]}
    published["geglu_tanh"] = published["gelu_tanh"]
    assert set(published) == set(ACTIVATIONS)
    for name, activation in ACTIVATIONS.items():
        torch.testing.assert_close(activation(x), published[name], atol=1e-6, rtol=1e-5)


@cases("record", ["attention", "full"])
def test_feed_forward_activations_are_kept_only_when_asked(record) -> None:
    trace = loaded("gpt").trace("the cat", record=record)  # type: ignore[arg-type]
    assert bool(trace.feed_forward) is (record == "full")


def test_the_first_state_is_the_sum_of_what_was_embedded(model: Model, trace: Trace) -> None:
    for stack in model.stacks():
        parts = trace.summands[stack]
        ids = [token.id for token in trace.tokens_of(stack)]
        factor = model.config.d_model**0.5 if model.config.scaled_embedding else 1.0
        np.testing.assert_allclose(parts["tokens"], model.embedding[ids] * factor, rtol=1e-6)
        total = sum(parts.values())
        if model.config.embedding_norm:
            norm = next(norm for norm in trace.norms if norm.name == f"{stack}.embedding.norm")
            np.testing.assert_allclose(norm.input, total, atol=1e-6)
            total = norm.output
        np.testing.assert_allclose(trace.residual[stack][0], total, atol=1e-5)
    np.testing.assert_array_equal(trace.embeddings, trace.summands[trace.source]["tokens"])


def test_the_sum_is_what_the_stream_or_its_first_norm_starts_from(
    model: Model, trace: Trace
) -> None:
    found = summed(trace)
    assert found.check() < 1e-5
    assert found.parts.keys() >= {"tokens"}
    assert ("positions" in found.parts) == (model.config.positions in ("learned", "sinusoidal"))
    assert bool(found.into) == model.config.embedding_norm
    state = torch.tensor(found.total)
    if model.config.embedding_norm:
        norm = model.module.embedding.norm
        state = norm(state.to(model.device)).cpu()
    np.testing.assert_allclose(state, trace.residual[trace.source][0], atol=1e-4)


def test_a_missing_summand_is_seen() -> None:
    found = summed(loaded("gpt").trace("the cat"))
    del found.parts["positions"]
    assert found.check() > 1e-2
