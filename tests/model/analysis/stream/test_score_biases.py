"""What a model adds to its scores, by distance and by term: the recorded numbers."""

from pathlib import Path

import numpy as np
import pytest

from model import Model, load_model
from model.analysis.stream.positions import bias_terms, biased, distance_bias
from tests.model.hub.test_adapters import built
from tests.model.hub_models import TEXT, save, traced


def test_alibi_of_our_own_is_a_slope_for_each_head() -> None:
    model = load_model("all-stages")
    trace = model.trace(TEXT)
    found = distance_bias(model, biased(trace)[0])
    assert found.slopes is not None
    np.testing.assert_allclose(found.slopes, [1 / 4, 1 / 16, 1 / 64, 1 / 256], rtol=1e-5)
    np.testing.assert_allclose(found.values[1, found.at(-16)], -1.0, rtol=1e-5)
    assert found.check < 1e-5


def test_buckets_are_rows_of_the_stacks_table() -> None:
    model = load_model("distance-buckets")
    trace = model.trace("The cat sat on the mat", "the dog")
    names = [attention.name for attention in biased(trace)]
    assert names == ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.1.self"]
    for attention in biased(trace):
        found = distance_bias(model, attention)
        table = model.module.state_dict()[f"{attention.stack}.position_bias.table.weight"]
        np.testing.assert_array_equal(found.values[2, found.at(0)], table[0, 2])
        np.testing.assert_array_equal(found.values[2, found.at(-1)], table[1, 2])
        if attention.stack == "encoder":
            np.testing.assert_array_equal(found.values[2, found.at(1)], table[9, 2])
        assert found.check == 0.0
        assert found.distances[-1] == (36 if attention.stack == "encoder" else 0)


@pytest.fixture(
    scope="module", params=["bloom", "mpt", "falcon alibi", "deberta-v3", "deberta c2p"]
)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    return load_model(str(save(folder, built(request.param), adds=False)), device="cpu")


def test_biases_of_the_hubs_models_are_what_was_added(opened: Model) -> None:
    trace = traced(opened)
    family = Path(opened.name).name
    for attention in biased(trace):
        found = distance_bias(opened, attention)
        assert (found is None) == family.startswith("deberta")
        if found is not None:
            assert found.check < 1e-5
            continue
        for head in range(attention.heads):
            terms = bias_terms(opened, attention, head)
            assert len(terms.terms) == (1 if "c2p" in family else 2)
            assert terms.check < 1e-5
            assert all(np.abs(term).max() > 0.01 for term in terms.terms.values())
    assert len(biased(trace)) == 2
