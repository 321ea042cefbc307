"""What the browser gets of one attention layer."""

import numpy as np
import pytest

from model.nn.masks import window_mask
from tests.viz.explorer.records import record
from viz.explorer.around import Group
from viz.explorer.layer import forget_gone, group_arrays, layer_arrays


def test_a_mask_that_is_a_band_is_sent_as_its_rule(subtests: pytest.Subtests) -> None:
    for mask, kind, band in [
        (None, "causal", (8, 0)),
        (None, "self", None),
        (window_mask(9, 9, 3, causal=True).numpy(), "causal", (2, 0)),
        (window_mask(9, 9, 5, causal=False).numpy(), "self", (2, 2)),
        (window_mask(9, 9, 5, causal=False).numpy(), "cross", None),
        (np.ones((9, 9), bool), "self", (8, 8)),
        (np.zeros((9, 9), bool), "self", None),
        (np.eye(9, k=1, dtype=bool) | np.eye(9, k=-1, dtype=bool), "self", None),
    ]:
        with subtests.test(mask=mask, kind=kind, band=band):
            got = layer_arrays(record(9, kind=kind, mask=mask), range(3), True)
            assert got["band"] == band
            assert (got["mask"] is None) == (band is not None or mask is None)


def test_what_was_encoded_of_a_run_goes_with_it() -> None:
    read, gone = record(9), record(9)
    kept, _ = (layer_arrays(one, range(3), True) for one in (read, gone))
    group_arrays(gone, "group", Group((), dict, 0))
    del gone
    forget_gone()
    for encoded in (layer_arrays, group_arrays):
        assert all(key[0]() is not None for key in encoded.cache)
    assert layer_arrays(read, range(3), True) is kept
