"""A name and a place say the same, and what is no name is refused."""

import pytest

from model.nn.places import Place, decoder_head, head_label, layer_label
from tests.cases import cases

NAMES = {
    "decoder.3.self": Place("decoder", 3, "self"),
    "decoder.12.cross": Place("decoder", 12, "cross"),
    "encoder.0.feed_forward": Place("encoder", 0, "feed_forward"),
    "encoder.embedding": Place("encoder", None, "embedding"),
    "decoder.final": Place("decoder", None, "final"),
    "decoder.self": Place("decoder", None, "self"),
}


@cases("name, place", NAMES.items())
def test_a_place_reads_its_own_name_and_that_of_its_norm(name, place) -> None:
    assert Place.named(name) == Place.named(place.norm) == place
    assert place.name == name


def test_the_name_does_not_say_whether_a_layer_looks_back_only() -> None:
    assert Place("decoder", 0, "causal").name == "decoder.0.self"


@cases("name", [
    "", "decoder", "decoder.0", "middle.0.self", "decoder.x.self", "decoder.٣.self",
    "decoder.0.self.norm.x", "decoder.0.self\n", " decoder.0.self", "decoder.-1.self",
])  # fmt: skip
def test_any_other_name_is_refused(name) -> None:
    with pytest.raises(ValueError, match="names no part"):
        Place.named(name)


def test_layers_and_heads_are_told_apart_from_the_decoders_own() -> None:
    names = ["decoder.3.self", "decoder.3.cross", "encoder.3.self"]
    assert [layer_label(name) for name in names] == ["L3", "cross L3", "encoder L3"]
    assert [head_label((name, 5)) for name in names] == ["L3H5", "cross L3H5", "encoder L3H5"]


def test_a_label_finds_its_head_again() -> None:
    assert decoder_head("L3H15") == ("decoder.3.self", 15)
    assert decoder_head("L0H2", "cross") == ("decoder.0.cross", 2)
    for label in ("L3", "H3", "L3H", "cross L3H5", "L3H5 "):
        with pytest.raises(ValueError, match="names no head"):
            decoder_head(label)
