"""The heads' outputs side by side times W_O are what the sub-layer writes, in every model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model import Intervention, Model
from model.analysis.heads.contributions import merged
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, run

CLOSE = 1e-4  # of the largest number: the state before is subtracted from a sum in single precision


def test_the_outputs_side_by_side_times_w_o_are_what_the_stream_received(model: Model) -> None:
    trace = run(model)
    for attention in trace.attention:
        found = merged(model, trace, attention.name)
        with torch.inference_mode():
            side_by_side = torch.tensor(found.concatenated, device=model.device)
            by_torch = model.layer(attention.name).output(side_by_side).cpu().numpy()
        size = max(1.0, float(np.abs(trace.residual[attention.stack]).max()))
        assert np.abs(found.total - by_torch).max() <= CLOSE * size
        assert np.abs(found.total - found.recorded).max() <= CLOSE * size
        assert found.check == np.abs(found.total - found.recorded).max()


@cases("family", ["gpt2", "llama", "qwen3", "gpt_neox", "opt", "bart"])
def test_so_it_is_in_the_families_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    trace = model.trace(hub_models.TEXT)
    for attention in trace.attention:
        found = merged(model, trace, attention.name)
        assert found.check <= CLOSE * max(1.0, float(np.abs(found.recorded).max()))


def test_one_token_is_a_row_of_the_sentence() -> None:
    model = loaded("gpt")
    trace = run(model)
    whole, one = (merged(model, trace, "decoder.1.self", at) for at in (slice(None), slice(3, 4)))
    assert one.concatenated == pytest.approx(whole.concatenated[3:4])
    assert one.written == pytest.approx(whole.written[:, 3:4], abs=1e-6)


def test_the_identity_leaves_each_head_its_own_columns() -> None:
    model = loaded("gpt")
    found = merged(model, run(model), "decoder.0.self")
    identity = found.by_identity()
    assert identity.total == pytest.approx(found.concatenated)
    heads, _, width = found.outputs.shape
    for head in range(heads):
        own = np.arange(heads * width) // width == head
        assert not identity.written[head][:, ~own].any()
    cut = replace(found, outputs=found.outputs[:-1])
    with pytest.raises(ValueError, match="no identity does so"):
        cut.by_identity()


def test_an_ablated_head_leaves_its_place_empty() -> None:
    model = loaded("gpt")
    trace = run(model, Intervention(ablated=frozenset({("decoder.0.self", 1)})))
    found = merged(model, trace, "decoder.0.self")
    assert not found.outputs[1].any()
    assert not found.written[1].any()
    assert found.check < 1e-5
