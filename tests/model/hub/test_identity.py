"""Models of Hugging Face's library: the same weights, logits and states as with eager attention."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from model import Intervention, Model, Trace, load_model
from model.analysis.heads.statistics import entropy
from model.arithmetic.sizes import parameter_parts
from tests.cases import cases
from tests.model.hub_families import GROUPED
from tests.model.hub_models import (
    FAMILIES,
    REFUSED,
    TARGET,
    TEXT,
    build,
    eager,
    loaded,
    save,
    saved,
)

pytestmark = pytest.mark.models(FAMILIES, of=lambda family, device: loaded(family))


def run(model: Model, intervention: Intervention | None = None, **kind: Any) -> Trace:
    target = TARGET if model.config.shape == "encoder-decoder" else None
    return model.trace(TEXT, target, intervention or Intervention(), **kind)


def test_states_and_their_reading_as_logits_are_those_of_eager_attention(model: Model) -> None:
    """Its weights and logits are held against the library's by the table of families."""
    trace = run(model, record="full")
    if trace.logits is None:
        last = eager(model, trace).hidden_states[-1]
        final = [norm.output for norm in trace.norms if norm.name == "encoder.final.norm"]
        ended = final[0] if final else trace.residual["encoder"][-1]
        np.testing.assert_allclose(ended, last[0], atol=1e-4)
    else:
        lens = model.unembed(trace.residual["decoder"][-1])
        np.testing.assert_allclose(lens, trace.logits, atol=1e-3)
    assert trace.check() < 1e-4


def test_an_explicit_pass_gives_the_same_weights(model: Model) -> None:
    fused, explicit = run(model), run(model, explicit=True)
    for one, other in zip(fused.attention, explicit.attention, strict=True):
        for head in range(one.heads):
            np.testing.assert_allclose(one.weights(head), other.weights(head), atol=1e-5)


def test_a_window_shorter_than_the_text_hides_what_lies_further_back() -> None:
    trace = run(loaded("mistral"))
    mask = trace.attention[0].mask
    assert mask[10].nonzero()[0].tolist() == [7, 8, 9, 10]
    full = run(loaded("llama")).attention[0].mask
    assert full[10].all()


INTERVENTIONS = {
    "scale": Intervention(scale=0.5),
    "mask": Intervention(mask="none"),
    "hidden": Intervention(hidden=frozenset({2})),
    "fill": Intervention(hidden=frozenset({2}), fill=0.0),
    "positions": Intervention(positions=False, bias=False),
    "dropout": Intervention(dropout=0.5),
}


@cases("intervention", INTERVENTIONS)
def test_every_intervention_does_what_it_says_and_is_gone_afterwards(
    intervention, model: Model
) -> None:
    before, changed = run(model), run(model, INTERVENTIONS[intervention])
    after = run(model)
    for one, other in zip(before.attention, after.attention, strict=True):
        np.testing.assert_array_equal(one.output, other.output)
    first, second = before.attention[0], changed.attention[0]
    causal = [one for one in changed.attention if one.kind == "causal"]
    match intervention:
        case "scale":
            assert second.scale == 0.5
            np.testing.assert_array_equal(second.query, first.query)
        case "mask" if causal:
            assert causal[0].mask is None
            assert (causal[0].weights(0) > 0).all()
        case "mask":  # an encoder has no look-ahead mask to lift
            assert model.config.shape == "encoder"
            np.testing.assert_array_equal(second.output, first.output)
        case "hidden":
            assert not second.weights(1)[:, 2].any()
            assert np.abs(second.weights(1)[-1].sum() - 1) < 1e-5
        case "fill":
            np.testing.assert_allclose(second.masked(0)[-1, 2], 0.0)
        case "dropout":
            assert not np.array_equal(second.dropped(0), second.weights(0))
            np.testing.assert_allclose(second.weights(0), first.weights(0), atol=1e-6)
    assert not np.array_equal(
        before.residual[before.source][-1], changed.residual[changed.source][-1]
    ) or (intervention == "mask")


def test_without_positions_equal_tokens_look_alike(model: Model) -> None:
    trace = run(model, Intervention(positions=False, bias=False, mask="none"), record="full")
    ids = [token.id for token in trace.tokens]
    same = [place for place, id_ in enumerate(ids) if id_ == ids[1]]
    assert len(same) > 1
    state = trace.residual[trace.source][1]
    np.testing.assert_allclose(state[same[0]], state[same[1]], atol=1e-4)
    if trace.positions is not None:
        assert not trace.positions.any()


def test_an_ablated_head_writes_nothing_and_the_others_are_left_alone(model: Model) -> None:
    name = model.attention_names[0]
    before, after = run(model), run(model, Intervention(ablated=frozenset({(name, 3)})))
    np.testing.assert_array_equal(before.find(name).output, after.find(name).output)
    assert not model.head_output(after.find(name), 3).any()
    source = before.source
    moved = before.residual[source][1] - after.residual[source][1]
    if model.config.norm_place == "pre":
        np.testing.assert_allclose(moved, model.head_output(before.find(name), 3), atol=1e-4)
    else:
        assert np.abs(moved).max() > 1e-4


def test_a_cut_edge_and_a_causal_mask_hold_where_they_are_named(model: Model) -> None:
    first, *_, last = model.attention_names
    only = frozenset({first})
    cut = run(model, Intervention(blocked=frozenset({(5, 3)}), only=only))
    assert cut.find(first).weights(0)[5, 3] == 0
    causal = run(model, Intervention(mask="causal", only=only)).find(first)
    assert not np.triu(causal.weights(0), 1).any()
    before = run(model)
    unchanged = cut.find(last).mask
    np.testing.assert_array_equal(
        np.array(0) if unchanged is None else unchanged,
        np.array(0) if before.find(last).mask is None else before.find(last).mask,
    )


def test_records_hold_every_token_of_both_stacks(model: Model) -> None:
    trace = run(model, record="full")
    for stack, states in trace.residual.items():
        tokens, kinds = len(trace.tokens_of(stack)), 3 if trace.target_tokens else 2
        layers = getattr(model.config, f"{stack}_layers")
        per_layer = kinds if stack == "decoder" else 2
        assert len(states) == layers * per_layer + 1
        assert all(state.shape == (tokens, 48) for state in states)
    assert len(trace.feed_forward) == model.config.encoder_layers + model.config.decoder_layers
    assert all(np.isfinite(entropy(a.weights(0))).all() for a in trace.attention)


@cases("family", REFUSED)
def test_what_cannot_be_shown_truly_is_refused_with_its_reason(family) -> None:
    with pytest.raises(ValueError, match=f"cannot be shown: .*{REFUSED[family][3]}"):
        load_model(str(saved(family)), device="cpu")


def test_greedy_text_is_what_the_library_generates() -> None:
    for family in ("llama", "bart", "marian"):
        model = loaded(family)
        made = model.generate(TEXT, limit=6)
        kinds = transformers.AutoModelForCausalLM, transformers.AutoModelForSeq2SeqLM
        stock = kinds[model.config.shape != "decoder"].from_pretrained(model.name).eval()
        ids = torch.tensor([[token.id for token in model.tokens(TEXT)]])
        theirs = stock.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, num_beams=1
        )[0]
        read = ids.shape[1] if model.config.shape == "decoder" else 1
        assert [token.id for token in made] == theirs[read:].tolist(), family


def test_two_visitors_with_other_interventions_on_one_model_do_not_see_each_other() -> None:
    model = loaded("bart")
    interventions = [Intervention(), Intervention(positions=False), Intervention(scale=1.0)] * 6
    alone = {
        intervention: run(model, intervention, record="full") for intervention in set(interventions)
    }
    with ThreadPoolExecutor(max_workers=6) as pool:
        together = list(
            pool.map(lambda intervention: run(model, intervention, record="full"), interventions)
        )
    for intervention, trace in zip(interventions, together, strict=True):
        expected = alone[intervention]
        assert len(trace.attention) == len(expected.attention)
        assert len(trace.norms) == len(expected.norms)
        for stack, states in expected.residual.items():
            np.testing.assert_allclose(trace.residual[stack][-1], states[-1], atol=1e-5)


@cases("family", FAMILIES)
def test_the_listed_parameters_are_all_that_the_tensors_hold(family) -> None:
    model = loaded(family)
    listed = parameter_parts(model.config) | model.module.extra_parameters()
    assert sum(listed.values()) == model.parameter_count


def test_what_does_not_follow_from_the_sizes_is_named() -> None:
    pooler = 48 * 48 + 48
    for family, beyond in {
        "gpt2": {},
        "bert": {"pooler.dense, not used here": pooler},
        "roberta": {"Positions without a token": 48, "pooler.dense, not used here": pooler},
        "phi": {"Bias of the output": 24},
        "opt": {"Positions without a token": 2 * 48},
        "bart": {
            "Positions without a token": 2 * 2 * 48,
            "Position embedding of the decoder": 64 * 48,
            "Norm after the embedding of the decoder": 2 * 48,
        },
        "marian": {
            "Table of sines of the encoder": 64 * 48,
            "Table of sines of the decoder": 64 * 48,
        },
    }.items():
        assert loaded(family).module.extra_parameters() == beyond, family


@cases("family, pairs, width", [
    ("llama", "halves", 8),
    ("qwen3", "halves", 16),
    ("phi", "halves", 4),
    ("ernie", "neighbours", 8),
    ("gptj", "neighbours", 4),
    ("codegen", "neighbours", 4),
])  # fmt: skip
def test_which_dimensions_turn_together_is_told_from_the_pass(family, pairs, width) -> None:
    config = loaded(family).config
    assert (config.rotary_pairs, config.rotary_dim) == (pairs, width)


def test_layers_that_attend_several_times_are_refused_for_that(tmp_path: Path) -> None:
    """Differential attention: two maps of weights in each layer."""
    folder = save(tmp_path, build("DiffLlamaForCausalLM", "DiffLlamaConfig", GROUPED), adds=False)
    with pytest.raises(ValueError, match="its 3 attention layers attend 6 times"):
        load_model(str(folder), device="cpu")
