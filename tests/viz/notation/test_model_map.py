"""The map of a model has the blocks that its module has, in the order in which they run."""

from dataclasses import replace

from model import models
from model.nn.config import TransformerConfig
from tests.cases import cases
from tests.model import hub_models
from tests.model.hub_models import TEXT
from tests.model.tiny import loaded
from viz.notation.model_map import Rail, rails

PRE_NORM = ["norm", "attention", "add", "norm", "feed_forward", "add"]
POST_NORM = ["attention", "add", "norm", "feed_forward", "add", "norm"]
SMALL = TransformerConfig("decoder", 10, 8, 4, 2, decoder_layers=3, d_mlp=8)


def kinds(rail: Rail) -> tuple[list[str], list[str], list[str]]:
    return tuple([block.kind for block in part] for part in (rail.before, rail.layer, rail.after))


def test_a_decoder_with_the_norm_first():
    (rail,) = rails(loaded("house-gpt").config)
    assert kinds(rail) == (
        ["tokens", "vectors", "positions"],
        PRE_NORM,
        ["norm", "logits", "next_token"],
    )
    assert (rail.stack, rail.layers) == ("decoder", 4)


def test_attention_only():
    (rail,) = rails(loaded("induction").config)
    assert kinds(rail)[1] == ["norm", "attention", "add"]


def test_an_encoder_ends_in_vectors_and_adds_a_norm_after_each_sum():
    (rail,) = rails(loaded("minilm").config)
    assert kinds(rail) == (["tokens", "vectors", "positions", "norm"], POST_NORM, ["vectors"])


def test_turned_positions_are_no_block_and_stand_in_the_formula_of_attention():
    (rail,) = rails(loaded("llama").config)
    assert kinds(rail)[0] == ["tokens", "vectors"]
    attention = next(block for block in rail.layer if block.kind == "attention")
    assert "rotated by position" in attention.formula
    assert {block.name for block in rail.blocks if block.kind == "norm"} == {"RMS norm"}


def test_an_encoder_decoder_has_two_lines_and_the_second_reads_the_first():
    encoder, decoder = rails(loaded("translate-en-fr").config)
    assert encoder.after[-1].name == "memory"
    assert [kind for kind in kinds(decoder)[1] if kind != "norm"] == [
        *("attention", "add", "cross", "add", "feed_forward", "add")
    ]
    assert "cross" not in kinds(encoder)[1]


def test_parallel_blocks_share_one_sum():
    (rail,) = rails(replace(SMALL, parallel=True))
    assert kinds(rail)[1] == ["norm", "attention", "norm", "feed_forward", "add"]
    (shared,) = rails(replace(SMALL, parallel=True, shared_norm=True))
    assert kinds(shared)[1] == ["norm", "attention", "feed_forward", "add"]
    assert "f(x) + g(x)" in rail.layer[-1].formula


@cases(
    "name, text",
    [
        ("house-gpt", "the cat sat"),
        ("induction", "q f m"),
        ("minilm", "the cat sat"),
        ("translate-en-fr", "the black cat sleeps"),
        ("gpt_neox", TEXT),  # parallel blocks with a norm each
    ],
)
def test_as_many_norms_and_attentions_as_the_module_runs(name, text) -> None:
    model = loaded(name) if name in models else hub_models.loaded(name)
    trace = model.trace(text)
    drawn = [
        block.kind
        for rail in rails(model.config)
        for block in (*rail.before, *rail.layer * rail.layers, *rail.after)
    ]
    assert drawn.count("norm") == len(trace.norms)
    assert drawn.count("attention") + drawn.count("cross") == len(trace.attention)
