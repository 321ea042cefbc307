"""Numbers of the residual stream set by hand, against the same done to the library's own model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from model import Intervention, Model
from model.analysis import largest_numbers
from model.analysis.stream.stream import sub_layers
from model.nn.places import Place
from model.run.protocols import check_continues
from tests.cases import cases
from tests.model.hub_models import eager, loaded, traced
from tests.model.tiny import MODELS, sentence, target

TOKEN, DIMENSION, VALUE = 1, 3, 7.5


def layers(model: Model) -> list[str]:
    """The first attention sub-layer of each layer, whose state can be set."""
    return [name for name in model.attention_names if Place.named(name).kind != "cross"]


@pytest.mark.models(MODELS)
def test_a_number_set_to_its_own_value_changes_nothing_and_another_changes_what_follows(
    model: Model,
) -> None:
    text, reply = sentence(model), target(model)
    own = model.trace(text, reply, record="full")
    for stack, states in own.residual.items():
        names = [name for name in layers(model) if Place.named(name).stack == stack]
        at = sub_layers(own, stack).index(names[-1])
        cell = names[-1], 0, DIMENSION
        same = model.trace(
            text,
            reply,
            Intervention(stream={(*cell, float(states[at][0, DIMENSION]))}),
            record="full",
        )
        for before, after in zip(states, same.residual[stack], strict=True):
            np.testing.assert_array_equal(before, after)
        other = model.trace(text, reply, Intervention(stream={(*cell, VALUE)}), record="full")
        assert other.residual[stack][at][0, DIMENSION] == VALUE
        for before, after in zip(states[:at], other.residual[stack][:at], strict=True):
            np.testing.assert_array_equal(before, after)
        assert (states[-1] != other.residual[stack][-1]).any()
        assert other.check() < 1e-4


def set_before(module: Any) -> None:
    """Sets the number in what a layer of the library's model reads."""

    def hook(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        state = given[0].clone()
        state[..., TOKEN, DIMENSION] = VALUE
        return (state, *given[1:])

    module.register_forward_pre_hook(hook)


LAYERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "llama": ("decoder.1.self", lambda stock: stock.model.layers[1]),
    "gpt2": ("decoder.1.self", lambda stock: stock.transformer.h[1]),
    "bert": ("encoder.1.self", lambda stock: stock.encoder.layer[1]),
    "t5": ("encoder.1.self", lambda stock: stock.encoder.block[1]),
}


@cases("family", LAYERS)
def test_it_is_what_a_hook_on_the_librarys_model_does(family) -> None:
    model = loaded(family)
    place, layer = LAYERS[family]
    intervention = Intervention(stream={(place, TOKEN, DIMENSION, VALUE)})
    own, changed = traced(model), traced(model, intervention)
    theirs = eager(model, own, lambda stock: set_before(layer(stock)))
    last = changed.residual[changed.stacks[-1]][-1] if changed.logits is None else changed.logits
    wanted = theirs.last_hidden_state if changed.logits is None else theirs.logits
    np.testing.assert_allclose(last, wanted[0].numpy(), atol=1e-4)
    before = own.residual[own.stacks[-1]][-1] if own.logits is None else own.logits
    assert np.abs(last - before).max() > 1e-3


@cases("stream, words", [
    ({("decoder.9.self", 0, 0, 1.0)}, "no attention sub-layer"),
    ({("decoder.0.self", 99, 0, 1.0)}, "Token 99 has no dimension 0"),
    ({("decoder.0.self", 0, 9999, 1.0)}, "no dimension 9999"),
    ({("decoder.0.self", 0, 0, 1.0), ("decoder.0.self", 0, 0, 2.0)}, "two values"),
    ({("decoder.0.self", 0, 0, float("nan"))}, "its members must be"),
    ({("decoder.0.self", -1, 0, 1.0)}, "its members must be"),
    ({("decoder.0.self", 0, 0)}, "its members must be"),
])  # fmt: skip
def test_a_number_that_is_not_there_is_refused_in_a_sentence(stream, words) -> None:
    model = loaded("gpt2")
    with pytest.raises(ValueError, match=words):
        traced(model, Intervention(stream=stream))


def test_such_a_run_is_not_continued_and_a_cross_layer_reads_no_stream() -> None:
    t5 = loaded("t5")
    with pytest.raises(ValueError, match="The stream is read before a layer"):
        traced(t5, Intervention(stream={("decoder.0.cross", 0, 0, 1.0)}))
    with pytest.raises(ValueError, match="cannot be continued"):
        check_continues(t5.name, t5.config, Intervention(stream={("decoder.0.self", 0, 0, 1.0)}))


@pytest.mark.models(MODELS)
def test_the_largest_numbers_are_those_of_the_states_that_layers_read(model: Model) -> None:
    trace = model.trace(sentence(model), target(model))
    listed = largest_numbers(trace, 5)
    assert len(listed) == 5
    assert len({(Place.named(one.place).stack, one.token, one.dimension) for one in listed}) == 5
    states = {
        name: trace.residual[stack][sub_layers(trace, stack).index(name)]
        for stack in trace.stacks
        for name in layers(model)
        if Place.named(name).stack == stack
    }
    largest = max(float(np.abs(state).max()) for state in states.values())
    assert largest / 2 <= max(abs(one.value) for one in listed) <= largest
    for one in listed:
        state = states[one.place]
        assert one.value == state[one.token, one.dimension]
        assert one.ratio == pytest.approx(abs(one.value) / np.median(np.abs(state)))
