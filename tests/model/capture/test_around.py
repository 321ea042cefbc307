"""Norms, stream and feed-forwards of somebody's own module: they are those that this app finds in models that
it knows, and nothing is kept where they do not fit together."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from model.analysis.stream.stream import sub_layers
from model.capture import capture
from model.loading.in_memory import trace as trace_of_ours
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from model.trace.trace_file import read_trace, trace_file
from model.trace.unproven import UnprovenError

IDS, WRITTEN = [3, 1, 4, 1, 5, 9, 2], [0, 7, 3]
SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIDES = {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 24))
}


def gpt2() -> nn.Module:
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    )


def llama() -> nn.Module:
    return LlamaForCausalLM(LlamaConfig(**SIZES, intermediate_size=24, num_key_value_heads=1))


def gemma() -> nn.Module:
    sizes = SIZES | {"intermediate_size": 24, "num_key_value_heads": 1, "head_dim": 8}
    return Gemma2ForCausalLM(Gemma2Config(**sizes))


def bert() -> nn.Module:
    return BertModel(BertConfig(**SIZES, intermediate_size=24))


def test_they_are_those_of_a_model_that_this_app_knows(subtests: pytest.Subtests) -> None:
    for make in [gpt2, llama, gemma, bert]:
        with subtests.test(make=make.__name__):
            torch.manual_seed(0)
            module = make()
            seen = capture(module, torch.tensor([IDS]))
            ours = trace_of_ours(module, None, IDS, record="full")
            for stack, states in ours.streams.items():
                np.testing.assert_array_equal(seen.streams[stack], states)
            norms = {norm.name: norm for norm in seen.norms}
            assert set(norms) == {norm.name for norm in ours.norms}
            for norm in ours.norms:
                found = norms[norm.name]
                assert (found.kind, found.epsilon) == (norm.kind, pytest.approx(norm.epsilon))
                np.testing.assert_array_equal(found.input, norm.input)
                np.testing.assert_allclose(found.output, norm.output, atol=1e-5)
                np.testing.assert_allclose(found.gamma, norm.gamma, atol=1e-6)
            for found, known in zip(seen.feed_forward, ours.feed_forward, strict=True):
                assert found.name == known.name
                np.testing.assert_allclose(found.before, known.before, atol=1e-6)
                np.testing.assert_allclose(found.hidden, known.hidden, atol=1e-6)
            assert seen.check() < 1e-5
            again = read_trace(trace_file(seen))
            np.testing.assert_array_equal(again.streams[again.source], seen.streams[seen.source])


def test_both_stacks_of_an_encoder_decoder_have_theirs(subtests: pytest.Subtests) -> None:
    for module, norms in [
        (BartModel(BartConfig(vocab_size=20, d_model=16, **SIDES, max_position_embeddings=16)), 12),
        (
            T5ForConditionalGeneration(
                T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2)
            ),
            12,
        ),
    ]:
        with subtests.test(module=type(module).__name__, norms=norms):
            trace = capture(
                module, input_ids=torch.tensor([IDS]), decoder_input_ids=torch.tensor([WRITTEN])
            )
            assert {stack: states.shape for stack, states in trace.streams.items()} == {
                "encoder": (5, len(IDS), 16),
                "decoder": (7, len(WRITTEN), 16),
            }
            assert len(sub_layers(trace, "decoder")) == 6
            assert len(trace.norms) == norms
            assert len(trace.feed_forward) == 4


class Block(nn.Module):
    """A pre-norm block as in a course. broken: what keeps it from being one."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.broken = broken
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))
        self.maps, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.inner = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16))

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = self.maps(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(read.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.broken == "parallel":
            return x + self.attend(self.norms[0](x)) + self.inner(self.norms[1](x))
        if self.broken == "inner first":
            return x + (self.inner(self.norms[1](x)) + self.attend(self.norms[0](x)))
        if self.broken == "both sides":  # as in a Conformer
            x = x + self.inner(self.norms[1](x))
        read = self.attend(x if self.broken == "no norm" else self.norms[0](x))
        if self.broken == "mixed":
            read = read + 0.1 * x.roll(1, 1)
        x = x + read
        if self.broken == "more":
            x = x + self.out(x).tanh()
        if self.broken == "twice":
            x = x + self.attend(x)
        return x + self.inner(self.norms[1](x))


class Network(nn.Module):
    def __init__(self, broken: str, blocks: int = 2) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)
        self.blocks = nn.ModuleList(Block(broken) for _ in range(blocks))
        self.head = nn.Linear(16, 20)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def proven(trace: Trace) -> set[str]:
    return {"stream", "norms", "feed_forward", "logits"} - set(trace.unproven)


def test_a_stream_is_kept_only_where_the_sums_of_the_pass_are_one() -> None:
    ids = torch.tensor([IDS])
    whole = capture(Network(""), ids)
    assert proven(whole) == {"stream", "norms", "feed_forward", "logits"}
    assert sub_layers(whole, "decoder")[1] == "decoder.0.feed_forward"
    for broken in ("parallel", "inner first", "no norm", "mixed", "both sides", "more"):
        for blocks in (1, 2):
            trace = capture(Network(broken, blocks), ids)
            assert proven(trace) == {"logits"}, (broken, blocks)
        with pytest.raises(UnprovenError, match="not found in the pass"):
            len(trace.norms)
    assert "stream" not in proven(capture(Network("twice"), ids))
    several = capture(Network(""), torch.tensor([IDS, IDS[::-1]]))
    assert proven(several) == {"logits"}  # of one text alone


def test_a_norm_that_does_something_else_is_none() -> None:
    class Other(nn.LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * 1.01

    network = Network("")
    network.blocks[1].norms[0] = Other(16)
    assert proven(capture(network, torch.tensor([IDS]))) == {"logits"}
    plain = Network("")
    plain.norm = nn.LayerNorm(16, elementwise_affine=False)
    assert "norms" in proven(capture(plain, torch.tensor([IDS])))


def test_an_unknown_activation_leaves_the_rest() -> None:
    network = Network("")
    for block in network.blocks:
        block.inner[1] = nn.Softplus()  # type: ignore[union-attr, index]
    assert proven(capture(network, torch.tensor([IDS]))) == {"stream", "norms", "logits"}


def test_the_stream_of_a_changed_pass_is_its_own() -> None:
    network, ids = Network(""), torch.tensor([IDS])
    plain = capture(network, ids)
    heads = frozenset({("blocks.0", 0), ("blocks.0", 1)})
    changed = capture(network, ids, intervention=Intervention(ablated=heads))
    np.testing.assert_array_equal(changed.streams["decoder"][0], plain.streams["decoder"][0])
    added: Any = changed.streams["decoder"][1] - changed.streams["decoder"][0]
    own = network.blocks[0].out.bias  # type: ignore[union-attr]
    np.testing.assert_allclose(added, np.broadcast_to(own.detach(), added.shape), atol=1e-6)  # type: ignore[union-attr]


def test_no_hook_is_left_on_a_module() -> None:
    network = Network("")
    capture(network, torch.tensor([IDS]))
    assert not any(part._forward_hooks for part in network.modules())
