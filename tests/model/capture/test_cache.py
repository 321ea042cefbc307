"""`capture` of a pass that goes on from a cache, whose first keys came with the call."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from transformers import (
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    StaticCache,
)

from model import Intervention
from model.capture import capture

IDS = torch.tensor([[3, 9, 4, 1, 5, 9, 2]])
TOKENS = IDS.shape[1]
SIZES: dict[str, Any] = {
    "vocab_size": 16, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GPT2 = {
    "vocab_size": 16,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 16,
    "bos_token_id": 1,
}
MODULES: dict[str, Callable[[str], nn.Module]] = {
    "llama": lambda kind: LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation=kind)),
    "mistral": lambda kind: MistralForCausalLM(
        MistralConfig(**SIZES, sliding_window=3, attn_implementation=kind)
    ),
    "gpt2": lambda kind: GPT2LMHeadModel(
        GPT2Config(**GPT2, eos_token_id=2, attn_implementation=kind)
    ),
}


def module_of(name: str, kind: str = "sdpa") -> Any:
    torch.manual_seed(0)
    return MODULES[name](kind).eval()


def past_of(module: Any, count: int, cache: Any = None) -> Any:
    """A cache with so many tokens."""
    past = DynamicCache(config=module.config) if cache is None else cache
    with torch.no_grad():
        module(IDS[:, :count], past_key_values=past)
    return past


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODULES)
def test_a_continued_pass_has_the_last_rows_of_the_whole_one(
    name: str, kind: str, subtests: pytest.Subtests
) -> None:
    module = module_of(name, kind)
    whole = capture(module, IDS)
    for count in (TOKENS - 2, TOKENS - 1):
        with subtests.test(count=count):
            past = past_of(module, count)
            trace = capture(module, IDS[:, count:], past_key_values=past)
            assert past.get_seq_length() == TOKENS
            for own, other in zip(trace.attention, whole.attention, strict=True):
                assert (own.name, own.kind, own.heads) == (other.name, "causal", other.heads)
                assert len(trace.queries_of(own)) == TOKENS - count
                keys = trace.keys_of(own)
                assert trace.queries_of(own) == keys[count - TOKENS :]
                for head in range(own.heads):
                    rows = other.weights(head)[count:]
                    assert not rows[:, : TOKENS - len(keys)].any()
                    np.testing.assert_allclose(
                        own.weights(head), rows[:, TOKENS - len(keys) :], atol=1e-6
                    )


def test_the_empty_places_of_a_cache_are_no_tokens() -> None:
    module = module_of("llama")
    for count in (TOKENS - 2, TOKENS - 1):
        past = past_of(module, count, StaticCache(config=module.config, max_cache_len=12))
        trace = capture(module, IDS[:, count:], past_key_values=past, tokens=[*"abcdefg"])
        assert [token.text for token in trace.queries_of(trace.attention[0])] == [*"abcdefg"][
            count:
        ]


def test_a_changed_pass_reads_the_cache_as_it_was_given(subtests: pytest.Subtests) -> None:
    """Against the module's own pass, in which a hook leaves the head out."""
    for count in (TOKENS - 2, TOKENS - 1):
        with subtests.test(count=count):
            module = module_of("llama")
            past = past_of(module, count)
            asked = Intervention(ablated=frozenset({("decoder.0.self", 1)}))
            trace = capture(module, IDS[:, count:], past_key_values=past, intervention=asked)
            assert past.get_seq_length() == count

            def leave_out(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
                heads = given[0].clone()
                heads[..., 4:8] = 0
                return (heads,)

            last: list[Tensor] = []
            projection = module.model.layers[0].self_attn.o_proj
            projection.register_forward_pre_hook(leave_out)
            module.model.layers[1].self_attn.q_proj.register_forward_hook(
                lambda _, __, made, last=last: last.append(made)
            )
            with torch.no_grad():
                module(IDS[:, count:], past_key_values=copy.deepcopy(past), use_cache=True)
            positions = torch.arange(count, TOKENS)[None]
            cos, sin = module.model.rotary_emb(last[0], positions)
            made = last[0][0].unflatten(-1, (4, 4)).transpose(0, 1)
            half = torch.cat([-made[..., 2:], made[..., :2]], -1)
            np.testing.assert_allclose(trace.attention[1].query, made * cos + half * sin, atol=1e-5)


def test_inputs_that_cannot_be_copied_are_refused_where_two_passes_run() -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, parts: Any) -> Tensor:
            x = torch.cat([*parts], 1)
            return self.attention(x, x, x)[0]

    def parts() -> Any:
        return (torch.ones(1, 2, 8) for _ in range(2))

    assert len(capture(Reader(), parts()).tokens) == 4
    changed = Intervention(ablated=frozenset({("encoder.0.self", 1)}))
    with pytest.raises(ValueError, match="copied"):
        capture(Reader(), parts(), intervention=changed)


class WithBias(nn.Module):
    """Attention whose mask is one of PyTorch's own kinds."""

    def __init__(self, bias: Callable[[int, int], Any], *, by_name: bool) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.bias, self.by_name = bias, by_name

    def forward(self, x: Tensor, before: int) -> Tensor:
        query, key, value = (one(x).unflatten(-1, (2, 4)).transpose(1, 2) for one in self.maps)
        query = query[:, :, before:]
        mask = self.bias(query.shape[2], key.shape[2])
        read = {"attn_mask": mask} if self.by_name else {}
        given = () if self.by_name else (mask,)
        return F.scaled_dot_product_attention(query, key, value, *given, **read)


def test_pytorchs_own_causal_masks_hide_what_they_say(subtests: pytest.Subtests) -> None:
    for bias, by_name, before in [
        (bias, by_name, before)
        for bias in (causal_upper_left, causal_lower_right)
        for by_name in (False, True)
        for before in (0, 3)
    ]:
        with subtests.test(bias=bias.__name__, by_name=by_name, before=before):
            torch.manual_seed(0)
            module = WithBias(bias, by_name=by_name)
            (own,) = capture(module, torch.randn(1, 7, 8), before).attention
            last = before if bias is causal_lower_right else 0
            allowed = np.tri(7 - before, 7, last, dtype=bool)
            assert ((own.weights() > 0) == allowed).all()
            assert own.check() < 1e-6
            changed = Intervention(mask="none")
            lifted = capture(module, torch.randn(1, 7, 8), before, intervention=changed)
            assert lifted.check() < 1e-6
