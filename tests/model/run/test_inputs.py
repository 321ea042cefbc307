"""A text, or token ids, as people have them; a layer by its name or number; numbers within their range."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model import Intervention, Model, load_model
from model.many import trace_all
from viz import figures

TEXT = "Anna gave the ball to Tom"


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("stories")


@pytest.mark.parametrize(
    "given", [list, tuple, np.array, torch.tensor, lambda ids: torch.tensor([ids])]
)
def test_ids_are_read_as_they_are(model: Model, given: Callable[[list[int]], Any]) -> None:
    of_text = model.trace(TEXT)
    of_ids = model.trace(given([token.id for token in of_text.tokens]))
    assert [token.id for token in of_ids.tokens] == [token.id for token in of_text.tokens]
    assert of_ids.logits is not None
    np.testing.assert_array_equal(of_ids.logits, of_text.logits)
    assert of_ids.text.strip() == TEXT


def test_a_list_of_texts_or_ids_gives_a_list_of_traces(model: Model) -> None:
    ids = [[1, 2, 3], [4, 5]]
    assert [len(one.tokens) for one in model.trace(ids)] == [3, 2]
    one, other = model.trace([TEXT, "a cat"])
    assert (one.text, other.text) == (TEXT, "a cat")
    with pytest.raises(ValueError, match="one text"):
        model.trace([TEXT], "a target")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "wrong",
    [None, 5, [], [1.5], [True], [[]], {}, b"a", [10**9], [-1], object(), np.zeros((2, 3), int)],
)
def test_what_is_neither_is_refused_in_a_sentence(model: Model, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        model.trace(wrong)


def test_a_layer_goes_by_its_number_where_each_layer_has_one_sub_layer(model: Model) -> None:
    trace = model.trace(TEXT)
    assert trace.find(1) is trace.find(-1) is trace.find("decoder.1.self")
    assert model.layer(1) is model.layer("decoder.1.self")
    assert figures.weights(trace, 1, 3) == figures.weights(trace, "decoder.1.self", 3)
    two = load_model("translate-en-fr").trace("the cat sees the dog")
    with pytest.raises(ValueError, match="several stacks"):
        two.find(0)


def test_interventions_name_layers_by_number_and_heads_from_the_end(model: Model) -> None:
    name = "decoder.1.self"
    by_number = Intervention(
        ablated=[(1, -1)], weights=[(-1, 0, 2, 1, 0.5)], stream=[(1, 0, 5, 0.0)], only=[1, 0]
    )
    by_name = Intervention(
        ablated={(name, 3)},
        weights={(name, 0, 2, 1, 0.5)},
        stream={(name, 0, 5, 0.0)},
        only={name, "decoder.0.self"},
    )
    one, other = (model.trace(TEXT, intervention=change) for change in (by_number, by_name))
    assert one.intervention == other.intervention == by_name
    np.testing.assert_array_equal(one.logits, other.logits)
    for many in trace_all(model, [TEXT, TEXT], intervention=by_number):
        assert many.intervention == by_name
        np.testing.assert_allclose(many.logits, other.logits, atol=1e-4)
    short, _ = model.passed(model.tokens(TEXT), intervention=by_number)
    np.testing.assert_array_equal(short.logits, other.logits)


@pytest.mark.parametrize("head", [4, -5, True, 1.0, "1", None])
def test_a_head_that_is_not_there_is_refused_everywhere(model: Model, head: Any) -> None:
    layer = model.trace(TEXT).find(0)
    asked = [layer.scores, layer.scaled, layer.masked, layer.context, layer.dropped, layer.mask_of]
    for one in asked if head is None else [*asked, layer.weights]:
        with pytest.raises(ValueError, match="has heads 0 to 3"):
            one(head)
    assert np.array_equal(layer.weights(-1), layer.weights(3))


def test_the_nearest_name_is_offered(model: Model) -> None:
    with pytest.raises(ValueError, match=r"did you mean 'decoder\.1\.self'"):
        model.trace(TEXT).find("decoder1.self")
    with pytest.raises(ValueError, match="did you mean 'stories'"):
        load_model("storis")


def test_a_path_names_a_folder_and_never_a_shipped_model() -> None:
    with pytest.raises(ValueError, match="There is no model"):
        load_model(Path("stories"))
    with pytest.raises(ValueError, match="name is None"):
        load_model(None)  # type: ignore[arg-type]


def test_an_intervention_takes_any_collection_and_is_written_as_one_writes_it() -> None:
    change = Intervention(ablated=[("decoder.1.self", 1), ("decoder.0.self", 3)], scale=1.0)
    assert repr(change) == (
        "Intervention(scale=1.0, ablated={('decoder.0.self', 3), ('decoder.1.self', 1)})"
    )
    assert eval(repr(change), {"Intervention": Intervention}) == change
    assert repr(Intervention()) == "Intervention()"


def test_a_model_says_its_sizes_on_one_line(model: Model) -> None:
    sizes = re.findall(r"[\d,]*\d", repr(model))
    assert sizes == ["2", "4", "128", "509,952"]
    assert "\n" not in repr(model)


def test_ids_go_through_many_passes_as_through_one(model: Model) -> None:
    ids = [[token.id for token in model.tokens(text)] for text in (TEXT, "a cat saw", TEXT)]
    for one, alone in zip(trace_all(model, ids), model.trace(ids), strict=True):
        assert one.tokens == alone.tokens
        assert one.text == alone.text
        np.testing.assert_allclose(one.logits, alone.logits, atol=1e-4)
