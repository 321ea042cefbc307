"""The experiments on the page: a guess is answered by the visitor's own run, with its numbers, or by an
example where that cannot show it; and views with controls."""

import html
import json
import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.analysis.stream.deep_stack import DeepStack, gradient_sizes
from model.analysis.stream.feed_forward import strongest
from model.loading.registry import models
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.tiny import sentence
from tests.pages.reading import choose, drawn, numbers, own, press, said, visit
from viz.notation.numbers import fixed
from viz.state.link import View
from viz.views.experiments.experiments import experiments, named
from viz.views.experiments.guesses import WIDTHS

FIRST = View()
REPEATED = "cat dog mat hat cup cat dog mat hat cup cat"
SENTENCES = {"house-gpt": FIRST.text, "stories": REPEATED}


def answered(show: str, guess: int, **parameters: str) -> AppTest:
    """The page after a guess, by its number."""
    app = visit("experiments", show=show, **parameters)
    one = named(show)
    assert not verdicts(app)
    app.segmented_control(key=f"guess-{show}").set_value(one.choices[guess]).run()
    assert not app.exception
    return app


def verdicts(app: AppTest) -> list[tuple[str, str, str]]:
    """What is said of the guess, and the number before and after, of each verdict on the page."""
    found = []
    for one in app.get("html"):
        if match := re.search(
            r'verdict"><b>(.*?)</b>.*?<span>(.*?) →</span> (.*?)</span>', one.proto.body
        ):
            said, before, after = map(html.unescape, match.groups())
            found.append((said, before, after))
    return found


def verdict(app: AppTest) -> tuple[str, str, str]:
    (found,) = verdicts(app)
    return found


def run(model: str, text: str, **change: object) -> Trace:
    return own(model).trace(text, intervention=Intervention(**change))  # type: ignore[arg-type]


def loss(trace: Trace) -> float:
    """The mean cross-entropy, by PyTorch."""
    ids = torch.tensor([token.id for token in trace.tokens])
    logits = torch.tensor(trace.logits)
    return float(torch.nn.functional.cross_entropy(logits[:-1], ids[1:]))


def following(trace: Trace) -> torch.Tensor:
    """The probabilities of the next token."""
    return torch.tensor(trace.require_prediction().after(-1)).softmax(-1)


def way(before: str, after: str) -> int:
    """Which of three choices holds: it rises, stays, falls."""
    return 1 - int(np.sign(float(after) - float(before)))


LOSSES: dict[str, dict[str, object]] = {
    "No mask": {"mask": "none"},
    "Without one head": {"ablated": frozenset({("decoder.1.self", 7)})},
}


@pytest.mark.parametrize("show", LOSSES)
def test_the_loss_of_both_runs_is_pytorchs_and_decides_the_verdict(show: str) -> None:
    before, after = (
        fixed(loss(run("house-gpt", FIRST.text, **change)), 2) for change in ({}, LOSSES[show])
    )
    right = way(before, after)
    for guess in range(3):
        words, *moved = verdict(answered(show, guess))
        assert moved == [before, after]
        assert (words == "Right.") == (guess == right)


def test_the_word_that_the_model_is_surest_of_stands_out_before_the_guess() -> None:
    app = visit("experiments", show="No mask", model="house-gpt", text=FIRST.text)
    (table,) = [one.proto.body for one in app.get("html") if 'class="moving"' in one.proto.body]
    (most,) = re.findall(r'<tr class=most><th scope="row">(.*?)</th>', table)
    trace = run("house-gpt", FIRST.text)
    logits = torch.tensor(trace.logits)[:-1].softmax(-1)
    ids = torch.tensor([token.id for token in trace.tokens])[1:]
    sure = logits[torch.arange(len(ids)), ids]
    assert most == trace.tokens[int(sure.argmax()) + 1].text.replace(" ", "·")


def test_another_sentence_and_model_have_a_verdict_of_their_own() -> None:
    before, after = (
        fixed(loss(run("stories", REPEATED, **one)), 2) for one in ({}, {"mask": "none"})
    )
    _, *moved = verdict(answered("No mask", 0, model="stories", text=REPEATED))
    assert moved == [before, after]
    assert float(before) - float(after) > 5


def test_entropy_is_that_of_all_rows_with_the_division_and_without() -> None:
    def entropy(trace: Trace) -> float:
        rows = np.concatenate(
            [one.weights(head) for one in trace.attention for head in range(one.heads)]
        ).astype(np.float64)
        return float(-(rows * np.log(np.where(rows > 0, rows, 1))).sum(-1).mean())

    words, *moved = verdict(answered("No scaling", 2))
    runs = run("house-gpt", FIRST.text), run("house-gpt", FIRST.text, scale=1.0)
    assert moved == [fixed(entropy(one), 2) for one in runs]
    assert words == "Right."


def test_an_encoder_without_positions_gives_both_orders_the_same_vectors_and_a_gpt_does_not() -> (
    None
):
    words, _, encoder = verdict(
        answered("No positions", 1, model="minilm", text="a dog saw red cats")
    )
    assert words == "Right."
    assert encoder in ("0.00", "<0.01")
    words, before, gpt = verdict(answered("No positions", 0))
    assert words == "Right."
    one, other = FIRST.text, "Tom saw Hill a red ball. Anna gave the ball to Tom"
    apart = []
    for change in ({}, {"positions": False}):
        first, second = (
            run("house-gpt", text, **change).residual["decoder"][-1] for text in (one, other)
        )
        second = second[[0, 2, 1, *range(3, len(second))]]
        gap = np.linalg.norm(first - second, axis=-1) / np.linalg.norm(first, axis=-1)
        apart.append(fixed(float(gap.max()), 2))
    assert [before, gpt] == apart


def test_the_hidden_word_is_the_chosen_one_and_the_probability_that_of_its_run() -> None:
    app = answered("Hidden word", 1)
    ours = following(run("house-gpt", FIRST.text))
    top = int(ours.argmax())

    def moved(hidden: int) -> list[str]:
        theirs = following(run("house-gpt", FIRST.text, hidden={hidden}))
        return [fixed(float(one[top]), 2) for one in (ours, theirs)]

    words, *first = verdict(app)
    assert (words, first) == ("Right.", moved(1))
    choose(app, "Hidden word", 3)
    words, *then = verdict(app)
    assert (words == "Right.") == (float(moved(3)[1]) < 0.5)
    assert then == moved(3)


def test_a_row_without_keys_is_zero_and_drawn_so() -> None:
    app = answered("Row without keys", 1)
    assert verdict(app) == ("Right.", "1.00", "0.00")
    cells = drawn(app, "heatmap", "z", -1)
    count = len(run("house-gpt", FIRST.text).tokens)
    before, after = cells[:, :count], cells[:, count + 1 :]
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert np.isfinite(before[-1]).any()
    assert not np.nansum(after[-1])


@pytest.mark.parametrize("model", SENTENCES)
def test_the_narrowest_window_that_keeps_the_loss_decides_how_far_back_it_reads(model: str) -> None:
    text = SENTENCES[model]
    full, count = loss(run(model, text)), len(own(model).tokens(text))
    lost = {width: loss(run(model, text, window=width)) for width in WIDTHS if width < count}
    good = [width for width in lost if all(lost[one] - full < 0.05 for one in lost if one >= width)]
    found = min(good, default=count)
    right = 0 if found <= count / 4 else 1 if found <= count / 2 else 2
    words, *moved = verdict(answered("Sliding window", right, model=model, text=text))
    assert words == "Right."
    assert moved == [fixed(full, 2), fixed(lost.get(found, full), 2)]


def test_where_the_model_has_no_sinks_the_example_answers_and_is_named() -> None:
    app = answered("No sinks", 1)
    example = named("No sinks").example  # type: ignore[union-attr]
    view = example.view
    assert view.text in said(app)
    weights = [
        run(view.model, view.text, **change).find("decoder.0.self").weights(view.head)
        for change in ({}, {"sinks": False})
    ]
    row = int(weights[0].sum(-1).argmin())
    assert verdict(app) == ("Right.", *(fixed(float(one[row].sum()), 2) for one in weights))
    assert app.session_state["view"].text == FIRST.text  # the visitor keeps the sentence


@pytest.mark.slow
@pytest.mark.parametrize("show", [one.show for one in experiments()])
@cases("model", sorted(models))
def test_every_experiment_on_every_model_draws_or_says_why_not(model, show: str) -> None:
    app = visit("experiments", show=show, model=model, text=sentence(own(model)))
    one = named(show)
    for guess in one.choices[:1] if one else ():
        app.segmented_control(key=f"guess-{show}").set_value(guess).run()
        assert not app.exception
        assert len(verdicts(app)) == 1
    assert not app.error
    assert app.get("plotly_chart") or verdicts(app) or said(app)
    assert "nan" not in said(app).lower()


def test_the_gradients_drawn_are_those_measured_and_each_control_changes_them() -> None:
    app = visit("experiments", show="Gradient")
    np.testing.assert_allclose(
        drawn(app, "scatter", "y", 1), gradient_sizes(DeepStack(), shortcuts=False)
    )
    choose(app, "Norms", "pre")
    press(app, "Draw other weights")
    choose(app, "Blocks", 8)
    stack = DeepStack(depth=8, norms="pre", seed=1)
    for at, shortcuts in enumerate((True, False)):
        expected = gradient_sizes(stack, shortcuts=shortcuts)
        np.testing.assert_allclose(drawn(app, "scatter", "y", at), expected)


def dropout(model: str, **head: str) -> AppTest:
    return visit("experiments", show="Dropout", model=model, text=sentence(own(model)), **head)


def test_dropout_changes_the_weights_and_with_p_0_nothing() -> None:
    app = dropout("stories", place="decoder.1.self", head="2")
    trace = own("stories").trace(sentence(own("stories")))
    attention = trace.find("decoder.1.self")
    weights, allowed = attention.weights(2), attention.mask
    assert allowed is not None
    choose(app, "Rate p", 0.5)
    first = drawn(app, "heatmap", "z", -1)
    kept = allowed & (first > 0)
    np.testing.assert_allclose(first[kept], 2 * weights[kept], rtol=1e-5)
    assert (first[allowed] == 0).any()
    press(app, "Draw again")
    assert not np.array_equal(first[allowed], drawn(app, "heatmap", "z", -1)[allowed])
    choose(app, "Rate p", 0.0)
    np.testing.assert_allclose(drawn(app, "heatmap", "z", -1)[allowed], weights[allowed])


@cases("model", ["stories", "minilm", "translate-en-fr"])
def test_dropout_has_four_places_each_with_what_it_changes(model) -> None:
    app = dropout(model)
    for place in ("Embedding", "Attention weights", "Sub-layer output", "Neurons"):
        choose(app, "Dropout on", place)
        assert re.search(r"stream [^*]* moves by \*\*[\d.]+%\*\*", said(app))
    assert ("A real pass" in said(app)) == (model == "translate-en-fr")
    choose(app, "Values", "Mask")
    assert set(np.unique(drawn(app, "heatmap", "z", -1))) == {0, 1}
    choose(app, "Values", "Before")
    record = own(model).trace(sentence(own(model)), record="full").feed_forward[0]
    traces = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    (cells,) = (trace for trace in traces if trace["type"] == "heatmap")
    assert cells["zmin"] <= numbers(cells["z"]).min()
    assert (cells["zmin"] == -cells["zmax"]) == (numbers(cells["z"]).min() < -cells["zmax"] / 2)
    np.testing.assert_allclose(
        drawn(app, "heatmap", "z", -1), record.hidden[:, strongest(record.hidden, 24)], rtol=1e-6
    )


def test_a_text_of_ones_own_may_steer_and_an_encoder_says_why_not() -> None:
    app = visit("experiments", show="Steer", text="He was")
    assert app.get("plotly_chart")
    assert verdicts(app) == []
    app = visit("experiments", show="Steer", model="minilm", text="a cat")
    assert not app.get("plotly_chart")
    assert "does not continue" in said(app)
