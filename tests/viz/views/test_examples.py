"""A model without examples of its own gets some: each head is called what its weights show."""

import numpy as np
import pytest

from tests.cases import cases
from tests.pages.reading import own
from viz.views.examples.cards import found_examples


@pytest.mark.slow
@cases("name", ["stories", "minilm", "translate-en-fr"])
def test_a_found_example_opens_a_head_that_may_be_called_so(name) -> None:
    model = own(name)
    found = found_examples(name)
    assert found
    for example in found:
        weights = model.trace(example.view.text).find(example.view.place).weights(example.view.head)
        rows, columns = np.indices(weights.shape)
        cells = {"Previous token": columns == rows - 1, "Next token": columns == rows + 1,
                 "Itself": columns == rows, "First token": columns == 0}  # fmt: skip
        said = float(example.look_for.rstrip(".").rpartition(" ")[2])
        if example.title in cells:
            meant = weights[cells[example.title] & (rows + columns > 0)]
            assert meant.mean() == pytest.approx(said, abs=0.1)
        assert weights[example.view.query].argmax() == example.view.key
