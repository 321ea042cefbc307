"""The head picker is told of every head of the run, and its maps are the run's own weights."""

import numpy as np

from model.nn.intervention import Intervention
from model.serving.engine import Request
from tests.cases import cases
from viz.shell.head_picker import message
from viz.state.look import traced


@cases("model, text, titles", [
    ("house-gpt", "the cat sat", ["Decoder self-attention"]),
    ("translate-en-fr", "the black cat sleeps", ["Encoder self-attention", "Decoder self-attention",
        "Cross-attention"]),
])  # fmt: skip
def test_every_head_stands_in_its_family(model, text, titles) -> None:
    request = Request(model, text)
    said = message(request, ("decoder.1.self", 2), has_maps=True)
    assert [family["title"] for family in said["families"]] == titles
    layers = {layer["name"] for family in said["families"] for layer in family["layers"]}
    assert layers == {attention.name for attention in traced(request).attention}


def test_a_short_text_has_its_weights_cell_by_cell_and_its_mask() -> None:
    request = Request("house-gpt", "the cat sat on the mat")
    (family,) = message(request, ("decoder.0.self", 0), has_maps=True)["families"]
    attention = traced(request).find("decoder.2.self")
    drawn = family["maps"][2, 5]
    allowed = np.tri(len(drawn), dtype=bool)
    np.testing.assert_allclose(
        drawn[allowed] / 250, attention.weights(5)[allowed], atol=1 / 500 + 1e-6
    )
    assert (drawn[~allowed] == 255).all()


def test_a_head_that_is_left_out_is_named() -> None:
    left_out = Intervention(ablated=frozenset({("decoder.1.self", 3)}))
    request = Request("house-gpt", "the cat sat", intervention=left_out)
    (family,) = message(request, ("decoder.0.self", 0), has_maps=False)["families"]
    assert family["zeroed"] == [["decoder.1.self", 3]]
    assert "maps" not in family
