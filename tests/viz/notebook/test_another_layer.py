"""What the browser tells Python where layers differ in heads, tokens or stages."""

from functools import partial
from typing import Any
from unittest import mock

import pytest
import torch

from model import Trace, load_model
from model.capture import capture
from tests.viz.notebook.test_widget import PLACE, TEXT, sent
from viz.notebook import AttentionExplorer, show


@pytest.fixture(scope="module")
def french() -> Trace:
    return load_model("translate-en-fr").trace("the black cat sleeps")


def layers_of_four_and_eight_heads() -> Trace:
    layer = partial(torch.nn.TransformerEncoderLayer, 16, dim_feedforward=8, batch_first=True)
    torch.manual_seed(0)
    return capture(torch.nn.Sequential(layer(4), layer(8)).eval(), torch.randn(1, 5, 16))


@pytest.fixture(scope="module")
def few_and_many() -> Trace:
    return layers_of_four_and_eight_heads()


def told(widget: AttentionExplorer, **state: object) -> dict[str, Any]:
    """What the browser hears of its choice when it tells this."""
    heard: dict[str, Any] = {}
    widget.comm = mock.Mock(comm_id=widget.model_id)
    widget.set_state(state)
    for call in widget.comm.send.call_args_list:
        if call.kwargs["data"]["method"] == "update":
            heard |= call.kwargs["data"]["state"]
    return {name: value for name, value in heard.items() if not name.startswith("_")}


def test_a_choice_told_with_another_layer_is_the_nearest_that_it_has(few_and_many: Trace) -> None:
    few, many = (one.name for one in few_and_many.attention)
    widget = show(few_and_many, place=few, head=3)
    assert told(widget, head=7, place=many) == {}
    assert (widget.place, widget.head) == (many, 7)
    assert told(widget, place=few, head=6, query=4) == {"head": 3}
    assert (widget.place, widget.head, widget.query) == (few, 3, 4)
    with pytest.raises(ValueError, match="has head 0 to 3, not 7"):
        told(widget, head=7)


def test_a_late_token_and_a_stage_told_with_a_layer_that_lacks_them_are_its_nearest(
    french: Trace,
) -> None:
    source, target = (len(tokens) for tokens in (french.tokens, french.target_tokens))
    widget = show(french, place="decoder.0.self", query=target - 1, key=target - 1)
    assert target > source
    heard = told(widget, place="encoder.0.self", stage="masked", query=source, key=source)
    assert heard == {"stage": "weights", "query": source - 1, "key": source - 1}
    assert (widget.place, widget.stage) == ("encoder.0.self", "weights")
    assert (widget.query, widget.key) == (source - 1, source - 1)


def test_all_layers_stay_where_more_is_sent_of_the_chosen_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viz.explorer.message.LIGHT_AROUND", 0)
    widget = show("house-gpt", TEXT, place=PLACE)
    before = widget._layers
    places = [message["layer"]["name"] for message in sent(widget)]
    assert len(places) > 1
    widget.stage = "norm"
    *_, last = sent(widget)
    assert [message["layer"]["name"] for message in sent(widget)] == [*places, PLACE]
    assert widget._layers is before
    around = last["layer"]["around"].items()
    assert [name for name, group in around if group["numbers"] is not None]
    of_norms, widget.stage = widget._layer, "weights"
    for widget.place in places:
        assert widget._layer is of_norms  # what all have is enough
