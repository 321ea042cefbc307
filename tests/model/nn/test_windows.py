"""A window of any width, as a change of every model."""

from typing import Any

import numpy as np
import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from model import Intervention
from model.nn.masks import window_mask
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import MODELS, loaded, run


@cases("width", [1, 2, 3, 4, 5, 9, 100, 10**30])
def test_a_query_reads_at_most_so_many_keys_itself_included(width) -> None:
    causal, both = (window_mask(9, 9, width, causal=causal).numpy() for causal in (True, False))
    for query in range(9):
        assert [*np.flatnonzero(causal[query])] == [*range(max(query - width + 1, 0), query + 1)]
        aside = [*range(1, 9)][: min((width - 1) // 2, 8)]
        near = {query, *(query + step for step in aside), *(query - step for step in aside)}
        assert [*np.flatnonzero(both[query])] == sorted(near & {*range(9)})
    assert max(causal.sum(1).max(), both.sum(1).max()) <= width


@cases("causal", [True, False])
def test_a_window_is_made_without_an_array_of_distances(causal) -> None:
    """Of 8,192 tokens that would take half a gigabyte."""
    most = 0

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal most
            made = func(*args, **(kwargs or {}))
            most = max(most, made.nbytes)
            return made

    with Sizes():
        window_mask(30, 40, 5, causal=causal)
    assert most == 30 * 40


@cases("name", MODELS)
def test_every_model_reads_through_a_window(name) -> None:
    model = loaded(name)
    own, narrow = run(model), run(model, Intervention(window=3))
    for before, after in zip(own.attention, narrow.attention, strict=True):
        if before.kind == "cross":
            assert after.mask is None
            continue
        assert after.mask.sum(-1).max() == 3
        assert before.mask is None or not (after.mask & ~before.mask).any()
        assert after.window is None
    assert narrow.check() < 1e-4
    last = model.attention_names[-1]
    assert not np.allclose(own.find(last).output, narrow.find(last).output, atol=1e-4)
    wide = run(model, Intervention(window=100))
    np.testing.assert_allclose(own.find(last).output, wide.find(last).output, atol=1e-5)


def test_a_window_joins_what_else_masks() -> None:
    gpt, bert = loaded("gpt"), loaded("bert")
    lifted = run(gpt, Intervention(window=3, mask="none")).attention[0].mask
    np.testing.assert_array_equal(lifted, window_mask(len(lifted), len(lifted), 3, causal=False))
    causal = run(bert, Intervention(window=3, mask="causal")).attention[0].mask
    np.testing.assert_array_equal(causal, window_mask(len(causal), len(causal), 3, causal=True))
    cut = Intervention(window=2, hidden=frozenset({1}), blocked=frozenset({(3, 3)}))
    mask = run(gpt, cut).attention[0].mask
    expected = window_mask(len(mask), len(mask), 2, causal=True).numpy()
    expected[:, 1] = expected[3, 3] = False
    np.testing.assert_array_equal(mask, expected)


def test_a_models_own_window_goes_with_its_mask() -> None:
    model = hub_models.loaded("mistral")
    for mask, own in (("model", True), ("none", False)):
        for attention in hub_models.traced(model, Intervention(mask=mask)).attention:  # type: ignore[arg-type]
            assert (attention.window is not None) == own
            assert attention.mask is None or own


def test_a_window_of_crossing_attention_only_where_it_is_named() -> None:
    model = loaded("translator")
    crossing = next(name for name in model.attention_names if name.endswith("cross"))
    mask = run(model, Intervention(window=1, only=frozenset({crossing}))).find(crossing).mask
    np.testing.assert_array_equal(mask, np.eye(*mask.shape, dtype=bool))


@cases("width", [0, -1, 1.5, True, "3"])
def test_a_width_that_is_no_number_of_keys_is_refused(width) -> None:
    with pytest.raises(ValueError, match=r"must be a (number of keys from 1 up|whole number)"):
        Intervention(window=width)  # type: ignore[arg-type]
