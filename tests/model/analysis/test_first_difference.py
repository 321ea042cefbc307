"""Where two runs part: each planted fault is found at its stage, with its cause or with none and never with
another one; what was not compared is told; equal computations, ours and the library's, have no difference."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from tests.cases import cases
from tests.model import hub_models
from tests.model.analysis.faulty_modules import IDS, KINDS, Kind, small
from tests.model.capture.own_modules import Heads, OwnAttention, capped, sinks
from tests.model.hub_models import FAMILIES, eager
from tests.model.tiny import TINY, loaded, run

Change = Callable[[Transformer], None]


def unchanged(module: Transformer) -> None:
    """Nothing is planted."""


def copied(name: str, change: Change = unchanged, **config: Any) -> Model:
    """A copy of a tiny model with the same weights, one thing changed."""
    own = loaded(name)
    module = Transformer(replace(own.config, **config))
    weights = {key: weight.clone() for key, weight in own.module.state_dict().items()}
    module.load_state_dict(weights, strict=False)  # an RMS norm has no β
    with torch.no_grad():
        change(module)
    return Model(own.name, module.eval(), own.tokenizer, own.device)


def faulty(name: str, change: Change = unchanged, **config: Any) -> Trace:
    return run(copied(name, change, **config), record="full")


@cases("name", TINY)
def test_a_copy_with_the_same_weights_has_no_difference(name) -> None:
    torch.manual_seed(0)
    own = run(loaded(name), record="full")
    assert first_difference(own, faulty(name)) is None
    assert first_difference(own, run(loaded(name), record="full", explicit=True)) is None


Expected = tuple[str, str, str | None]  # the stage, its place in the stack, and words of the cause
FEED, NORM, Q, MAP = "1.feed_forward", "1.self.norm", "1.self", "bias of"
# By the fault: of which modules it is told, and how. None: the numbers of two runs alone do not tell it.
FAULTS: dict[str, tuple[tuple[Kind, ...], Expected]] = {
    "not scaled": (KINDS, ("scaled", Q, "not divided")),
    "scaled twice": (KINDS, ("scaled", Q, "√d_k twice")),
    "mask of the other kind": (("gpt", "llama"), ("mask", Q, "has no mask")),
    "mask shifted": (("gpt", "llama"), ("mask", Q, "shows the next")),
    "positions shifted": (("gpt", "bert"), ("embedding", "embedding", None)),
    "no positions": (("gpt", "bert"), ("embedding", "embedding", None)),
    "no rotary positions": (("llama",), ("rotary", Q, "no rotary positions")),
    "rotary base": (("llama",), ("rotary", Q, "500,000 instead of 10,000")),
    "rotary base of six digits": (("llama",), ("rotary", Q, "123,456 instead of 10,000")),
    "rotary pairs": (("llama",), ("rotary", Q, "2i and 2i + 1 instead")),
    "rotary positions shifted": (("llama",), ("rotary", Q, "later by one")),
    "values turned": (("llama",), ("value", Q, "turn its values")),
    "norm kind": (("gpt", "bert"), ("norm", NORM, "an RMS norm")),
    "norm gain": (KINDS, ("norm", NORM, "no γ")),
    "norm epsilon": (KINDS, ("norm", NORM, "0.01 instead of 1e-05")),
    "norm place": (("gpt", "llama"), ("norm", "0.self.norm", "after the sub-layer")),
    "W_Q transposed": (KINDS, ("query", Q, None)),
    "no bias": (KINDS, ("query", Q, MAP)),
    "no bias of the output": (KINDS, ("stream", Q, MAP)),
    "bias of the logits": (KINDS, ("logits", "output", MAP)),
    "keys and values exchanged": (KINDS, ("key", Q, "keys and values")),
    "key heads exchanged": (("gpt", "bert"), ("key", Q, "3 2 1 0 instead of 0 1 2 3")),
    "key heads tiled": (("llama",), ("key", Q, "0 1 0 1 instead of 0 0 1 1")),
    "activation": (("gpt", "bert"), ("feed-forward", FEED, "silu instead of gelu")),
    "gate and values exchanged": (("llama",), ("feed-forward", FEED, "the gate and")),
    "parameters rounded": (("llama",), ("embedding", "embedding", "rounded to bfloat16")),
    "precision": (KINDS, ("embedding", "embedding", "computes in bfloat16")),
}  # fmt: skip
OTHERS: dict[
    str, tuple[tuple[Kind, ...], Expected]
] = {  # the same mistakes in modules of another kind
    "mask of the other kind": (("bert",), ("mask", Q, "a look-ahead mask")),
    "norm place": (("bert",), ("norm", "0.self.norm", "before the sub-layer")),
    "norm kind": (("llama",), ("norm", NORM, "a layer norm")),
    "key heads exchanged": (("llama",), ("key", Q, "1 1 0 0 instead of 0 0 1 1")),
    "activation": (("llama",), ("feed-forward", FEED, "gelu instead of silu")),
}
PLANTED_IN_MODULES = [
    (fault, kind, expected)
    for faults in (FAULTS, OTHERS)
    for fault, (kinds, expected) in faults.items()
    for kind in kinds
]


def captured(kind: Kind, fault: str = "", ids: Sequence[int] = IDS) -> Trace:
    return capture(small(kind, fault), torch.tensor([ids]))


@pytest.mark.parametrize(("fault", "kind", "expected"), PLANTED_IN_MODULES)
def test_each_fault_of_a_module_is_found_in_its_layer_with_no_wrong_cause(
    fault: str, kind: Kind, expected: Expected
) -> None:
    parting = first_difference(captured(kind), captured(kind, fault))
    assert parting is not None
    stage, place, words = expected
    stack = "encoder" if kind == "bert" and stage != "logits" else "decoder"
    assert (parting.stage, parting.place) == (stage, f"{stack}.{place}")
    assert (parting.cause is None) == (words is None)
    assert (words or "") in (parting.cause or "")
    assert stage in parting.compared
    assert parting.may_begin_earlier == ("stream" in parting.not_compared)
    gap = np.abs(parting.comparison.second - parting.comparison.first)
    assert parting.difference == gap > parting.comparison.rounding


@pytest.mark.parametrize("kind", KINDS)
def test_two_texts_part_at_the_first_state_of_the_stream(kind: Kind) -> None:
    one = captured(kind)
    assert first_difference(one, captured(kind)) is None
    parting = first_difference(one, captured(kind, ids=IDS[::-1]))
    assert (parting.stage, parting.place) == ("embedding", f"{one.source}.embedding")
    token, dimension = parting.cell
    ours, theirs = (
        one.streams[one.source][0],
        captured(kind, ids=IDS[::-1]).streams[one.source][0],
    )
    assert (parting.first, parting.second) == (ours[token, dimension], theirs[token, dimension])


@pytest.mark.parametrize("kind", KINDS)
def test_a_difference_that_later_stages_inherit_is_rounding_at_none_of_them(kind: Kind) -> None:
    table = precision_by_layer(captured(kind), captured(kind, ids=IDS[::-1]))
    of_vectors = table[table["stage"].isin(["query", "value", "stream", "norm", "logits"])]
    assert of_vectors["beyond"].all()
    assert (of_vectors["rounding"] < of_vectors["difference"] / 100).all()


@pytest.mark.parametrize("kind", KINDS)
def test_below_a_fault_that_was_not_compared_it_says_among_what_it_was_found(kind: Kind) -> None:
    """A stream without a sum is none that `capture` proves: the next layer is only where it is seen."""
    parting = first_difference(captured(kind), captured(kind, "no residual connection"))
    assert (parting.stage, parting.cause) == ("query", None)
    assert {"stream", "norm", "feed-forward"} <= {*parting.not_compared}
    assert not {"stream", "norm", "feed-forward"} & {*parting.compared}
    assert parting.may_begin_earlier
    assert "stream" in parting.sentence.partition("Not compared")[2]


def test_what_is_no_number_differs() -> None:
    trace = captured("gpt")
    first = trace.attention[0]
    output = first.output.copy()
    output[2, 3, 1] = np.nan
    other = replace(trace, attention=(replace(first, output=output), *trace.attention[1:]))
    parting = first_difference(trace, other)
    assert (parting.stage, parting.head, parting.cell) == ("output", 2, (3, 1))
    assert parting.cause is None


def test_equal_attention_alone_is_not_said_to_be_an_equal_run() -> None:
    """The map after the heads is no part of what was compared: it may have another bias."""
    module, other = (small("gpt").blocks[0].attention for _ in range(2))
    torch.nn.init.zeros_(other.out.bias)
    torch.manual_seed(0)
    x = torch.randn(1, 9, 32)
    parting = first_difference(capture(module, x), capture(other, x))
    assert parting.stage is parting.place is parting.cause is parting.difference is None
    assert {"query", "key", "value", "mask", "weights", "output"} <= {*parting.compared}
    assert {"stream", "logits"} <= {*parting.not_compared}


def test_the_same_vector_on_every_token_has_no_cause_where_nobody_knows_what_was_read() -> None:
    """Another β before a map does to queries, keys and values what other biases do."""
    module = small("gpt").blocks[0].attention
    torch.manual_seed(0)
    x = torch.randn(1, 9, 32)
    parting = first_difference(capture(module, x), capture(module, x + 1))
    assert (parting.stage, parting.cause) == ("query", None)
    with torch.no_grad():
        (other := small("gpt").blocks[0].attention).query.bias.zero_()
    parting = first_difference(capture(module, x), capture(other, x))
    assert "bias of" in (parting.cause or "")


def no_bias(which: str) -> Change:
    def change(module: Transformer) -> None:
        getattr(module.attentions()[0], which).bias.zero_()

    return change


def shifted(module: Transformer) -> None:
    positions = module.embedding.positions.weight  # type: ignore[union-attr]
    positions.copy_(positions.roll(-1, 0))


def unplaced(module: Transformer) -> None:
    module.embedding.positions.weight.zero_()  # type: ignore[union-attr]


def transposed(module: Transformer) -> None:
    weight = module.attentions()[-1].query.weight
    weight.copy_(weight.T.clone())


def turned_heads(module: Transformer) -> None:
    attention = module.attentions()[0]
    for numbers in (attention.key.weight, attention.key.bias):
        if numbers is not None:
            numbers.copy_(numbers.unflatten(0, (3, -1)).flip(0).flatten(0, 1))


def bare(module: Transformer) -> None:
    """The first block of the first stack does not add what its attention reads."""
    block = (module.encoder or module.decoder).blocks[0]  # type: ignore[union-attr]
    plain = block._sum

    def sums(x: torch.Tensor, norm: Any, written: torch.Tensor) -> torch.Tensor:
        return plain(x * 0 if norm is block.self_norm else x, norm, written)

    block._sum = sums


def rounded(module: Transformer) -> None:
    module.bfloat16().float()


def drowned(module: Transformer) -> None:
    """The feed-forward of the last layer gets other weights, which no mistake explains."""
    weight = [one for one in module.parameters() if one.ndim == 2][-1]
    weight.copy_(torch.rand_like(weight))


LACKS = "residual connection"
PLANTED: list[tuple[str, Change, dict[str, Any], Expected]] = [
    ("gpt", unchanged, {"epsilon": 1e-3}, ("norm", "decoder.0.self.norm", "0.001 instead of 1e-05")),
    ("llama", unchanged, {"epsilon": 1e-6}, ("norm", "decoder.0.self.norm", "1e-06 instead of 1e-05")),
    ("gpt", unchanged, {"norm": "rms"}, ("norm", "decoder.0.self.norm", "an RMS norm")),
    ("llama", unchanged, {"norm": "layer"}, ("norm", "decoder.0.self.norm", "a layer norm")),
    ("gpt", unchanged, {"norm_place": "post"}, ("norm", "decoder.0.self.norm", "after the sub-layer")),
    ("gpt-post", unchanged, {"norm_place": "pre"}, ("norm", "decoder.0.self.norm", "before the sub-")),
    ("gpt", unchanged, {"activation": "gelu_tanh"}, ("feed-forward", "decoder.0.feed_forward", "gelu tanh")),
    ("llama", unchanged, {"activation": "geglu"}, ("feed-forward", "decoder.0.feed_forward", "gelu")),
    ("translator", unchanged, {"scaled_embedding": False}, ("embedding", "encoder.embedding", None)),
    ("llama", unchanged, {"rotary_base": 5e5}, ("rotary", "decoder.0.self", "500,000 instead of 10,000")),
    ("encoder-rotary", unchanged, {"rotary_base": 2e3}, ("rotary", "encoder.0.self", "base is 2,000")),
    ("translator-rotary", unchanged, {"rotary_base": 7654.0}, ("rotary", "encoder.0.self", "7,654")),
    ("gpt", no_bias("query"), {}, ("query", "decoder.0.self", MAP)),
    ("gpt", no_bias("output"), {}, ("stream", "decoder.0.self", MAP)),
    ("bert", no_bias("output"), {}, ("stream", "encoder.0.self", MAP)),
    ("gpt", shifted, {}, ("positions", "decoder.embedding", "shifted by 1")),
    ("gpt-bytes", shifted, {}, ("positions", "decoder.embedding", "shifted by 1")),
    ("bert", shifted, {}, ("positions", "encoder.embedding", "shifted by 1")),
    ("gpt", transposed, {}, ("query", "decoder.1.self", "transposed")),
    ("llama", transposed, {}, ("query", "decoder.1.self", "transposed")),
    ("bert", transposed, {}, ("query", "encoder.1.self", "transposed")),
    ("gpt", turned_heads, {}, ("key", "decoder.0.self", "2 1 0 instead of 0 1 2")),
    ("gpt", bare, {}, ("stream", "decoder.0.self", LACKS)),
    ("gpt-post", bare, {}, ("stream", "decoder.0.self", LACKS)),
    ("llama", bare, {}, ("stream", "decoder.0.self", LACKS)),
    ("translator", bare, {}, ("stream", "encoder.0.self", LACKS)),
    ("gpt", rounded, {}, ("embedding", "decoder.embedding", "rounded to bfloat16")),
    ("bert", rounded, {}, ("embedding", "encoder.embedding", "rounded to bfloat16")),
    ("gpt", drowned, {}, ("stream", "decoder.1.feed_forward", None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "config", "expected"), PLANTED)
def test_each_fault_of_a_model_is_found_with_no_wrong_cause(
    name: str, change: Change, config: dict[str, Any], expected: Expected
) -> None:
    torch.manual_seed(0)
    own, other = run(loaded(name), record="full"), faulty(name, change, **config)
    parting = first_difference(own, other, model=loaded(name))
    stage, place, words = expected
    assert (parting.stage, parting.place) == (stage, place)
    assert (parting.cause is None) == (words is None)
    assert (words or "") in (parting.cause or "")
    assert (words or "") in parting.sentence


@cases("name, change, cause", [
    ("gpt", shifted, "shifted by 1"),
    ("gpt-bytes", shifted, "shifted by 1"),
    ("gpt", unplaced, "adds no positions"),
])  # fmt: skip
def test_positions_of_a_module_are_told_by_the_tables_of_the_model_that_it_copies(
    name, change, cause
) -> None:
    own = run(loaded(name))
    module = copied(name, change).module
    other = capture(module, torch.tensor([[token.id for token in own.tokens]]))
    parting = first_difference(own, other)
    assert (parting.stage, parting.place) == ("embedding", "decoder.embedding")
    assert cause in (parting.cause or "")


@pytest.mark.parametrize(("written", "stage"), [(capped, "capped"), (sinks, "weights")])
def test_a_cap_or_a_sink_that_is_left_out_is_found(written: Heads, stage: str) -> None:
    def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT / 2).softmax(-1) @ v

    torch.manual_seed(0)
    modules = [OwnAttention(one) for one in (written, plain)]
    modules[1].load_state_dict(modules[0].state_dict())
    x = torch.randn(1, 7, 16)
    parting = first_difference(*(capture(module, x) for module in modules))
    assert (parting.stage, parting.place) == (stage, "encoder.0.self")


def test_a_softmax_over_the_wrong_axis_is_found_in_its_weights() -> None:
    trace = run(loaded("gpt"))
    scores = torch.tensor(np.stack([trace.attention[0].masked(head) for head in range(3)]))
    rest = [torch.tensor(one.weights())[None] for one in trace.attention[1:]]
    parting = first_difference(trace, read((scores.softmax(1)[None].nan_to_num(), *rest)))
    assert (parting.stage, parting.place) == ("weights", "decoder.0.self")
    assert {"query", "stream", "logits"} <= {*parting.not_compared}


def test_a_head_that_is_left_out_is_the_first_difference() -> None:
    model = loaded("gpt")
    ablated = Intervention(ablated=frozenset({("decoder.1.self", 2)}))
    parting = first_difference(run(model), run(model, ablated))
    assert (parting.stage, parting.place, parting.head) == ("output", "decoder.1.self", 2)


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
@cases("family", FAMILIES)
def test_our_pass_has_no_difference_from_the_librarys(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model, record="full")
    alone = first_difference(trace, read(eager(model, trace)))  # weights alone
    assert alone.stage is None
    assert {"query", "stream"} <= {*alone.not_compared}
    module, fed = stock(model, trace)
    with reference_mended(module):
        other = capture(module, **fed)
    parting = first_difference(trace, other)
    assert parting is None or parting.stage is None
    lacks = {"stream", *(["logits"] if trace.prediction is not None else [])}
    is_whole = not lacks & {*trace.unproven, *other.unproven}
    assert (parting is None) == is_whole
    assert first_difference(trace, hub_models.traced(model, record="full", explicit=True)) is None


def test_the_librarys_other_biases_of_falcon_are_found() -> None:
    """Its eager attention adds them in the attention and in the mask; its fused one, and ours, once."""
    model = hub_models.loaded("falcon, ALiBi")
    trace = hub_models.traced(model)
    module, fed = stock(model, trace)
    parting = first_difference(trace, capture(module, **fed))
    assert (parting.stage, parting.place) == ("biased", "decoder.0.self")


@cases("kind", ["bfloat16", "float16"])
def test_a_run_in_half_precision_differs_by_no_more_than_that_explains(
    kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hub_models.loaded("llama")
    monkeypatch.setenv("ATTENTION_DTYPE", kind)
    half = hub_models.load_model(str(hub_models.saved("llama")), device="cpu")
    exact, rounded = (hub_models.traced(one, record="full") for one in (whole, half))
    assert first_difference(exact, rounded) is None
    silent = first_difference(exact, replace(rounded, device="the CPU"))  # it says nothing of that
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
