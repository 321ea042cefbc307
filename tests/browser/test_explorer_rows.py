"""What the explorer makes row by row is what it makes at once."""

import math
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Page

from model.nn.masks import window_mask
from tests.viz.explorer.records import record, sent

BY_ROW = """async ([block, head]) => {
    const { decodeLayer, deriveHead } = await import("/derive.js");
    const { isLarge } = await import("/steps.js");
    const { unpacked } = await import("/message.js");
    const layer = decodeLayer(unpacked(Uint8Array.from(atob(block), (letter) => letter.charCodeAt(0))).layer);
    const [whole, rows] = [deriveHead(layer, head), deriveHead(layer, head)];
    const steps = ["scores", "scaled", "capped", "biased", "masked"];
    steps.forEach((step) => whole[step]);
    const same = (one, other) =>
        one.length === other.length && one.every((value, n) => Object.is(value, other[n]));
    const made = steps.map((step) => [0, 1, 2049, layer.queries - 1].map((query) =>
        same(rows.row(step, query), whole[step].subarray(query * layer.keys, (query + 1) * layer.keys))));
    const shares = ["weights", "sinkWeights"].map((name) => same(rows[name], whole[name]));
    return { large: isLarge(layer), made, shares, kept: steps.filter(rows.has), all: steps.every(whole.has) };
}"""


@pytest.mark.parametrize("mask_value", [-math.inf, -1e9])
@pytest.mark.parametrize("window", [None, 100])
def test_a_long_texts_weights_are_made_row_by_row_with_the_same_numbers(
    modules: Page, mask_value: float, window: int | None
) -> None:
    """Bit for bit, and no other matrix is kept."""
    length = 2100
    attention = record(length, heads=2, width=4, mask_value=mask_value)
    distances = np.subtract.outer(np.arange(length), np.arange(length)).astype(np.float32)
    biased = replace(attention, cap=1.5, bias=-0.01 * distances[None], sinks=np.ones(2, np.float32))
    if window is not None:
        mask = window_mask(length, length, window, causal=True).numpy()
        biased = replace(biased, own_mask=mask, look_ahead=False)
    got = modules.evaluate(BY_ROW, [sent(biased), 1])
    assert got["large"]
    assert got["all"]
    assert np.all(got["made"])
    assert got["shares"] == [True, True]
    assert got["kept"] == []
