"""The widget in Python: its traits are the choice, and what it sends is the explorer's own message."""

import re
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from ipywidgets.widgets.widget import _remove_buffers

from model import Intervention, Trace, load_model
from tests.cases import cases
from tests.model.loading.test_in_memory import own
from viz.explorer import payload
from viz.explorer.hero import DECIMALS, hero
from viz.explorer.packing import packed, words
from viz.notebook import AttentionExplorer, compare, show
from viz.notebook import run as shown
from viz.notebook.library import library, parts

TEXT = "The cat sat on the mat"
PLACE = "decoder.1.self"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_model("house-gpt").trace(TEXT)


@pytest.fixture(scope="module")
def french() -> Trace:
    return load_model("translate-en-fr").trace("the black cat sleeps")


def sent(widget: AttentionExplorer) -> list[dict[str, Any]]:
    """What the messages of the sent layers say beside their arrays."""
    both: list[Any] = [words(block)["layers"] for block in (widget._layers, widget._layer)]
    return [message for layers in both for message in layers]


@pytest.fixture
def one_layer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "TOGETHER", 0)
    monkeypatch.setattr("viz.explorer.message.LIGHT", 0)


def test_it_opens_at_the_strongest_key_of_the_last_token(trace: Trace) -> None:
    widget = show(trace, place=PLACE, head=3)
    weights = trace.find(PLACE).weights(3)
    assert (widget.query, widget.key) == (len(weights) - 1, int(weights[-1].argmax()))
    assert widget.weight == weights[-1].max()
    assert widget.trace is trace


@cases("stage", ["scores", "scaled", "masked", "weights"])
def test_value_is_the_number_of_the_chosen_cell(stage, trace: Trace) -> None:
    widget = show(trace, place=PLACE, head=2, stage=stage, query=4, key=1)
    assert widget.value == getattr(trace.find(PLACE), stage)(2)[4, 1]


@cases("stage, row", [("query", 4), ("key", 1), ("value", 1), ("output", 4)])
def test_value_is_the_vector_of_the_chosen_token(stage, row, trace: Trace) -> None:
    widget = show(trace, place=PLACE, head=2, stage=stage, query=4, key=1)
    np.testing.assert_array_equal(widget.value, getattr(trace.find(PLACE), stage)[2][row])


def test_around_the_heads_value_is_the_models_own_vector() -> None:
    widget = show(load_model("house-gpt"), TEXT, place=PLACE, stage="norm", query=4)
    record = next(norm for norm in widget.trace.norms if norm.name == f"{PLACE}.norm")
    np.testing.assert_array_equal(widget.value, record.output[4])


@cases("trait, value, said", [
    ("head", 8, "decoder.1.self has head 0 to 7, not 8."),
    ("head", -1, "decoder.1.self has head 0 to 7, not -1."),
    ("head", True, "a whole number"),
    ("head", 1.5, "a whole number"),
    ("query", 6, "decoder.1.self has query 0 to 5, not 6."),
    ("key", "x", "a whole number"),
    ("place", "decoder.9.self", "There is no attention sub-layer 'decoder.9.self'"),
    ("stage", "capped", "decoder.1.self has no stage 'capped'; it has query, key, value"),
])  # fmt: skip
def test_a_choice_that_the_run_does_not_have_is_refused_and_the_old_one_stays(
    trait, value, said, trace: Trace
) -> None:
    widget = show(trace, place=PLACE, head=3, stage="scores", query=2, key=1)
    before = {name: getattr(widget, name) for name in ("place", "head", "stage", "query", "key")}
    with pytest.raises(ValueError, match=re.escape(said)):
        setattr(widget, trait, value)
    assert {name: getattr(widget, name) for name in before} == before
    with pytest.raises(ValueError, match=re.escape(said)):
        show(trace, **{"place": PLACE, trait: value})  # type: ignore[arg-type]


def test_numpys_whole_numbers_are_taken(trace: Trace) -> None:
    widget = show(trace)
    widget.head = np.int64(3)
    assert widget.head == 3
    assert type(widget.head) is int


def test_another_layer_moves_the_choice_to_the_nearest_that_it_has(french: Trace) -> None:
    cross = french.find("decoder.0.cross")
    source, target = (len(tokens) for tokens in (french.tokens, french.target_tokens))
    widget = show(french, place=cross.name, query=target - 1, key=source - 1)
    widget.place = "encoder.0.self"
    assert (widget.query, widget.key) == (min(target, source) - 1, source - 1)
    widget.stage = "scores"
    widget.place = "decoder.0.self"
    assert widget.stage == "scores"
    assert widget.key == min(source, target) - 1


def test_a_stage_that_another_layer_lacks_becomes_the_weights(french: Trace) -> None:
    widget = show(french, place="decoder.0.self", stage="masked")
    widget.place = "encoder.0.self"
    assert widget.stage == "weights"


def test_small_layers_are_all_sent_at_once_and_never_again(trace: Trace) -> None:
    widget = show(trace)
    before = widget._layers
    assert [one["layer"]["name"] for one in sent(widget)] == [one.name for one in trace.attention]
    for widget.place in (one.name for one in trace.attention):
        for widget.stage in ("value", "output", "query", "weights"):
            assert widget._layers is before


def test_layers_that_are_large_with_what_stands_around_them_are_sent_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = show("house-gpt", TEXT)
    monkeypatch.setattr("viz.notebook.widget.LARGEST", len(alone._layers) - 1)
    widget = show("house-gpt", TEXT, place=PLACE)
    assert [message["layer"]["name"] for message in sent(widget)] == [PLACE]
    widget.place = "decoder.3.self"
    assert [message["layer"]["name"] for message in sent(widget)] == ["decoder.3.self"]


def test_what_is_sent_is_the_explorers_own_message(trace: Trace, one_layer_at_a_time: None) -> None:
    widget = show(trace, place=PLACE)
    texts = [token.text for token in trace.tokens]
    message = payload(
        trace.find(PLACE),
        queries=texts,
        keys=texts,
        head=0,
        check=trace.check(),
        layers=[one.name for one in trace.attention],
    )
    beside = {
        detail: asdict(hero(trace.find(PLACE), trace, None, detail=detail)) for detail in DECIMALS
    }
    said = {"device": trace.device, "heroes": beside}
    assert widget._layer == packed({"layers": [message | said]})


def test_beside_a_layer_stands_what_the_app_shows_there(french: Trace) -> None:
    """Of cross-attention, of an encoder, and of a comparison too."""
    widget = show(french)
    for message in sent(widget):
        one = french.find(message["layer"]["name"])
        assert message["heroes"] == {
            detail: asdict(hero(one, french, None, detail=detail)) for detail in DECIMALS
        }
    known = [message["heroes"]["full"]["sure"] is not None for message in sent(widget)]
    assert any(known)
    assert not all(known)
    encoder = show("minilm", TEXT)
    assert {message["heroes"]["full"]["loss"] for message in sent(encoder)} == {None}


def test_a_large_layer_is_sent_when_it_is_chosen_and_its_values_when_they_are_shown(
    trace: Trace, one_layer_at_a_time: None
) -> None:
    widget = show(trace)
    said = []
    for trait, value in (("place", PLACE), ("head", 5), ("stage", "value"), ("stage", "scores")):
        setattr(widget, trait, value)
        (message,) = sent(widget)
        said.append((message["layer"]["name"], message["layer"]["complete"]))
    assert said == [(PLACE, False), (PLACE, False), (PLACE, True), (PLACE, True)]


def test_numbers_travel_as_binary(trace: Trace) -> None:
    state, paths, _ = _remove_buffers(show(trace).get_state())
    assert sorted(path[0] for path in paths) == ["_heads", "_layer", "_layers"]
    assert {"head", "place", "_esm"} <= state.keys()
    assert sum(len(str(value)) for value in state.values()) < 5_000  # the library is not among it


def test_the_library_is_sent_once_for_all_widgets(trace: Trace) -> None:
    one, other = show(trace), show(trace)
    assert one._library is other._library is library()
    assert sum(map(len, parts().values())) < 700_000


def test_the_library_asks_for_nothing_from_elsewhere() -> None:
    assert "url(fonts" not in parts()["katexStyle"]
    for name, text in parts().items():
        addresses = set(re.findall(r"https?://[\w./-]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}, (
            name
        )


def test_the_library_is_opened_again_after_all_widgets_were_closed(trace: Trace) -> None:
    widget = show(trace)
    widget.close_all()
    assert show(trace)._library.comm is not None


def test_maps_of_many_heads_are_made_when_they_are_asked_for(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "maps" in words(show(trace)._heads)["families"][0]  # type: ignore[index]
    monkeypatch.setattr("viz.notebook.widget.SMALL_MAPS", 0)
    widget = show(trace)
    assert "maps" not in words(widget._heads)["families"][0]  # type: ignore[index]
    widget._answer(widget, {"kind": "maps"}, [])
    assert "maps" in words(widget._heads)["families"][0]  # type: ignore[index]


def test_a_long_run_is_checked_when_the_browser_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load_model("house-gpt").trace(TEXT)
    monkeypatch.setattr(shown, "CHECKED_AT_ONCE", 0)
    widget = show(trace)
    assert not trace.is_checked
    assert sent(widget)[0]["checked"] is False
    widget._answer(widget, {"kind": "check"}, [])
    assert sent(widget)[0]["check"] == trace.check()


def test_messages_that_nobody_knows_change_nothing(trace: Trace) -> None:
    widget = show(trace)
    before = widget.get_state()
    for content in ({}, {"kind": "else"}, {"kind": None}):
        widget._answer(widget, content, [])
    assert widget.get_state() == before


def test_two_runs_are_sent_beside_each_other(trace: Trace) -> None:
    changed = load_model("house-gpt").trace(TEXT, intervention=Intervention(scale=1.0))
    widget = compare(trace, changed)
    assert (widget.baseline, widget.trace) == (trace, changed)
    assert sent(widget)[0]["layer"]["scale"] == 1.0
    assert sent(widget)[0]["baseline"]["scale"] == trace.attention[0].scale


def test_words_that_differ_stand_in_both_forms(trace: Trace) -> None:
    other = load_model("house-gpt").trace(TEXT.replace("cat", "dog"))
    queries, keys = compare(trace, other).labels
    assert queries == keys == ["The", " cat →  dog", " sat", " on", " the", " mat"]


def test_runs_of_other_shapes_are_not_compared(trace: Trace, french: Trace) -> None:
    shorter = load_model("house-gpt").trace("The cat sat")
    with pytest.raises(ValueError, match=re.escape("shapes (8, 6, 32)")):
        compare(trace, shorter)
    with pytest.raises(ValueError, match="cannot be compared"):
        compare(trace, french)


def test_a_model_needs_a_text_and_a_trace_has_one(trace: Trace) -> None:
    with pytest.raises(ValueError, match="A model needs a text"):
        show("house-gpt")
    with pytest.raises(ValueError, match="A trace has its text already"):
        show(trace, TEXT)
    with pytest.raises(ValueError, match="not dict"):
        show({}, TEXT)


def test_a_models_name_and_the_model_give_the_same(trace: Trace) -> None:
    named, loaded = show("house-gpt", TEXT), show(load_model("house-gpt"), TEXT)
    assert named._layers == loaded._layers
    assert len(show(trace)._layers) < len(named._layers)  # it knows nothing around the heads


def test_a_loaded_model_of_the_library_is_shown_with_its_tokenizer() -> None:
    module, tokenizer = own("gpt2")
    widget = show(module, "the cat sat", tokenizer=tokenizer)
    ids = tokenizer("the cat sat", return_tensors="pt")
    module.set_attn_implementation("eager")
    weights = module(**ids, output_attentions=True).attentions[0][0, 0].detach().numpy()
    assert widget.weight == pytest.approx(weights[widget.query, widget.key], abs=1e-6)
    assert "norm" in [stage["name"] for stage in sent(widget)[0]["stages"]]


def test_a_notebook_needs_neither_streamlit_nor_plotly() -> None:
    script = "import sys, viz.notebook; print({'streamlit', 'plotly'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_check_leaves_all_layers_that_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load_model("house-gpt").trace(TEXT)
    monkeypatch.setattr(shown, "CHECKED_AT_ONCE", 0)
    widget = show(trace)
    widget._answer(widget, {"kind": "check"}, [])
    assert [one["layer"]["name"] for one in sent(widget)] == [one.name for one in trace.attention]
    assert {one["check"] for one in sent(widget)} == {trace.check()}
