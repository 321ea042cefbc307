"""Every question is answered by the model itself: the answer is the real arg-max, the real change."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from model import Intervention, Model, Trace, load_model
from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import probabilities
from model.trace.records import Token
from tests.cases import cases
from viz.notation.labels import token_label
from viz.notation.names import state_names
from viz.questions import interventions, next_tokens, rows
from viz.questions.question import Question, QuestionMaker, Scene, first_clear
from viz.questions.show import MAKERS

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
KINDS = (
    interventions.without_scaling,
    interventions.leaking_mask,
    interventions.without_head,
)  # those that the tour asks
ALL = (*KINDS, *dict.fromkeys(maker for makers in MAKERS.values() for maker in makers))


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def run_of(model: str, text: str) -> Callable[[Intervention], Trace]:
    return cache(lambda intervention: loaded(model).trace(text, intervention=intervention))


def scene(
    text: str = TEXT, model: str = "house-gpt", place: str = "decoder.1.self", head: int = 7
) -> Scene:
    known = loaded(model)
    return Scene(run_of(model, text), known.tokenizer.named, place, head, known.unembed)


def chosen(question: Question) -> str:
    return question.options[question.answer]


def asked(
    maker: QuestionMaker, ground: Scene, numbers: Sequence[int] = range(13)
) -> list[Question]:
    made = [question for number in numbers if (question := maker(ground, number)) is not None]
    assert made
    return made


@cases("head", range(8))
def test_without_scaling_the_answer_is_what_the_changed_run_shows(head) -> None:
    ground = scene(place="decoder.0.self", head=head)
    changed = ground.run(Intervention(scale=1.0)).find(ground.place)
    for number in range(13):
        question = interventions.without_scaling(ground, number)
        before, after = (
            float(run.weights(head)[12 - number].max()) for run in (ground.attention, changed)
        )
        if question is None:
            assert number >= 11 or 0.01 < abs(after - before) < 0.05
            continue
        expected = {"It grows": 1, "It hardly moves": 0, "It shrinks": -1}[chosen(question)]
        assert expected == (0 if abs(after - before) <= 0.01 else np.sign(after - before))
        assert f"{before:.3f}" in question.numbers
        assert f"{after:.3f}" in question.numbers


def test_the_copying_head_copies_and_the_others_do_not() -> None:
    ground = scene()
    weights = {
        f"L{attention.layer}H{head}": attention.weights(head)
        for attention in ground.trace.attention
        for head in range(attention.heads)
    }
    for number in range(4):
        question = rows.copying_head(ground, number)
        # “Tom” at 12 stood at 0 before “Hill”, “ball” at 10 stood at 5 before the full stop.
        amounts = {name: weights[name][[12, 10], [1, 6]].mean() for name in question.options}
        assert sorted(amounts.values())[-2] <= 0.2 < 0.5 <= max(amounts.values())
        assert max(amounts, key=lambda name: amounts[name]) == chosen(question)
        before = rows.previous_head(ground, number)
        lines = {name: np.diagonal(weights[name], -1).mean() for name in before.options}
        assert max(lines, key=lambda name: lines[name]) == chosen(before)


def test_the_next_token_is_the_likeliest_and_the_others_are_real_ones() -> None:
    ground = scene()
    for number in range(13):
        question = next_tokens.next_token(ground, number)
        shares = probabilities(ground.trace.logits[12 - number])
        order = np.argsort(-shares)
        if shares[order[0]] - shares[order[1]] < 0.1:
            assert question is None
            continue
        assert question is not None
        (best,) = ground.named([int(order[0])])
        assert chosen(question) == f"“{token_label(best.text)}”"
        assert f"{shares[order[0]]:.4f}" in question.numbers


def test_lifting_the_mask_moves_the_loss_as_the_changed_run_says() -> None:
    ground = scene(place="decoder.0.self", head=3)
    question = asked(interventions.leaking_mask, ground, [0])[0]
    means = [
        float(
            torch.nn.functional.cross_entropy(
                torch.tensor(run.logits)[:-1], torch.tensor([one.id for one in run.tokens[1:]])
            )
        )
        for run in (ground.trace, ground.run(Intervention(mask="none")))
    ]
    assert [round(mean, 2) for mean in means] == [4.25, 3.33]
    assert chosen(question) == "It shrinks"
    assert re.search(r" 4\.25 .* 3\.33\b", question.numbers)


def test_a_question_prints_the_digits_that_its_runs_settle() -> None:
    """Scores times 20 leave one decimal of a loss, and two or three of a probability."""
    model = loaded("house-gpt")
    run = cache(lambda own: model.trace(TEXT, intervention=replace(own, scale=20.0)))
    ground = Scene(run, model.tokenizer.named, "decoder.0.self", 3, model.unembed)
    assert 0.01 < rounding(ground.trace) < 0.02
    (question,) = asked(interventions.leaking_mask, ground, [0])
    losses = re.findall(r"(?:loss of|from|to|was|now) \d+\.(\d+)", str(question))
    assert [len(decimals) for decimals in losses] == [1] * 5
    (question,) = asked(next_tokens.warmed, ground, [0])
    assert question.numbers == "It is now 0.44."
    (question,) = asked(next_tokens.next_token, ground, [0])
    assert re.search(r" 18\.8,.* 11\.9\.", question.why)


def test_the_state_from_which_on_a_token_comes_first_is_where_all_later_ones_agree() -> None:
    ground = scene()
    question = asked(next_tokens.settled_state, ground, [0])[0]
    firsts = [int(ground.unembed(x[-1:]).argmax()) for x in ground.trace.residual["decoder"]]
    names = state_names(ground.trace, "decoder")
    at = names.index(chosen(question))
    assert set(firsts[at:]) == {firsts[-1]}
    assert firsts[at - 1] != firsts[-1]
    (expected,) = ground.named([firsts[-1]])
    assert f"“{token_label(expected.text)}”" in question.prompt


@cases("text, model, place", [
    ("the cat saw the cat and the cat saw the dog", "minilm", "encoder.0.self"),
    ("the cat sees the cat", "translate-en-fr", "decoder.0.self"),
    ("Tom Hill saw a red ball", "house-gpt", "decoder.0.self"),
])  # fmt: skip
def test_no_head_is_said_to_copy_in_another_kind_of_model_or_where_no_word_comes_back(
    text, model, place
) -> None:
    assert rows.copying_head(scene(text, model, place, 0), 0) is None


def test_temperature_above_one_shrinks_the_likeliest_and_below_one_makes_it_grow() -> None:
    ground = scene("Tom saw a")
    warmer, colder = (next_tokens.warmed(ground, number) for number in (0, 1))
    assert warmer is not None
    assert colder is not None
    assert (chosen(warmer), chosen(colder)) == ("It shrinks", "It grows")


def test_what_a_head_is_needed_for_is_taken_from_the_changed_run() -> None:
    for head in range(8):
        ground = scene(place="decoder.0.self", head=head)
        own = ground.trace.logits
        without = interventions.without_head(ground, 0)
        logits = ground.run(Intervention(ablated=frozenset({("decoder.0.self", head)}))).logits
        assert logits is not None
        best = int(own[-1].argmax())
        before, after = (float(probabilities(run[-1])[best]) for run in (own, logits))
        if without is None:
            assert 0.01 < abs(after - before) < 0.05
            continue
        assert f"{before:.3f} and is now {after:.3f}" in without.numbers
        moved = 0 if abs(after - before) <= 0.01 else np.sign(after - before)
        assert moved == {"It grows": 1, "It hardly moves": 0, "It shrinks": -1}[chosen(without)]


@cases("maker", ALL)
def test_a_question_is_only_asked_where_the_model_can_answer_it(maker) -> None:
    hostile = "</script> *a* $x$ :red[b] 🦊 the the"
    for model, place in (
        ("minilm", "encoder.1.self"),
        ("translate-en-fr", "decoder.1.cross"),
        ("induction", "decoder.1.self"),
        ("stories", "decoder.1.self"),
    ):
        texts = ("the cat sleeps",) if model == "translate-en-fr" else ("a", hostile)
        for text in ("q",) if model == "induction" else texts:
            for number in range(3):
                question = maker(scene(text, model, place, 0), number)
                if question is not None:
                    assert all(question.options)
                    assert "nan" not in question.numbers + question.why


def test_questions_go_through_the_kinds_and_then_through_the_rows() -> None:
    ground, number, prompts = scene(), 0, []
    while made := first_clear(ground, KINDS, number):
        question, number = made
        prompts.append(question.prompt)
        if number > 12:
            break
    assert len(prompts) == len(set(prompts)) > 5


def test_a_sentence_of_one_token_asks_nothing_about_rows() -> None:
    ground: Scene = scene("a", "stories", "decoder.0.self", 0)
    assert isinstance(ground.trace.tokens[0], Token)
    assert first_clear(ground, KINDS[:2], 0) is None


@cases("options, answer", [(("a",), 0), (("a", "a"), 0), (("a", "b"), 2)])
def test_a_question_without_distinct_options_is_refused(options, answer) -> None:
    with pytest.raises(ValueError, match=r"[Oo]ption"):
        Question("?", options, answer, "", "")
