"""The head picker is told of every head of the run, and its maps are the run's own weights."""

from dataclasses import replace

import numpy as np

from model.nn.intervention import Intervention
from model.serving.engine import Request
from tests.cases import cases
from viz.explorer.heads import in_view
from viz.shell.head_picker import message
from viz.state.look import traced


@cases("model, text, titles", [
    ("house-gpt", "the cat sat", ["Decoder self-attention"]),
    ("translate-en-fr", "the black cat sleeps", ["Encoder self-attention", "Decoder self-attention",
        "Cross-attention"]),
])  # fmt: skip
def test_every_head_stands_in_its_family(model, text, titles) -> None:
    request = Request(model, text)
    said = message(request, ("decoder.1.self", 2), ())
    assert [family["title"] for family in said["families"]] == titles
    layers = {layer["name"] for family in said["families"] for layer in family["layers"]}
    assert layers == {attention.name for attention in traced(request).attention}


def test_a_short_text_has_its_weights_cell_by_cell_and_its_mask() -> None:
    request = Request("house-gpt", "the cat sat on the mat")
    attention = traced(request).find("decoder.2.self")
    (family,) = message(request, ("decoder.0.self", 0), (attention.name,))["families"]
    assert set(family["maps"]) == {attention.name}
    drawn = family["maps"][attention.name][5]
    allowed = np.tri(len(drawn), dtype=bool)
    np.testing.assert_allclose(
        drawn[allowed] / 250, attention.weights(5)[allowed], atol=1 / 500 + 1e-6
    )
    assert (drawn[~allowed] == 255).all()


def test_a_head_that_is_left_out_is_named() -> None:
    left_out = Intervention(ablated=frozenset({("decoder.1.self", 3)}))
    request = Request("house-gpt", "the cat sat", intervention=left_out)
    (family,) = message(request, ("decoder.0.self", 0), ())["families"]
    assert family["zeroed"] == [["decoder.1.self", 3]]
    assert "maps" not in family


def test_of_many_heads_the_maps_of_one_layer_are_made() -> None:
    few = traced(Request("house-gpt", "the cat sat"))
    assert in_view(few, "decoder.1.self") == tuple(one.name for one in few.attention)
    many = replace(few, attention=tuple(replace(one, heads=32) for one in few.attention))
    assert in_view(many, "decoder.1.self") == ("decoder.1.self",)
