"""Experiments that ask for a guess: what is called right is what the model's numbers bear out."""

import numpy as np
import pytest
import torch

from model.analysis.run_comparison import losses, row_statistics
from model.analysis.stream.deep_stack import DeepStack, gradient_sizes
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from model.training.claims import CLAIMS, SEEDS, curves, shipped_runs
from tests.model.tiny import loaded
from viz.state.link import from_link
from viz.state.navigation import read_address
from viz.state.presets import PATCHES, PRESETS, Preset
from viz.views.experiments.experiments import TRAINED, experiments

BY_TITLE = {one.title: one for one in experiments() if one.topic != TRAINED}


def answer(title: str) -> str:
    """The guess that is called right."""
    return BY_TITLE[title].choices[BY_TITLE[title].right]


def runs(title: str) -> tuple[Trace, Trace]:
    """The unchanged run of a preset, and the changed one."""
    (preset,) = (one for one in PRESETS if one.title == title)
    model = loaded(preset.view.model)
    text = preset.view.text
    return model.trace(text), model.trace(text, intervention=preset.view.intervention)


def chance(trace: Trace, word: str) -> float:
    """The probability of a word after the last token."""
    model = loaded(trace.model)
    (token,) = (one for one in model.tokens(f"a {word}") if one.text.strip() == word)
    return float(torch.tensor(trace.require_prediction().after(-1)).softmax(-1)[token.id])


def test_every_preset_and_every_claim_is_asked_once_and_opens_its_view() -> None:
    presets = [one for one in experiments() if one.setting]
    assert sorted(one.title for one in presets) == sorted(one.title for one in (*PRESETS, *PATCHES))
    asked = [one.question for one in experiments()]
    assert len({*asked}) == len(asked)
    for one in experiments():
        assert 0 <= one.right < len(one.choices) == len({*one.choices})
        assert one.answer
        assert "<img" in one.picture
        page, parameters = read_address(one.link)
        assert parameters.get("show", page.views[0]) in page.views
    by_title: dict[str, Preset] = {one.title: one for one in (*PRESETS, *PATCHES)}
    for one in presets:
        view, problems = from_link(read_address(one.link)[1])
        assert (view, problems) == (by_title[one.title].view, ())


def test_without_scaling_weights_pile_up() -> None:
    before, after = (
        np.mean([row_statistics(each).entropy.mean() for each in run.attention])
        for run in runs("No scaling")
    )
    assert after < before / 2
    assert "pile up" in answer("No scaling")


def test_without_the_mask_the_loss_falls() -> None:
    before, after = (losses(run).mean() for run in runs("No mask"))
    assert after < before
    assert "falls" in answer("No mask")


def test_without_positions_an_encoder_does_not_know_the_order_and_a_gpt_still_does() -> None:
    _, encoder = runs("No positions")
    rows = [at for at, token in enumerate(encoder.tokens) if token.text.strip() == "the"]
    first, second = (encoder.residual["encoder"][-1][row] for row in rows)
    assert np.allclose(first, second, atol=1e-5)
    gpt = loaded("stories").trace("the cat the cat", intervention=Intervention(positions=False))
    first, second = (gpt.residual["decoder"][-1][row] for row in (1, 3))
    assert not np.allclose(first, second, atol=1e-2)
    assert "encoder does" in answer("No positions")


def test_one_head_less_and_the_list_is_hardly_copied() -> None:
    before, after = (np.exp(-losses(run))[-4:].mean() for run in runs("Without one head"))
    assert before > 0.98
    assert after < 0.25
    assert answer("Without one head") == "Hardly"


def test_a_hidden_surname_is_no_longer_known() -> None:
    before, after = (chance(run, "Hill") for run in runs("Padding"))
    assert before > 0.5 > after
    assert "no longer" in answer("Padding")


def test_a_row_without_keys_is_zero() -> None:
    _, after = runs("One edge cut")
    assert not after.find("decoder.0.self").weights(1)[0].any()
    assert answer("One edge cut") == "It is zero"


def test_five_tokens_are_enough_to_copy_and_four_are_not() -> None:
    (preset,) = (one for one in PRESETS if one.title == "Sliding window")
    model = loaded(preset.view.model)
    copied = {
        width: np.exp(
            -losses(model.trace(preset.view.text, intervention=Intervention(window=width)))
        )[-4:].min()
        for width in (3, 4, 5)
    }
    assert [width for width, least in copied.items() if least > 0.9] == [5]
    assert answer("Sliding window") == "5 tokens"


def test_the_weight_of_a_sink_goes_to_all_keys_by_one_factor() -> None:
    before, after = (run.find("decoder.0.self").weights(1)[-1] for run in runs("No sinks"))
    factors = after[before > 0] / before[before > 0]
    assert factors == pytest.approx(np.full(len(factors), factors[0]), rel=1e-4)
    assert factors[0] > 1.001
    assert "by one factor" in answer("No sinks")


def test_without_shortcuts_the_first_layers_learn_least() -> None:
    sizes = gradient_sizes(DeepStack(), shortcuts=False)
    assert sizes[0] < min(sizes[1:])
    assert answer("No shortcuts") == "The first"


def test_a_claim_is_called_right_where_every_seed_ends_in_its_order(
    subtests: pytest.Subtests,
) -> None:
    for claim in CLAIMS:
        with subtests.test(claim=claim.title):
            runs = shipped_runs()
            sign = -1 if claim.measure == "repeat_accuracy" else 1
            ends = {
                name: sign * curves(runs, variant, claim.measure)[1][:, -1]
                for name, variant in claim.variants.items()
            }
            orders = [ends[better] < ends[worse] for better, worse in claim.better]
            (asked,) = (
                one for one in experiments() if one.topic == TRAINED and one.title == claim.title
            )
            expected = 0 if np.all(orders) else 1 if np.any(orders) else 2
            assert asked.right == expected
            assert len(orders[0]) == len(SEEDS)
