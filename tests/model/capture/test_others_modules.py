"""`capture` of modules that nobody here wrote: recomputed from each record, the module's own output comes."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LongT5Config, LongT5ForConditionalGeneration

from model.capture import capture
from tests.model.capture.others_modules import MODULES


@pytest.mark.filterwarnings("ignore")  # of the packages themselves
def test_its_outputs_come_out_of_the_record(subtests: pytest.Subtests) -> None:
    for make, count in [entry[:2] for entry in MODULES]:
        with subtests.test(make=make.__name__, count=count):
            torch.manual_seed(0)
            torch.manual_seed(0)
            module, inputs, keywords = make()
            trace = capture(module, *inputs, **keywords)
            assert len(trace.attention) == count
            assert trace.check() < 1e-5
            assert all(attention.module for attention in trace.attention)


def own_weights(module: nn.Module, inputs: tuple[Any, ...]) -> Any:
    """(layer, text, head, query, key), as the library itself returns them."""
    with torch.no_grad():
        if "x_transformers" in type(module).__module__:
            return module.eval()(*inputs, return_attn=True)[1]
        return module.eval()(*inputs, output_attentions=True).attentions


GIVE_WEIGHTS = [
    make
    for make, _, title in MODULES
    if title.startswith(("transformers", "x-transformers, a")) and "fused" not in title
]


@pytest.mark.filterwarnings("ignore")
def test_weights_are_those_that_the_library_returns(subtests: pytest.Subtests) -> None:
    for texts, make in product([1, 2], GIVE_WEIGHTS):
        with subtests.test(texts=texts, make=make.__name__):
            torch.manual_seed(0)
            torch.manual_seed(0)
            module, inputs, _ = make()
            inputs = tuple(one[:texts] for one in inputs)
            trace = capture(module, *inputs, batch=texts - 1)
            own = [one for one in own_weights(module, inputs) if one is not None]
            for attention, weights in zip(trace.attention, own, strict=True):
                assert attention.heads == weights.shape[1]
                for head in range(attention.heads):
                    assert abs(attention.weights(head) - weights[-1, head].numpy()).max() < 1e-6


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_that_reads_pieces_is_no_part_of_the_decoder() -> None:
    sizes = {
        "vocab_size": 60,
        "d_model": 48,
        "d_kv": 8,
        "num_heads": 6,
        "d_ff": 80,
        "num_layers": 2,
    }
    module = LongT5ForConditionalGeneration(LongT5Config(**sizes, local_radius=4)).eval()
    ids = torch.arange(7)[None]
    trace = capture(module, input_ids=ids, decoder_input_ids=ids[:, :5])
    stacks = ["encoder.0.self", "encoder.1.self"]
    stacks += [f"decoder.{layer}.{kind}" for layer in range(2) for kind in ("self", "cross")]
    assert [attention.name for attention in trace.attention] == stacks
