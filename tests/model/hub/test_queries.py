"""What leads to the queries of a hub model is drawn only where it gives the recorded ones."""

from pathlib import Path

import numpy as np

from model import load_model
from model.analysis.stream.around_heads import AroundHeads
from tests.cases import cases
from tests.model.hub_families import FAMILIES
from tests.model.hub_models import build, loaded, save, traced


def test_dimensions_that_turn_behind_others_are_not_taken_for_the_first_ones() -> None:
    """DeepSeek turns the last dimensions of a head."""
    model = loaded("deepseek_v3")
    trace = traced(model, record="full")
    assert model.config.rotary_pairs == "other"
    assert AroundHeads(model, trace, trace.attention[0]).turn is None


@cases("family", ["llama", "qwen3"])
def test_queries_are_turned_back_where_the_map_gives_them(family) -> None:
    model = loaded(family)
    trace, still = (traced(model, record="full") for _ in range(2))
    around = AroundHeads(model, trace, trace.attention[0])
    assert around.turn is not None
    np.testing.assert_array_equal(trace.logits, still.logits)


def test_a_layer_without_rotary_positions_turns_no_queries(tmp_path: Path) -> None:
    """SmolLM3 leaves them out of some layers."""
    choices = {**FAMILIES["llama"][2], "no_rope_layers": [1, 0], "pad_token_id": 0}
    body = build("SmolLM3ForCausalLM", "SmolLM3Config", {**choices, "num_hidden_layers": 2})
    model = load_model(str(save(tmp_path, body, adds=False)), device="cpu")
    trace = traced(model, record="full")
    turns = [AroundHeads(model, trace, attention).turn for attention in trace.attention]
    assert [turn is not None for turn in turns] == [True, False]


def test_only_norms_of_queries_and_keys_are_counted_as_such() -> None:
    """ALBERT's norm inside its attention follows it; DeepSeek's norm what is no query yet."""
    sizes = [loaded(name).config.query_key_norm for name in ("albert", "deepseek_v3", "qwen3")]
    assert sizes == [0, 0, 32]
