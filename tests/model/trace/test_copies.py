"""A trace goes through a pickle and a deep copy: the same numbers, as read-only as before."""

import copy
import pickle

import numpy as np
import pytest

from model import Intervention, Trace, load_model
from model.trace.unproven import UnprovenError
from tests.arrays_of_trace import every_array

PASSES = {
    "decoder": ("stories", "Anna gave the ball to Tom"),
    "encoder": ("minilm", "The cat sat"),
    "encoder-decoder": ("translate-en-fr", "the cat sees the dog"),
    "of a long text": ("house-gpt", "Tom Hill saw the dog. " * 40),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("explicit", [False, True])
def test_a_pickle_holds_the_numbers_of_its_trace(name: str, explicit: bool) -> None:
    model, text = PASSES[name]
    changed = Intervention(ablated=frozenset({(load_model(model).attention_names[0], 1)}))
    trace = load_model(model).trace(
        text, intervention=changed, record="full" if explicit else "attention", explicit=explicit
    )
    again = pickle.loads(pickle.dumps(trace))
    assert (again.tokens, again.target_tokens) == (trace.tokens, trace.target_tokens)
    assert again.intervention == changed
    assert again.check() == trace.check()
    pairs = [*zip(every_array(trace), every_array(again), strict=True)]
    assert len(pairs) > 20
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
        assert not other.flags.writeable


def test_a_deep_copy_is_the_trace_itself() -> None:
    trace = load_model("stories").trace("Anna gave the ball to Tom")
    assert copy.deepcopy({"of a run": [trace]})["of a run"][0] is trace
    assert copy.deepcopy(trace.attention[0]) is trace.attention[0]


def test_what_is_not_proven_is_refused_by_a_pickle_too() -> None:
    vectors = np.eye(3)[None]
    trace = Trace.from_arrays(query=vectors, key=vectors, value=vectors)
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again.attention[0].weights(), trace.attention[0].weights())
    with pytest.raises(UnprovenError):
        again.require_prediction()
    with pytest.raises(UnprovenError):
        len(again.norms)
