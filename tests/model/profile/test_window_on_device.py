"""A window of a profile on a device that is not the processor: what is copied from there are sums."""

import numpy as np

from model.profile.window import Profiled, window_sums
from tests.cases import cases
from tests.model.device import Crossings, device, moved
from tests.model.tiny import loaded, sentence


@cases("name", ["gpt", "llama", "bert", "translator", "all-stages"])
def test_neither_weights_nor_vectors_are_copied(name) -> None:
    here, crossings = loaded(name), Crossings()
    model, text = moved(loaded.__wrapped__(name), crossings), sentence(here)
    expected = window_sums(Profiled.of(here), text, 0, 64)
    _, tokens, width = here.trace(text).attention[0].query.shape
    with device(crossings):
        profiled = Profiled.of(model)
        crossings.clear()
        made = window_sums(profiled, text, 0, 64)
    for field, numbers in expected.numbers.items():
        np.testing.assert_array_equal(made.numbers[field], numbers, field)
    np.testing.assert_array_equal(made.examples.rows, expected.examples.rows)
    cells = [one for one in crossings.copied if f"{tokens}, {tokens})" in one]
    vectors = [one for one in crossings.copied if f", {tokens}, {width})" in one]
    assert not cells + vectors
    # What all sums and examples come in, and before it the norms that effects are read through.
    assert 0 < len(crossings.copied) <= 2
    assert not crossings.waited or expected.tokens > tokens  # a translator writes word by word
