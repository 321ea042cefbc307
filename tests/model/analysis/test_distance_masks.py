"""Windows, chunks and ALiBi drawn from one head's scores are what a run with them gives."""

import numpy as np
import pytest

from model import Intervention
from model.analysis.distance_masks import alibi, chunked, slopes, windowed
from tests.model.tiny import MODELS, loaded, run


def test_a_window_drawn_is_a_window_run(subtests: pytest.Subtests) -> None:
    for name in MODELS:
        with subtests.test(name=name):
            model = loaded(name)
            own = run(model)
            for attention in own.attention:
                changed = run(model, Intervention(window=3, only=frozenset({attention.name})))
                theirs = changed.find(attention.name)
                for head in range(attention.heads):
                    found = windowed(attention, head, 3)
                    np.testing.assert_allclose(found.weights, theirs.weights(head), atol=1e-6)
                    np.testing.assert_array_equal(found.allowed, theirs.mask_of(head))
                    outside = attention.weights(head)[~found.allowed].sum()
                    np.testing.assert_allclose(found.lost.sum(), outside, rtol=1e-5, atol=1e-7)


def test_masked_scores_keep_the_mask_value_of_the_run() -> None:
    """With -2 a masked key still gets some weight, which no window cuts off."""
    model = loaded("gpt")
    first = model.attention_names[0]
    own = run(model, Intervention(fill=-2.0)).find(first)
    theirs = run(model, Intervention(fill=-2.0, window=3)).find(first)
    found, wide = windowed(own, 1, 3), windowed(own, 1, 100)
    np.testing.assert_allclose(found.weights, theirs.weights(1), atol=1e-6)
    np.testing.assert_allclose(wide.weights, own.weights(1), atol=1e-6)
    assert not wide.lost.any()
    assert own.weights(1)[0, 1:].min() > 0


def test_weights_that_were_set_stay_as_they_were_set() -> None:
    model = loaded("gpt")
    first = model.attention_names[0]
    cells = frozenset({(first, 1, 4, 3, 0.5)})
    own = run(model, Intervention(weights=cells)).find(first)
    changed = run(model, Intervention(weights=cells, window=3, only=frozenset({first})))
    found = windowed(own, 1, 3)
    np.testing.assert_allclose(found.weights, changed.find(first).weights(1), atol=1e-6)
    assert found.lost[4] == pytest.approx(float(own.weights(1)[4, :2].sum()), rel=1e-5)


def test_chunks_drawn_are_the_edges_between_them_cut() -> None:
    model = loaded("gpt")
    attention = run(model).attention[0]
    length = attention.query.shape[1]
    cut = {(at, to) for at in range(length) for to in range(at + 1) if at // 3 != to // 3}
    changed = run(model, Intervention(blocked=cut, only=frozenset({attention.name})))
    found = chunked(attention, 1, 3)
    np.testing.assert_allclose(found.weights, changed.attention[0].weights(1), atol=1e-6)


def test_alibi_drawn_without_a_models_own_is_its_own() -> None:
    """Through a cap before it and a sink after it."""
    model = loaded("all-stages")
    first = model.attention_names[0]
    own = model.trace("the cat sat on the mat").find(first)
    off = Intervention(bias=False, only=frozenset({first}))
    without = model.trace("the cat sat on the mat", intervention=off).find(first)
    for head, slope in enumerate(slopes(own.heads)):
        found = alibi(without, head, slope)
        np.testing.assert_allclose(found.weights, own.weights(head), atol=1e-6)
        assert np.abs(found.weights - without.weights(head)).max() > 1e-3
        assert own.sink_weights(head).min() > 0.01
