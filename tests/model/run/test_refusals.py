"""What cannot be run is refused with a ValueError whose message is a sentence for the page."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from model import Intervention
from model.nn.config import TransformerConfig
from tests.cases import cases
from tests.model.tiny import SENTENCE, loaded

NAN, INF = math.nan, math.inf
IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"scale": NAN}, "scale"),
    ({"scale": INF}, "scale"),
    ({"scale": -INF}, "scale"),
    ({"scale": 1e30}, "scale"),
    ({"fill": NAN}, "fill"),
    ({"fill": INF}, "fill"),
    ({"fill": -1e300}, "fill"),
    ({"fill": 1e39}, "fill"),
    ({"dropout": -0.1}, "dropout"),
    ({"dropout": 1.0}, "dropout"),
    ({"dropout": NAN}, "dropout"),
    ({"mask": "casual"}, "mask"),
    ({"mask": None}, "mask"),
    ({"hidden": {-1}}, "hidden"),
    ({"hidden": {1.5}}, "hidden"),
    ({"hidden": {"cat"}}, "hidden"),
    ({"hidden": 3}, "hidden"),
    ({"blocked": {(-1, 0)}}, "blocked"),
    ({"blocked": {(1, 2, 3)}}, "blocked"),
    ({"blocked": {4}}, "blocked"),
    ({"ablated": {"decoder.0.self"}}, "ablated"),
    ({"ablated": {(0, "decoder.0.self")}}, "ablated"),
    ({"only": "decoder.0.self"}, "only"),
    ({"only": {3.5}}, "only"),
]


def assert_refused(run: Callable[[], object], word: str) -> None:
    with pytest.raises(ValueError, match=word) as refusal:
        run()
    sentence = str(refusal.value)
    assert sentence.endswith(".")
    assert len(sentence.split()) > 3
    assert "Traceback" not in sentence


@cases("fields, word", IMPOSSIBLE)
def test_an_intervention_outside_its_range_is_refused(fields, word) -> None:
    assert_refused(lambda: Intervention(**fields), word)


@cases("name, fields, word", [
    ("gpt", {"only": {"decoder.2.self"}}, "decoder.2.self"),
    ("gpt", {"only": {"encoder.0.self"}}, "encoder.0.self"),
    ("gpt", {"only": {"decoder.0.cross"}}, "decoder.0.cross"),
    ("gpt", {"ablated": {("decoder.7.self", 0)}}, "decoder.7.self"),
    ("gpt", {"ablated": {("decoder.0.self", 3)}}, "heads 0 to 2"),
    ("gpt", {"ablated": {("decoder.0.self", -4)}}, "heads 0 to 2"),
    ("gpt", {"hidden": {8}}, "8 tokens"),
    ("gpt", {"blocked": {(8, 0)}}, "8"),
    ("gpt", {"blocked": {(0, 8)}}, "8"),
    ("bert", {"blocked": {(0, 0), (3, 99)}}, "99"),
    ("translator", {"hidden": {8}}, "8 tokens"),
    ("translator", {"blocked": {(0, 0)}}, "only"),
    ("translator", {"blocked": {(7, 0)}, "only": {"decoder.0.cross"}}, "7"),
    ("translator", {"blocked": {(0, 7)}, "only": {"decoder.0.self"}}, "7"),
])  # fmt: skip
def test_an_intervention_that_names_what_the_pass_does_not_have_is_refused(
    name, fields, word
) -> None:
    intervention = Intervention(**fields)
    read = "le chat" if name == "translator" else None
    assert_refused(lambda: loaded(name).trace(SENTENCE, read, intervention), word)


def test_an_edge_that_one_of_the_named_sublayers_has_is_accepted() -> None:
    both = frozenset({"encoder.0.self", "decoder.1.cross"})
    intervention = Intervention(blocked=frozenset({(7, 7)}), only=both)
    trace = loaded("translator").trace(SENTENCE, "le chat", intervention)
    assert trace.find("encoder.0.self").weights(0)[7, 7] == 0


@cases("name", ["gpt", "bert"])
def test_a_target_without_a_second_stack_is_refused(name) -> None:
    assert_refused(lambda: loaded(name).trace(SENTENCE, "le chat"), "target")


def test_a_trace_names_the_sublayers_it_has() -> None:
    trace = loaded("gpt").trace(SENTENCE)
    assert_refused(lambda: trace.find("decoder.9.self") or ".", r"decoder\.9\.self")


@cases("fields, word", [
    ({"shape": "gpt"}, "shape"),
    ({"norm": "batch"}, "norm"),
    ({"norm_place": "middle"}, "norm_place"),
    ({"activation": "tanh"}, "activation"),
    ({"positions": "clock"}, "positions"),
    ({"d_vocab": 0}, "d_vocab"),
    ({"n_ctx": -1}, "n_ctx"),
    ({"heads": 0}, "heads"),
    ({"heads": 5}, "5 equal heads"),
    ({"d_mlp": -1}, "d_mlp"),
    ({"heads": 8, "positions": "rotary"}, "even head width"),
    ({"decoder_layers": 0}, "decoder"),
    ({"encoder_layers": 1}, "encoder"),
    ({"shape": "encoder"}, "encoder"),
    ({"d_model": "24"}, "d_model"),
    ({"d_model": 24.0}, "d_model"),
    ({"decoder_layers": 1.5}, "decoder_layers"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": NAN}, "epsilon"),
])  # fmt: skip
def test_sizes_that_make_no_transformer_are_refused(fields, word) -> None:
    sizes = {"shape": "decoder", "d_vocab": 9, "n_ctx": 4, "d_model": 24, "heads": 3}
    assert_refused(lambda: TransformerConfig(**{**sizes, "decoder_layers": 1, **fields}), word)
