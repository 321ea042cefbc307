"""A weight set by hand: that cell has it, and the rest of its row shares what is left."""

import numpy as np
import pytest
import torch

from model import Intervention, Model
from model.nn.attention import with_weights_set
from model.nn.patches import Patch
from model.trace.trace_file import read_trace, trace_file
from tests.cases import cases
from tests.model.tiny import loaded, of_shape, run

ON_EVERY_SHAPE = pytest.mark.parametrize("name", ["gpt", "llama", "bert", "translator"])
NEAR = 2e-5


def set_to(*cells: tuple[int, int, int, float], place: str) -> Intervention:
    return Intervention(weights=frozenset((place, *cell) for cell in cells))


def last_place(model: Model) -> str:
    return model.attention_names[-1]


@ON_EVERY_SHAPE
@cases("explicit", [False, True])
def test_the_cell_has_its_weight_and_the_others_keep_their_proportions(explicit, name: str) -> None:
    model = loaded(name)
    place, before = last_place(model), run(model)
    after = run(model, set_to((1, 3, 2, 0.25), (1, 3, 0, 0.5), place=place), explicit=explicit)
    was, now = before.find(place).weights(1), after.find(place).weights(1)
    assert (now[3, 2], now[3, 0]) == (0.25, 0.5)
    others = [key for key in range(was.shape[1]) if key not in (0, 2)]
    np.testing.assert_allclose(
        now[3, others], was[3, others] / was[3, others].sum() * 0.25, atol=NEAR
    )
    rows = [query for query in range(len(was)) if query != 3]
    np.testing.assert_allclose(now[rows], was[rows], atol=NEAR)
    np.testing.assert_allclose(
        after.find(place).weights(0), before.find(place).weights(0), atol=NEAR
    )
    np.testing.assert_allclose(
        after.find(place).output[1], now @ after.find(place).value[1], atol=NEAR
    )
    assert after.check() < NEAR


@cases("name", of_shape("decoder", among=("gpt", "llama", "attention-only")))
def test_zero_is_an_edge_cut_in_one_head_and_one_takes_the_whole_row(name) -> None:
    model = loaded(name)
    place = last_place(model)
    cut = run(model, Intervention(blocked=frozenset({(4, 1)}), only=frozenset({place})))
    zero = run(model, set_to((2, 4, 1, 0.0), place=place))
    np.testing.assert_allclose(zero.find(place).output[2], cut.find(place).output[2], atol=NEAR)
    assert not np.allclose(zero.find(place).output[1], cut.find(place).output[1], atol=NEAR)
    whole = run(model, set_to((2, 4, 1, 1.0), place=place)).find(place)
    np.testing.assert_allclose(whole.output[2][4], whole.value[2][1], atol=NEAR)


def test_a_row_with_no_other_key_keeps_what_was_set_alone() -> None:
    model = loaded("gpt")
    for weight in (0.0, 0.5):
        found = run(model, set_to((0, 0, 0, weight), place="decoder.0.self")).find("decoder.0.self")
        assert found.weights(0)[0].tolist() == [weight] + [0.0] * (len(found.weights(0)) - 1)
        assert found.check() < NEAR


def test_a_trace_file_keeps_what_was_set_and_where_parts_came_from() -> None:
    model = loaded("gpt")
    for intervention in (
        set_to((0, 3, 1, 0.125), place="decoder.1.self"),
        Intervention(
            patch=Patch(
                "gpt", "a dog saw the lion on a tiger", frozenset({("head", "decoder.1.self", 2)})
            )
        ),
    ):
        trace = model.trace("the cat saw the cat on the mat", intervention=intervention)
        again = read_trace(trace_file(trace))
        assert again.intervention == intervention
        np.testing.assert_array_equal(
            again.find("decoder.1.self").weights(0), trace.find("decoder.1.self").weights(0)
        )


def test_what_cannot_be_set_is_refused_in_a_sentence() -> None:
    model = loaded("gpt")
    with pytest.raises(ValueError, match="the mask hides that key"):
        run(model, set_to((0, 1, 3, 0.5), place="decoder.0.self"))
    with pytest.raises(ValueError, match="heads 0 to 2, not 3"):
        run(model, set_to((3, 1, 0, 0.5), place="decoder.0.self"))
    with pytest.raises(ValueError, match="have no weight to set"):
        run(model, set_to((0, 30, 0, 0.5), place="decoder.0.self"))
    with pytest.raises(ValueError, match="no attention sub-layer"):
        run(model, set_to((0, 1, 0, 0.5), place="decoder.9.self"))
    with pytest.raises(ValueError, match=r"sum to 1\.1"):
        set_to((0, 3, 0, 0.6), (0, 3, 1, 0.5), place="decoder.0.self")
    with pytest.raises(ValueError, match="set to two values"):
        set_to((0, 3, 0, 0.6), (0, 3, 0, 0.1), place="decoder.0.self")
    for wrong in (1.5, -0.1, float("nan"), "1"):
        with pytest.raises(ValueError, match="a weight from 0 to 1"):
            set_to((0, 3, 0, wrong), place="decoder.0.self")  # type: ignore[arg-type]


def test_a_gradient_goes_through_a_row_that_has_no_other_key() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.4, 0.6]]], requires_grad=True)  # (H, T, S)
    with_weights_set(weights, [(0, 0, 0, 0.5), (0, 1, 0, 0.5)])[0, :, :].square().sum().backward()
    assert weights.grad.isfinite().all()
