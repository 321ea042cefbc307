"""What the library's models hand to `attend`, against the library's own eager functions."""

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.modernbert import modeling_modernbert
from transformers.models.t5 import modeling_t5

from model.hub.attention import PLACE, hub_attention
from model.nn.masks import causal_mask, window_mask
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from tests.cases import cases

HEADS, GROUPS, LENGTH, WIDTH = 4, 2, 7, 8
LOWEST = torch.finfo(torch.float32).min
CAUSAL = torch.zeros(1, 1, LENGTH, LENGTH).masked_fill(~causal_mask(LENGTH), LOWEST)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


BIAS, SINKS = drawn(1, HEADS, LENGTH, LENGTH), drawn(HEADS)
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "gemma2, a cap": (modeling_gemma2, {"softcap": 1.5}),
    "gpt_oss, sinks": (modeling_gpt_oss, {"s_aux": SINKS}),
    "t5, a bias": (modeling_t5, {"position_bias": BIAS}),
    "a bias in the mask": (modeling_modernbert, {"added": BIAS}),
}


def module(groups: int, *, causal: bool = True) -> Any:
    """What the functions read of an attention module."""
    layer = SimpleNamespace(
        num_key_value_groups=groups, training=False, sinks=SINKS, is_causal=causal
    )
    setattr(layer, PLACE, (Place("decoder", 0, "causal" if causal else "self"),))
    return layer


@cases("case", CASES)
def test_each_stage_is_computed_as_the_library_does(case) -> None:
    source, given = CASES[case]
    groups = 1 if "bias" in case else GROUPS
    layer = module(groups)
    query = drawn(1, HEADS, LENGTH, WIDTH) * 3
    key, value = (drawn(1, HEADS // groups, LENGTH, WIDTH + more)[..., :WIDTH] for more in (0, 1))
    mask = CAUSAL + given.pop("added") if "added" in given else CAUSAL
    scaling = 1 / math.sqrt(WIDTH)
    expected, _ = source.eager_attention_forward(
        layer, query, key, value, mask, scaling=scaling, **given
    )
    recorder = Recorder(level="attention")
    with recording(recorder):
        output, _ = hub_attention(layer, query, key, value, mask, scaling=scaling, **given)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=1e-5)
    (kept,) = recorder.attention
    assert torch.equal(kept.mask[0, 0], causal_mask(LENGTH))
    assert kept.cap == given.get("softcap")
    added = kept.bias.where(kept.mask, torch.zeros(())).expand(BIAS.shape)
    assert torch.equal(added, BIAS.where(causal_mask(LENGTH), 0) if "bias" in case else 0 * BIAS)


@cases("causal", [True, False])
def test_the_window_is_kept_as_the_number_of_keys_that_a_query_reads(causal) -> None:
    layer = module(1, causal=causal)
    x = drawn(1, HEADS, LENGTH, WIDTH)
    mask = window_mask(LENGTH, LENGTH, 3 if causal else 5, causal=causal)
    recorder = Recorder(level="attention")
    with recording(recorder):
        hub_attention(layer, x, x, x, mask[None, None], sliding_window=3)
    (kept,) = recorder.attention
    assert kept.window == mask.sum(-1).max()
    assert kept.cap is kept.bias is kept.sinks is None
