"""Where two runs part: each planted fault is found at its stage with its cause, and equal computations, ours
and the library's, have no difference beyond rounding."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from model import Intervention, Model, Trace
from model.analysis import first_difference, precision_by_layer
from model.capture import capture
from model.exchange import read
from model.hub.inline_attention import reference_mended
from model.nn.transformer import Transformer
from tests.model import hub_models
from tests.model.analysis.faulty_modules import (
    FAULTS,
    WITHOUT_POSITIONS,
    exercise,
    vectors,
)
from tests.model.capture.own_modules import OwnAttention, capped, sinks
from tests.model.hub_models import FAMILIES, eager
from tests.model.tiny import TINY, loaded, run

Change = Callable[[Transformer], None]


def unchanged(module: Transformer) -> None:
    """Nothing is planted."""


def faulty(name: str, change: Change = unchanged, **config: Any) -> Trace:
    """The run of a copy of a tiny model with the same weights, one thing changed."""
    own = loaded(name)
    module = Transformer(replace(own.config, **config))
    weights = {key: weight.clone() for key, weight in own.module.state_dict().items()}
    module.load_state_dict(weights, strict=False)  # an RMS norm has no β
    with torch.no_grad():
        change(module)
    copy = Model(own.name, module.eval(), own.tokenizer, own.device)
    return run(copy, record="full")


def test_a_copy_with_the_same_weights_has_no_difference(subtests: pytest.Subtests) -> None:
    for name in TINY:
        with subtests.test(name=name):
            torch.manual_seed(0)
            own = run(loaded(name), record="full")
            assert first_difference(own, faulty(name)) is None
            assert first_difference(own, run(loaded(name), record="full", explicit=True)) is None


def test_each_fault_of_an_exercise_is_found_with_its_cause(subtests: pytest.Subtests) -> None:
    for kind, fault in FAULTS.items():
        with subtests.test(kind=kind, fault=fault):
            torch.manual_seed(0)
            turns = kind not in WITHOUT_POSITIONS
            x = vectors()
            reference = capture(exercise(turns=turns), x)
            assert first_difference(reference, capture(exercise(turns=turns), x)) is None
            parting = first_difference(reference, capture(exercise(kind, turns=turns), x))
            assert parting is not None
            assert (parting.stage, parting.place) == (fault[0], "decoder.0.self")
            assert parting.cause is not None
            assert fault[1] in parting.cause
            assert parting.difference == abs(parting.first - parting.second) > parting.rounding


def no_bias(which: str) -> Change:
    def change(module: Transformer) -> None:
        getattr(module.attentions()[0], which).bias.zero_()

    return change


def shifted(module: Transformer) -> None:
    positions = module.embedding.positions.weight  # type: ignore[union-attr]
    positions.copy_(positions.roll(-1, 0))


def drowned(module: Transformer) -> None:
    """The feed-forward of the last layer gets other weights, which no mistake explains."""
    weight = [one for one in module.parameters() if one.ndim == 2][-1]
    weight.copy_(torch.rand_like(weight))


PLANTED: Mapping[str, tuple[str, Change, dict[str, Any], str, str, str]] = {
    "norm ε": ("gpt", unchanged, {"epsilon": 1e-3}, "norm", "decoder.0.self.norm",
               "ε of its norm is 0.001 instead of 1e-05"),
    "norm ε, small": ("llama", unchanged, {"epsilon": 1e-6}, "norm", "decoder.0.self.norm",
                      "ε of its norm is 1e-06 instead of 1e-05"),
    "RMS norm": ("gpt", unchanged, {"norm": "rms"}, "norm", "decoder.0.self.norm", "an RMS norm"),
    "layer norm": ("llama", unchanged, {"norm": "layer"}, "norm", "decoder.0.self.norm", "a layer norm"),
    "post-norm": ("gpt", unchanged, {"norm_place": "post"}, "norm", "decoder.0.self.norm",
                  "after the sub-layer instead of before"),
    "pre-norm": ("gpt-post", unchanged, {"norm_place": "pre"}, "norm", "decoder.0.self.norm",
                 "before the sub-layer instead of after"),
    "GELU": ("gpt", unchanged, {"activation": "gelu_tanh"}, "feed-forward", "decoder.0.feed_forward",
             "activation is gelu tanh"),
    "embedding": ("translator", unchanged, {"scaled_embedding": False}, "embedding",
                  "encoder.embedding", "not multiplied by √d_model"),
    "rotary base": ("llama", unchanged, {"rotary_base": 5e5}, "rotary", "decoder.0.self",
                    "500,000 instead of 10,000"),
    "query bias": ("gpt", no_bias("query"), {}, "query", "decoder.0.self", "bias of the map"),
    "output bias": ("gpt", no_bias("output"), {}, "stream", "decoder.0.self", "bias of the map"),
    "positions": ("gpt", shifted, {}, "positions", "decoder.embedding", "shifted by 1"),
}  # fmt: skip


def test_each_fault_of_a_model_is_found_with_its_cause(subtests: pytest.Subtests) -> None:
    for fault in PLANTED:
        with subtests.test(fault=fault):
            torch.manual_seed(0)
            name, change, config, stage, place, cause = PLANTED[fault]
            parting = first_difference(
                run(loaded(name), record="full"), faulty(name, change, **config)
            )
            assert parting is not None
            assert (parting.stage, parting.place) == (stage, place)
            assert parting.cause is not None
            assert cause in parting.cause
            assert cause in parting.sentence


def test_a_transposed_matrix_is_told_with_the_model_at_hand(subtests: pytest.Subtests) -> None:
    for which, name in product(["query", "key", "value"], ["gpt", "llama"]):
        with subtests.test(which=which, name=name):
            torch.manual_seed(0)

            def transposed(module: Transformer) -> None:
                weight = getattr(module.attentions()[1], which).weight
                weight.copy_(weight.T.clone())

            own, other = run(loaded(name), record="full"), faulty(name, transposed)
            parting = first_difference(own, other, model=loaded(name))
            assert parting is not None
            assert (parting.stage, parting.place) == (which, "decoder.1.self")
            assert "map is transposed" in parting.cause
            alone = first_difference(own, other)
            assert alone is not None
            assert alone.cause is None


def test_a_difference_that_nothing_explains_has_no_cause() -> None:
    parting = first_difference(run(loaded("gpt"), record="full"), faulty("gpt", drowned))
    assert parting is not None
    assert parting.stage == "stream"
    assert parting.cause is None
    assert "no cause" in parting.sentence


def test_a_cap_or_a_sink_that_is_left_out_is_told(subtests: pytest.Subtests) -> None:
    for written, stage, cause in [(capped, "capped", "not capped"), (sinks, "weights", "sink")]:
        with subtests.test(stage=stage):
            torch.manual_seed(0)

            def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                return (q @ k.mT / 2).softmax(-1) @ v

            modules = [OwnAttention(one) for one in (written, plain)]
            modules[1].load_state_dict(modules[0].state_dict())
            x = torch.randn(1, 7, 16)
            parting = first_difference(*(capture(module, x) for module in modules))
            assert parting is not None
            assert parting.stage == stage
            assert parting.cause is not None
            assert cause in parting.cause


def test_a_softmax_over_the_wrong_axis_is_told_from_its_weights(subtests: pytest.Subtests) -> None:
    for axis, cause in [
        (1, "over the queries instead of the keys"),
        (0, "over the heads instead of the keys"),
    ]:
        with subtests.test(axis=axis):
            trace = run(loaded("gpt"))
            scores = torch.tensor(np.stack([trace.attention[0].masked(head) for head in range(3)]))
            weights = scores.softmax(axis)[None]
            rest = [torch.tensor(one.weights())[None] for one in trace.attention[1:]]
            parting = first_difference(trace, read((weights.nan_to_num(), *rest)))
            assert parting is not None
            assert (parting.stage, parting.place) == ("weights", "decoder.0.self")
            assert parting.cause is not None
            assert cause in parting.cause


def test_a_head_that_is_left_out_is_the_first_difference() -> None:
    model = loaded("gpt")
    ablated = Intervention(ablated=frozenset({("decoder.1.self", 2)}))
    parting = first_difference(run(model), run(model, ablated))
    assert parting is not None
    assert (parting.stage, parting.place, parting.head) == ("output", "decoder.1.self", 2)
    assert "outputs are zero" in parting.cause


def stock(model: Model, trace: Trace) -> tuple[Any, dict[str, torch.Tensor]]:
    """The library's own model with eager attention, and what our pass fed."""
    kinds = {
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModel,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }
    fed = {"input_ids": torch.tensor([[token.id for token in trace.tokens]])}
    if trace.target_tokens:
        fed["decoder_input_ids"] = torch.tensor([[token.id for token in trace.target_tokens]])
    kind = kinds[model.config.shape]
    return kind.from_pretrained(model.name, attn_implementation="eager").eval(), fed


@pytest.mark.filterwarnings("ignore::model.capture.CaptureWarning")
def test_our_pass_has_no_difference_from_the_librarys(subtests: pytest.Subtests) -> None:
    for family in FAMILIES:
        with subtests.test(family=family):
            model = hub_models.loaded(family)
            trace = hub_models.traced(model, record="full")
            assert first_difference(trace, read(eager(model, trace))) is None  # weights alone
            module, fed = stock(model, trace)
            with reference_mended(module):
                captured = capture(module, **fed)
            assert first_difference(trace, captured) is None
            assert (
                first_difference(trace, hub_models.traced(model, record="full", explicit=True))
                is None
            )


def test_the_library_is_found_to_add_falcons_biases_twice() -> None:
    """Its eager attention adds them in the attention and in the mask; its fused one, and ours, once."""
    model = hub_models.loaded("falcon, ALiBi")
    trace = hub_models.traced(model)
    module, fed = stock(model, trace)
    parting = first_difference(trace, capture(module, **fed))
    assert parting is not None
    assert (parting.stage, parting.place) == ("biased", "decoder.0.self")
    assert "biases twice" in parting.cause


def test_a_run_in_half_precision_differs_by_no_more_than_that_explains(
    subtests: pytest.Subtests,
) -> None:
    for kind in ["bfloat16", "float16"]:
        with subtests.test(kind=kind), pytest.MonkeyPatch.context() as monkeypatch:
            whole = hub_models.loaded("llama")
            monkeypatch.setenv("ATTENTION_DTYPE", kind)
            half = hub_models.load_model(str(hub_models.saved("llama")), device="cpu")
            exact, rounded = (hub_models.traced(one, record="full") for one in (whole, half))
            assert first_difference(exact, rounded) is None
            silent = first_difference(
                exact, replace(rounded, device="the CPU")
            )  # it says nothing of that
            assert silent is not None
            assert silent.cause is not None
            assert f"computes in {kind}" in silent.cause


def test_the_table_of_layers_lists_every_stage_once_in_order() -> None:
    exact = hub_models.traced(hub_models.loaded("llama"), record="full")
    table = precision_by_layer(exact, exact)
    assert not table["difference"].any()
    assert not table["beyond"].any()
    assert not table.duplicated(["place", "stage"]).any()
    own = table[table["place"] == "decoder.1.self"]["stage"].tolist()
    assert own == ["query", "key", "value", "mask", "output", "stream"]
    assert table["place"].iloc[-1] == "decoder.output"
    scaled = hub_models.traced(hub_models.loaded("llama"), Intervention(scale=1.0), record="full")
    beyond = precision_by_layer(exact, scaled)
    assert beyond[beyond["beyond"]].iloc[0][["place", "stage"]].tolist() == [
        "decoder.0.self",
        "scaled",
    ]


def test_runs_that_cannot_be_laid_side_by_side_are_refused() -> None:
    longer = loaded("gpt").trace("the cat saw")
    with pytest.raises(ValueError, match="8 queries and 8 keys in the first run and 3 heads, 3"):
        first_difference(run(loaded("gpt")), longer)
    with pytest.raises(ValueError, match="2 and 3 attention layers"):
        first_difference(run(loaded("gpt")), hub_models.traced(hub_models.loaded("gpt2")))
    own = loaded("gpt")
    module = Transformer(replace(own.config, d_model=2 * own.config.d_model)).eval()
    with pytest.raises(
        ValueError, match="vectors have 24 numbers in the first run and 48 in the second"
    ):
        first_difference(run(own), run(Model(own.name, module, own.tokenizer, own.device)))
