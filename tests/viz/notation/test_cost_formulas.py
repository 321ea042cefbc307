"""The formulas of what a pass costs, read as arithmetic and held against the counts beside them."""

import re
from dataclasses import replace

from torch import nn

from model import Model
from model.analysis.cost.cost import flops_by_part, key_value_cache, memory
from model.analysis.cost.operations import Lengths, operations
from model.nn.config import TransformerConfig
from tests.cases import cases
from tests.model import hub_models, tiny
from tests.model.tiny import is_product
from viz.views.cost import formulas
from viz.views.cost.choice import PRESETS, ChosenSizes, resized
from viz.views.cost.views import doubled, formula_of, what_adds

MODELS = ("gpt", "llama-grouped", "qwen3", "bert", "attention-only", "translator")
LENGTHS = Lengths(2, 7, 5)


def opened(name: str) -> Model:
    families = {"llama-grouped": "llama", "qwen3": "qwen3"}
    return hub_models.loaded(families[name]) if name in families else tiny.loaded(name)


def terms(latex: str, config: TransformerConfig) -> dict[str, int]:
    """The underbraced terms of a formula by their names, with the sizes put in."""
    layers = config.decoder_layers or config.encoder_layers
    sizes = {
        "V": config.d_vocab, "d": config.d_model, "h": config.heads, "g": config.key_heads,
        "d_k": config.head_width, "d_ff": config.d_mlp, "n": LENGTHS.tokens, "m": LENGTHS.target,
        "L": layers, "L_e": config.encoder_layers, "L_d": config.decoder_layers, "B": LENGTHS.batch,
    }  # fmt: skip
    plain = latex.replace(r"d_{\text{ff}}", "d_ff")
    found = re.findall(r"\\underbrace\{([^{}]*)\}_\{(?:\\text\{([^{}]*)\}|([^{}]*))\}", plain)
    return {
        name or other: eval(_python(term), {"__builtins__": {}}, sizes)
        for term, name, other in reversed(found)  # of two stacks, the first one's term stays
    }


def _python(term: str) -> str:
    words = term.replace(r"\,", " ").replace("^2", "**2")
    spaced = re.sub(r"(?<=[\w)])\s+(?=[\w(])", " * ", words)
    return re.sub(r"\b([VLB]) ([dn])\b", r"\1*\2", spaced)


@cases("name", MODELS)
def test_the_matrices_of_the_formula_are_those_of_the_module(name) -> None:
    model = opened(name)
    config = model.config
    found = terms(formulas.parameters(config), config)
    matrices = {
        path: part.weight.numel()
        for path, part in model.module.named_modules()
        if isinstance(part, nn.Linear)
    }
    first = {path: count for path, count in matrices.items() if ".0." in path}

    def of(*words: str) -> int:
        return sum(n for path, n in first.items() if any(word in path for word in words))

    stacks = bool(config.encoder_layers) + bool(config.decoder_layers)
    assert found["attention"] * stacks == of("self_attention", "self_attn")
    assert found.get("feed-forward", 0) * stacks == of("feed_forward", "mlp")
    assert found.get("cross-attention", 0) == of("cross_attention")
    assert found["tokens"] == config.d_vocab * config.d_model
    assert ("output" in found) == (not config.tied and config.shape != "encoder")


@cases("name", MODELS)
def test_the_operations_of_the_formula_are_those_counted(name) -> None:
    config = opened(name).config
    one = replace(config, encoder_layers=bool(config.encoder_layers) * 1,
                  decoder_layers=bool(config.decoder_layers) * 1)  # fmt: skip
    single = replace(
        LENGTHS, batch=1, target=LENGTHS.target if config.shape == "encoder-decoder" else 0
    )
    found = terms(formulas.operations(config), config)
    stack = "encoder" if config.encoder_layers else "decoder"
    steps = [
        step
        for step in operations(one, single)
        if step.place.startswith(stack) and is_product(step)
    ]
    for part in ("projections", "feed-forward"):
        assert found.get(part, 0) == sum(step.flops for step in steps if step.part == part)
    assert found[r"QK^\top,\ AV"] == sum(step.flops for step in steps if step.part == "pairs")
    assert found.get("logits", 0) == flops_by_part(one, single).get("output", 0)
    if config.shape == "encoder-decoder":
        across = [step for step in operations(one, single) if step.place == "decoder.cross"]
        assert found["cross-attention"] == sum(step.flops for step in across if is_product(step))


@cases("name", MODELS)
def test_the_memory_of_the_formula_is_that_counted(name) -> None:
    config = opened(name).config
    lengths = LENGTHS if config.shape == "encoder-decoder" else replace(LENGTHS, target=0)
    found = terms(formulas.memory(config), config)
    assert found["scores, scaled, weights"] == memory(config, lengths).matrices
    assert found.get("key–value cache", 0) == key_value_cache(config, lengths)


@cases("name", MODELS)
def test_what_adds_parameters_is_what_changes_their_number(name) -> None:
    config = opened(name).config
    weights = memory(config, LENGTHS).weights
    first, *_ = what_adds(config)
    others = {
        "heads": replace(config, heads=2 * config.heads),
        "length": replace(config, n_ctx=2 * config.n_ctx),
        "dropout": replace(config, dropout=0.5),
    }
    for word, changed in others.items():
        assert (memory(changed, LENGTHS).weights == weights) == (word in first.lower())


@cases("name", MODELS)
def test_twice_the_length_is_said_as_it_is_counted(name) -> None:
    config = replace(opened(name).config, n_ctx=64)
    lengths = Lengths(1, 4, 3 if config.shape == "encoder-decoder" else 0)
    twice = resized(ChosenSizes(config, lengths), 8)
    assert twice.lengths.target == 2 * lengths.target
    said = doubled(memory(config, lengths), memory(twice.config, twice.lengths))
    assert "matrices × 4," in said
    assert "results × 2," in said
    assert "parameters × 1." in said


def test_a_text_longer_than_a_learned_table_adds_to_the_weights() -> None:
    sizes = PRESETS["GPT-2 small"]
    twice = resized(sizes, 2_048)
    once = memory(sizes.config, sizes.lengths)
    assert "parameters × 1.006." in doubled(once, memory(twice.config, twice.lengths))


def test_the_walk_names_the_factor_that_the_model_really_has() -> None:
    config = tiny.loaded("gpt").config
    (scaled,) = (step for step in operations(config, LENGTHS) if step.name == "Scaled")
    own = {"decoder.self": 1 / config.head_width**0.5}
    assert formula_of(scaled, own, config.head_width) == "scores / √dₖ, masked"
    assert formula_of(scaled, {"decoder.self": 1.0}, config.head_width) == "scores × 1, masked"
    assert formula_of(scaled, {"decoder.self": 0.25}, 64) == "scores × 0.25, masked"
    assert formula_of(scaled, {}, config.head_width) == scaled.formula
