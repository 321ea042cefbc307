"""Each query, key and value is the sum of its products, in every model."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from model import Model, Trace
from model.analysis.attribution.head_maps import Side
from model.analysis.attribution.score_parts import projected
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, run

EXACT = 1e-4  # of the largest number of the vectors
FAMILIES = ("gpt2", "bert", "llama", "qwen2", "qwen3", "gemma", "gpt_neox", "phi", "opt", "bart")
SIDES: tuple[Side, ...] = get_args(Side)


def assert_exact(model: Model, trace: Trace) -> None:
    """In the first and the last head of the last layer of each kind."""
    last = {one.kind: one for one in trace.attention}
    for attention in last.values():
        for side in SIDES:
            vectors = getattr(attention, side)
            token = vectors.shape[1] - 1
            for head in {0, attention.heads - 1}:
                found = projected(model, trace, attention.name, head, token, side)
                size = max(float(np.abs(vectors[head]).max()), 1e-3)
                assert np.abs(found.after - vectors[head, token]).max() <= EXACT * size
                assert np.array_equal(found.recorded, vectors[head, token])
                whole = [found.products(c).sum() + found.bias[c] for c in range(len(found.bias))]
                assert found.sums == pytest.approx(np.array(whole), abs=1e-9)
                if not (found.turned or found.normed):
                    assert found.sums == pytest.approx(found.recorded, abs=EXACT * size)


def test_the_products_and_the_bias_add_up_to_the_recorded_number(model: Model) -> None:
    assert_exact(model, run(model))


@cases("family", FAMILIES)
def test_so_they_do_in_the_families_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    assert_exact(model, model.trace(hub_models.TEXT))


def test_the_matrix_is_the_heads_own_part_of_the_models() -> None:
    model = loaded("gpt")
    layer = model.layer("decoder.1.self")
    width = model.config.head_width
    for side in SIDES:
        found = projected(model, run(model), "decoder.1.self", 2, 3, side)
        own = getattr(layer, side)
        assert found.matrix == pytest.approx(own.weight[2 * width : 3 * width].numpy())
        assert found.bias == pytest.approx(own.bias[2 * width : 3 * width].numpy())


def test_rotary_positions_follow_on_queries_and_keys_alone() -> None:
    model = loaded("llama")
    trace = run(model)
    for side in SIDES:
        found = projected(model, trace, "decoder.0.self", 1, 3, side)
        assert found.turned == (side != "value")
        assert np.allclose(found.sums, found.recorded, atol=1e-5) == (side == "value")


def test_values_that_no_map_of_the_model_makes_are_refused() -> None:
    model = loaded("gpt")
    trace = run(model)
    first, second = trace.attention
    query, key, value = second.vectors
    wrong = replace(second, vectors=(query, key, value * np.float32(1.01)))
    with pytest.raises(ValueError, match=r"no map of gpt reproduces the recorded ones"):
        projected(model, replace(trace, attention=(first, wrong)), "decoder.1.self", 0, 0, "value")
