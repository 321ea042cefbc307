"""A head's matrices over a vocabulary, against plain PyTorch on the model's own weights."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, rms_norm

from model import Model, Trace
from model.analysis.attribution.head_matrices import (
    Factors,
    compositions,
    compositions_of,
    copying_score,
    head_matrices,
    looking,
    scores_check,
    singular_values,
    writing,
)
from model.analysis.heads.statistics import heads_of
from model.arithmetic.composition import composition
from model.nn.attention import rotate
from model.nn.transformer import Transformer
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import loaded, run

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
NAME, HEAD = "decoder.1.self", 1


def normed(norm: torch.nn.Module, x: Tensor) -> Tensor:
    """A norm of a layer with its γ and without its β."""
    weights = dict(norm.named_parameters(recurse=False))
    gamma = weights.get("gamma", weights.get("weight"))
    if {"beta", "bias"} & set(weights):
        return layer_norm(x, x.shape[-1:], gamma, None, 1e-5)
    return rms_norm(x, x.shape[-1:], gamma, getattr(norm, "epsilon", 1e-6))


def rows(weight: Tensor, heads: int, width: int) -> Tensor:
    """The rows of the head in a map; several heads may share them."""
    start = HEAD * (len(weight) // width) // heads * width
    return weight[start : start + width]


def parts(model: Model) -> tuple[torch.nn.Module, torch.nn.Module, list[Tensor], Tensor, Tensor]:
    """The second layer's norm before attention, the last norm, the weights of queries, keys, values and
    outputs, the token table and the output matrix."""
    module = model.module
    if isinstance(module, Transformer):
        block, last = module.decoder.blocks[1], module.decoder.final_norm
        attention, names = block.self_attention, ("query", "key", "value", "output")
        table = module.embedding.tokens.weight
        output, first = table if module.output is None else module.output.weight, block.self_norm
    else:
        root = next(one for one in module.modules() if type(one).__name__ == "LlamaForCausalLM")
        block, last = root.model.layers[1], root.model.norm
        attention, names = block.self_attn, ("q_proj", "k_proj", "v_proj", "o_proj")
        first, table, output = (
            block.input_layernorm,
            root.model.embed_tokens.weight,
            root.lm_head.weight,
        )
    assert last is not None
    return first, last, [getattr(attention, name).weight for name in names], table, output


@cases("name, whole", product(["gpt", "llama", "attention-only", "grouped keys"], [False, True]))
def test_both_matrices_are_those_of_plain_pytorch(name, whole) -> None:
    grouped = name == "grouped keys"
    model = hub_models.loaded("llama") if grouped else loaded(name)
    assert model.config.groups_keys == grouped
    trace = model.trace(hub_models.TEXT) if grouped else run(model)
    first, last, weights, table, output = parts(model)
    heads, width = model.config.heads, model.config.head_width
    made = head_matrices(model, trace, NAME, HEAD)
    ids = torch.arange(len(table)) if whole else torch.tensor([t.id for t in trace.tokens])
    read = normed(first, table[ids])
    query, key, value = (read @ rows(weight, heads, width).T for weight in weights[:3])
    np.testing.assert_allclose(
        looking(model, trace, made, whole=whole).product,
        (query @ key.T / width**0.5).numpy(),
        **CLOSE,
    )
    through = value @ weights[3][:, HEAD * width : (HEAD + 1) * width].T
    through = (
        through - through.mean(-1, keepdim=True) if (model.config.norm == "layer") else through
    )
    gamma = next(iter(last.parameters()))
    np.testing.assert_allclose(
        writing(model, trace, made, whole=whole).product,
        ((through * gamma) @ output[ids].T).numpy(),
        **CLOSE,
    )


def test_a_key_some_tokens_before_is_turned_by_as_many() -> None:
    model = loaded("llama")
    trace = run(model)
    first, _, weights, table, _ = parts(model)
    read = normed(first, table[[token.id for token in trace.tokens]])
    width = model.config.head_width
    query, key = (read @ rows(weight, model.config.heads, width).T for weight in weights[:2])
    angles = model.module.embedding.angles(len(trace.tokens), torch.device("cpu"))
    made = head_matrices(model, trace, NAME, HEAD)
    assert made.turns
    for distance in (0, 3):
        turned = rotate(query[None, None], angles[[distance] * len(query)])[0, 0]
        np.testing.assert_allclose(
            looking(model, trace, made, distance=distance).product,
            (turned @ key.T / width**0.5).numpy(),
            **CLOSE,
        )


def every_head(model: Model, trace: Trace) -> None:
    """Scores, values and outputs of every head follow from its matrices and the recorded states."""
    for attention in trace.attention:
        for head in range(attention.heads):
            made = head_matrices(model, trace, attention.name, head)
            largest = float(np.abs(attention.scores(head)).max())
            assert scores_check(model, trace, made) < 1e-4 * max(largest, 1.0)


def test_the_maps_give_the_recorded_scores_in_every_head(model: Model, trace: Trace) -> None:
    every_head(model, trace)


@pytest.mark.slow
@cases("family", hub_models.FAMILIES)
def test_the_maps_give_the_recorded_scores_in_every_family_of_the_hub(family) -> None:
    model = hub_models.loaded(family)
    trace = hub_models.traced(model)
    normed = any(attention.projection.normed for attention in trace.attention)
    if normed or family == "modernbert":  # whose layers turn their vectors by two tables
        with pytest.raises(ValueError, match="no single matrix" if normed else "rotates"):
            every_head(model, trace)
    else:
        every_head(model, trace)


def test_singular_values_are_those_of_the_whole_matrices() -> None:
    model = loaded("gpt")
    made = head_matrices(model, run(model), NAME, HEAD)
    for found, whole in zip(
        singular_values(made), (made.query.T @ made.key, made.value.T @ made.output.T), strict=True
    ):
        expected = np.linalg.svd(whole, compute_uv=False)
        np.testing.assert_allclose(found, expected[: len(found)], rtol=1e-9)
        assert expected[len(found) :].max() < 1e-9


def test_the_copying_score_is_that_of_the_eigenvalues_over_the_vocabulary() -> None:
    model = loaded("gpt")
    trace = run(model)
    factors = writing(model, trace, head_matrices(model, trace, NAME, HEAD), whole=True)
    values = torch.linalg.eigvals(torch.tensor(factors.product))
    expected = float(values.real.sum() / values.abs().sum())
    assert copying_score(factors) == pytest.approx(expected, abs=1e-6)
    same = np.random.default_rng(0).normal(size=(30, 4))
    assert copying_score(Factors(same, same)) == pytest.approx(1)
    assert copying_score(Factors(same, -same)) == pytest.approx(-1)


def test_the_largest_entries_are_found_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.analysis.attribution.head_matrices.BLOCK", 100)
    generator = np.random.default_rng(4)
    factors = Factors(generator.normal(size=(33, 3)), generator.normal(size=(41, 3)))
    pairs = factors.largest(7)
    order = np.argsort(-factors.product, axis=None)[:7]
    expected = list(zip(*np.unravel_index(order, (33, 41)), strict=True))
    assert [(pair.row, pair.column) for pair in pairs] == expected
    assert [pair.value for pair in pairs] == pytest.approx(
        np.sort(factors.product.ravel())[::-1][:7]
    )


def test_a_head_of_the_encoder_writes_to_no_logit() -> None:
    translator, encoder = loaded("translator"), loaded("bert")
    for model, said in ((translator, "the encoder's stream"), (encoder, "is an encoder")):
        trace = run(model)
        with pytest.raises(ValueError, match=said):
            writing(model, trace, head_matrices(model, trace, "encoder.0.self", 0))


@cases("name", ["gpt", "translator", "bert"])
def test_composition_is_that_of_the_whole_matrices(name) -> None:
    model = loaded(name)
    trace = run(model)
    heads = [head_matrices(model, trace, *head) for head in heads_of(trace.attention)]
    by_head = {one.head: one for one in heads}
    found = list(compositions(heads))
    for one in found:
        earlier, later = by_head[one.earlier], by_head[one.later]
        looks = later.query.T @ later.key
        read = {"Q": looks, "K": looks.T, "V": later.value.T @ later.output.T}[one.reads]
        written = earlier.value.T @ earlier.output.T
        assert one.ratio == pytest.approx(composition(written, read), rel=1e-6)
    pairs = {(one.earlier[0], one.later[0], one.reads) for one in found}
    if name == "translator":
        assert ("encoder.0.self", "decoder.0.cross", "K") in pairs
        assert ("encoder.0.self", "decoder.0.cross", "Q") not in pairs
        assert ("decoder.0.self", "decoder.0.cross", "Q") in pairs
        assert ("decoder.0.self", "decoder.0.cross", "V") not in pairs
    middle = heads[len(heads) // 2]
    theirs = [one for one in found if middle.head in (one.earlier, one.later)]
    assert list(compositions_of(middle, heads)) == theirs


def test_in_the_model_that_copies_the_induction_heads_read_the_previous_token_head_in_keys() -> (
    None
):
    model = loaded("induction")
    trace = model.trace("q f m b t x k q f m")
    heads = [head_matrices(model, trace, *head) for head in heads_of(trace.attention)]
    by_keys = [one for one in compositions(heads) if one.reads == "K"]
    for later in range(4):
        most = max((one for one in by_keys if one.later[1] == later), key=lambda one: one.ratio)
        assert most.earlier == ("decoder.0.self", 3)
