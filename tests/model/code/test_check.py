"""The check of a listing: it passes where the listing is the model, and notices what a listing cannot say."""

from itertools import product
from pathlib import Path

import pytest

from model import Intervention, Model, load_model
from model.code import checked_difference, largest_difference, lines, listing
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.code.code_models import CLOSE, HUB, OWN, REFUSED, opened, variant
from tests.model.hub_models import PARTLY, loaded, traced


def difference(model: Model, trace: Trace) -> float:
    return largest_difference(model, trace, model.module.named_weights())


@cases("name", [*OWN, *HUB])
def test_the_check_passes_where_the_listing_is_right(name) -> None:
    off = difference(*opened(name))
    print(f"{name}: {off:.1e}")
    assert off <= CLOSE


@pytest.mark.slow
@cases("name", [*REFUSED, *PARTLY])
def test_a_model_with_what_a_listing_does_not_write_is_refused(name) -> None:
    model = loaded(name)
    with pytest.raises(ValueError, match=r"its|the"):
        checked_difference(model, traced(model), model.module.named_weights())


@cases(
    "pair, name",
    product([("query", "key"), ("key", "value"), ("query", "value")], ["gpt_neox", "bert"]),
)
def test_the_check_notices_weights_under_a_wrong_name(pair, name) -> None:
    model, trace = opened(name)
    named = model.module.named_weights()
    stack = trace.attention[0].stack
    one, other = (f"{stack}.blocks.1.self_attention.{part}.weight" for part in pair)
    wrong = {**named, one: named[other], other: named[one]}
    assert largest_difference(model, trace, wrong) > 0.1
    with pytest.raises(ValueError, match="do not give its numbers"):
        checked_difference(model, trace, wrong)


def test_the_check_notices_values_that_are_all_too_large_or_all_too_small(
    subtests: pytest.Subtests,
) -> None:
    model, trace = opened("bert")
    named = model.module.named_weights()
    bias = "encoder.blocks.1.self_attention.value.bias"
    for by in (0.5, -0.5):
        with subtests.test(by=by):
            assert largest_difference(model, trace, {**named, bias: named[bias] + by}) > 0.01


@cases("name", ["query_norm", "key_norm"])
def test_the_check_notices_a_wrong_norm_of_queries_or_keys(name) -> None:
    model, trace = opened("qwen3")
    named = model.module.named_weights()
    gamma = f"decoder.blocks.2.self_attention.{name}.gamma"
    assert largest_difference(model, trace, {**named, gamma: named[gamma] * 1.01}) > 1e-3
    rest = {key: weight for key, weight in named.items() if key != gamma}
    with pytest.raises(ValueError, match="norms"):
        largest_difference(model, trace, rest)


def test_layers_that_turn_and_layers_that_do_not_are_refused(tmp_path: Path) -> None:
    """SmolLM3: every fourth layer has no rotary positions, and a listing has one `attention` for all."""
    model, trace = variant(tmp_path, "llama", "SmolLM3", num_hidden_layers=4)
    weights = model.module.named_weights()
    assert lines(model.config, weights)
    with pytest.raises(ValueError, match="do not give its numbers"):
        checked_difference(model, trace, weights)


@cases(
    "changed, said",
    [({"scale": 1.0}, "√d_k"), ({"blocked": frozenset({(3, 1)})}, "masks its scores")],
)
def test_other_steps_of_attention_are_refused(changed, said) -> None:
    model = load_model("house-gpt", device="cpu")
    trace = model.trace("The cat sat on the mat", intervention=Intervention(**changed))
    with pytest.raises(ValueError, match=said):
        difference(model, trace)


@cases("changed, said", [
    ({"cap": False}, "caps its scores"),
    ({"bias": False}, "adds biases"),
    ({"sinks": False}, "has sinks"),
    ({"window": 3}, "masks its scores"),
    ({"mask": "none"}, "masks its scores"),
])  # fmt: skip
def test_stages_that_are_not_the_listings_are_refused(changed, said) -> None:
    model, _ = opened("all-stages")
    assert difference(model, model.trace("The")) <= CLOSE
    trace = model.trace(OWN["all-stages"], intervention=Intervention(**changed))
    with pytest.raises(ValueError, match=f"{said}.* cannot write as code"):
        difference(model, trace)


def test_learned_biases_are_refused_in_a_sentence() -> None:
    model = load_model("distance-buckets", device="cpu")
    with pytest.raises(ValueError, match="learned biases"):
        listing(model)


def test_a_window_of_attention_is_refused_in_a_sentence() -> None:
    model = loaded("mistral")
    with pytest.raises(ValueError, match="window"):
        listing(model)
