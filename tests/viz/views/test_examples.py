"""A model without examples of its own gets some: each head is called what its weights show."""

import numpy as np
import pytest

from model.profile.shipped import shipped_profile
from tests.pages.reading import own, said, visit
from viz.state.presets import EXAMPLES
from viz.views.examples.cards import found_examples


@pytest.mark.slow
def test_a_found_example_opens_a_head_that_may_be_called_so(subtests: pytest.Subtests) -> None:
    for name in ["stories", "minilm", "translate-en-fr"]:
        with subtests.test(name=name):
            model = own(name)
            found = found_examples(name)
            assert found
            for example in found:
                weights = (
                    model.trace(example.view.text)
                    .find(example.view.place)
                    .weights(example.view.head)
                )
                rows, columns = np.indices(weights.shape)
                cells = {"Previous token": columns == rows - 1, "Next token": columns == rows + 1,
                         "Itself": columns == rows, "First token": columns == 0}  # fmt: skip
                said = float(example.look_for.rstrip(".").rpartition(" ")[2])
                if example.title in cells:
                    meant = weights[cells[example.title] & (rows + columns > 0)]
                    assert meant.mean() == pytest.approx(said, abs=0.1)
                assert weights[example.view.query].argmax() == example.view.key


def test_each_example_has_a_card_that_opens_it_and_shows_its_head() -> None:
    app = visit("examples")
    for example in EXAMPLES:
        assert f"**{example.title}** →" in said(app)  # by itself a page knows no other to link to
    shipped = {name: shipped_profile(name) for name in {one.view.model for one in EXAMPLES}}
    labels = [
        found.label((one.view.place, one.view.head))
        for one in EXAMPLES
        if (found := shipped[one.view.model]) is not None
    ]
    assert 0 < said(app).count("shipped profile: ") == len(labels) - labels.count(None)
    pictures = [one.proto.body for one in app.get("html") if "--head: url" in one.proto.body]
    assert len(pictures) == len(EXAMPLES)
    assert len(set(pictures)) == len(EXAMPLES)
