"""What a masked score becomes, and rows in which nothing is left to look at."""

import numpy as np
import pytest

from model import Intervention, Model
from tests.cases import cases
from tests.model.tiny import loaded, of_shape, run, sentence

NEAR = 2e-5


@cases("explicit", [False, True])
def test_a_text_hidden_wholly_gives_zeros_and_never_nan(explicit, model: Model) -> None:
    every = frozenset(range(len(model.tokens(sentence(model)))))
    trace = run(model, Intervention(hidden=every), record="full", explicit=explicit)
    for attention in trace.attention:
        if attention.kind == "causal" and trace.target_tokens:
            continue  # it reads the target, which holds no hidden position
        assert (attention.output == 0).all()
        assert all((attention.weights(head) == 0).all() for head in range(attention.heads))
    assert trace.check() < NEAR
    for states in trace.residual.values():
        assert all(np.isfinite(state).all() for state in states)
    assert trace.logits is None or np.isfinite(trace.logits).all()


@pytest.mark.models(of_shape("decoder"))
@cases("explicit", [False, True])
def test_a_first_word_cut_from_itself_has_an_empty_row(explicit, model: Model) -> None:
    trace = run(model, Intervention(blocked=frozenset({(0, 0)})), explicit=explicit)
    for attention in trace.attention:
        for head in range(attention.heads):
            assert (attention.weights(head)[0] == 0).all()
            assert (attention.output[head][0] == 0).all()
            np.testing.assert_allclose(attention.weights(head)[1:].sum(-1), 1, atol=NEAR)
    assert trace.logits is not None
    assert np.isfinite(trace.logits).all()


def test_values_beyond_what_single_precision_holds_still_give_numbers() -> None:
    model = loaded("gpt")
    for intervention in ({"scale": 1e6}, {"scale": -1e6}, {"fill": -3e38}, {"fill": 1e6}):
        trace = run(model, Intervention(**intervention))
        assert trace.logits is not None
        assert np.isfinite(trace.logits).all()
        assert np.isfinite(trace.attention[0].weights(0)).all()
