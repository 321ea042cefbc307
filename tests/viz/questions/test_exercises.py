"""Exercises for a class: answers as PyTorch gives them, and other numbers on every sheet."""

import re
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor

from model.nn.places import head_label
from model.trace.trace import Logits
from tests.cases import cases
from tests.model.tiny import loaded, sentence, target
from tests.viz.questions.recomputed_exercises import RECOMPUTED, number, told
from viz.questions.exercises.exercise import Exercise, ExerciseKind, ExerciseSource
from viz.questions.exercises.kinds import KINDS, kinds_of, logit_difference, loss_of_a_token
from viz.questions.exercises.sheets import (
    PUPILS,
    ExerciseSheet,
    SheetHead,
    answers_page,
    sheets_of,
    sheets_page,
)

HOUSE = "Tom Hill saw a red ball. Anna gave the ball to Tom"
NAMES = ("house-gpt", "llama", "bert", "translator")  # causal, RMS norms, no mask, two stacks
ABOUT = SheetHead(
    "<b>A model</b>", "<script>alert(1)</script> & more", 5, "/attention?text=%3Cb%3E"
)


@cache
def source(name: str) -> ExerciseSource:
    model = loaded(name)
    text = HOUSE if name == "house-gpt" else sentence(model)
    return ExerciseSource(model.trace(text, target(model)), model.config, model.tokenizer.named)


@cache
def sheets(name: str, seed: int = 1, pupils: int = PUPILS) -> tuple[ExerciseSheet, ...]:
    return sheets_of(source(name), kinds_of(source(name)), seed, pupils)


def made(name: str, kind: str) -> list[Exercise]:
    """The exercises of one kind, of all pupils."""
    return [
        exercise
        for sheet in sheets(name)
        for known, exercise in zip(sheet.kinds, sheet.exercises, strict=True)
        if known.name == kind
    ]


SEEDS = 200


@cache
def drawn(name: str, kind: ExerciseKind) -> tuple[Exercise, ...]:
    """An exercise for each seed."""
    return tuple(kind.drawn(source(name), Random(seed)) for seed in range(SEEDS))


def test_whoever_calculates_with_what_is_printed_gets_each_digit_of_the_key(
    subtests: pytest.Subtests,
) -> None:
    for name in ("house-gpt", *NAMES[1:3]):
        for kind in kinds_of(source(name)):
            with subtests.test(kind=kind.name, name=name):
                for exercise in drawn(name, kind):
                    expected = RECOMPUTED[kind.name](exercise).double().reshape(-1).tolist()
                    digits = [each.digits for each in exercise.answers for _ in each.values]
                    written = [
                        part for each in exercise.answers for part in numbers_of(each.written)
                    ]
                    assert written == [
                        round(value, digit) + 0.0
                        for value, digit in zip(expected, digits, strict=True)
                    ], exercise.task


def numbers_of(written: str) -> list[float]:
    """Those of an answer as it is written, behind what it answers."""
    return [number(one) for one in written.rpartition(": ")[2].strip("()").split(", ")]


def test_an_exercise_has_something_to_calculate(subtests: pytest.Subtests) -> None:
    for name in ("house-gpt", *NAMES[1:3]):
        for kind in kinds_of(source(name)):
            with subtests.test(kind=kind.name, name=name):
                for exercise in drawn(name, kind):
                    fine = [each for each in exercise.answers if each.digits]
                    results = [value for each in fine for value in numbers_of(each.written)]
                    assert not {0.0, 1.0} & set(map(abs, results)), exercise.task
                    assert len(set(results)) > 1 or len(results) < 2, exercise.task
                answers = {exercise.answers for exercise in drawn(name, kind)}
                assert len(answers) > SEEDS / 8  # the tiny ones have few rows


@cases("name", NAMES)
def test_a_task_names_layers_in_words_and_no_two_axes_look_alike(name) -> None:
    for exercise in (one for sheet in sheets(name) for one in sheet.exercises):
        assert not re.search(r"(encoder|decoder)\.\d", exercise.task), exercise.task
    for exercise in made(name, "Cut into heads"):
        batch, heads, tokens, width = exercise.answers[0].values
        assert batch not in (heads, tokens, width, exercise.answers[1].values[-1])


def run_again(name: str, exercise: Exercise) -> tuple[Tensor, Tensor, list[int], int]:
    """The scaled and masked scores (key,) of the row that a task names, the values, its keys, its head."""
    trace = source(name).trace
    head, query = re.search(r"In head (.+?), row of .*? \((\d+)\)[:,]", exercise.task).groups()
    (attention, at) = next(
        (one, number)
        for one in trace.attention
        for number in range(one.heads)
        if head_label((one.name, number)) == head
    )
    q, k, v = (
        torch.tensor(x[at]).double() for x in (attention.query, attention.key, attention.value)
    )
    scores = q[int(query)] @ k.T * attention.scale
    if attention.mask is not None:
        scores[~torch.tensor(attention.mask[int(query)])] = -torch.inf
    keys = [int(re.search(r"\((\d+)\)$", label)[1]) for label in exercise.labels if "(" in label]
    return scores, v, keys, int(query)


@cases("name", NAMES)
def test_the_models_own_numbers_are_those_of_a_pass_through_pytorch(name) -> None:
    rows = list(RECOMPUTED)[2:8]
    for kind, exercise in ((row, one) for row in rows for one in made(name, row)):
        scores, values, keys, _ = run_again(name, exercise)
        weights = torch.softmax(scores, 0)
        own = [value for answer in exercise.answers for value in answer.own]
        if kind == "Softmax of a row":
            expected = torch.softmax(scores[keys], 0)
        elif kind == "Entropy of a row":
            expected = torch.special.entr(weights).sum()[None]
        elif kind == "A weighted sum":
            entry = int(told(r"calculate entry (\d+)", exercise))
            expected = (weights @ values)[entry][None]
        elif kind == "A scaled score":
            expected = scores[int(told(r"for the key .* \((\d+)\):", exercise))][None]
            own = own[1:]
        elif kind == "The largest weight":
            best = scores[keys].sort(descending=True).values
            expected = torch.exp(best[0] - best[1])[None]
        else:
            hidden = int(told(r"mask the key .* \((\d+)\) and", exercise))
            without = scores.clone()
            without[hidden] = -torch.inf
            expected = torch.softmax(without, 0)[[key for key in keys if key != hidden]]
        assert own == pytest.approx(expected.tolist(), rel=2e-4, abs=2e-5), exercise.task


@cases("name", NAMES)
def test_the_answers_are_the_models_own_numbers_but_for_the_rounding(name) -> None:
    compared = 0
    for sheet in sheets(name):
        for exercise in sheet.exercises:
            for answer in exercise.answers:
                if answer.own:
                    compared += 1
                    assert answer.values == pytest.approx(
                        answer.own, rel=0.01, abs=10**-answer.digits
                    ), exercise
    assert compared > 10 * PUPILS


@cases("name", NAMES)
def test_no_two_pupils_have_the_same_sheet_and_a_seed_gives_the_same_ones_again(name) -> None:
    of_class = sheets(name)
    assert [sheet.pupil for sheet in of_class] == list(range(1, PUPILS + 1))
    assert len({sheet.exercises for sheet in of_class}) == PUPILS
    for column in zip(*(sheet.exercises for sheet in of_class), strict=True):
        assert len(set(column)) > PUPILS / 3  # nor do they share many exercises
    again = sheets_of(source(name), kinds_of(source(name)), 1, 7)
    assert again == of_class[:7]  # however many pupils there are
    assert not {sheet.exercises for sheet in sheets(name, 2)} & {
        each.exercises for each in of_class
    }


def test_there_are_twelve_kinds_or_more_for_every_model() -> None:
    assert [len(kinds_of(source(name))) for name in NAMES] == [14, 14, 12, 14]
    assert len({kind.name for kind in KINDS}) == len(KINDS) == len(RECOMPUTED)


def test_the_pupils_file_begins_a_page_each_and_tells_no_answer() -> None:
    few = sheets("house-gpt", 5, 3)
    asked, solved = (page(few, ABOUT).decode() for page in (sheets_page, answers_page))
    for page in (asked, solved):
        assert page.count('<section class="sheet">') == 3
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
        assert "Plotly.newPlot" in page  # the script of a page without pictures
        assert len(page) < 2_000_000  # but not Plotly itself
    for sheet in few:
        for exercise in sheet.exercises:
            written = [answer.written for answer in exercise.answers]
            assert not any(step in asked for step in exercise.steps)
            assert all(answer.replace("&", "&amp;") in solved for answer in written)


def test_a_sheet_names_no_address_where_pupils_cannot_open_one() -> None:
    few = sheets("house-gpt", 5, 3)
    assert b"Open it" in sheets_page(few, ABOUT)
    assert b"Open it" not in sheets_page(few, replace(ABOUT, link=None))


@cases("kinds, pupils, sentence_of_refusal", [
    ((), 3, "Choose at least one kind"),
    (KINDS, 0, "1 to 40 pupils, not 0"),
    (KINDS, 41, "1 to 40 pupils, not 41"),
])  # fmt: skip
def test_a_class_out_of_bounds_is_refused(kinds, pupils, sentence_of_refusal) -> None:
    with pytest.raises(ValueError, match=sentence_of_refusal):
        sheets_of(source("house-gpt"), kinds, 1, pupils)


def test_a_sentence_too_short_for_exercises_is_refused() -> None:
    model = loaded("gpt")
    short = ExerciseSource(model.trace("the cat"), model.config, model.tokenizer.named)
    rows = [kind for kind in KINDS if kind.name == "Softmax of a row"]
    with pytest.raises(ValueError, match="Type a longer sentence"):
        sheets_of(short, rows, 1, 1)
    three = ExerciseSource(model.trace("the cat saw"), model.config, model.tokenizer.named)
    with pytest.raises(ValueError, match=r"give \d different sheets on this sentence, and 40"):
        sheets_of(three, rows, 1, 40)
    assert np.isfinite(sheets_of(three, rows, 1, 2)[0].exercises[0].answers[0].values).all()


@cases("kind", [kind for kind in KINDS if kind.make in (logit_difference, loss_of_a_token)])
def test_logits_too_far_apart_to_calculate_with_are_refused_in_a_sentence(kind) -> None:
    known = source("house-gpt")
    tokens, vocabulary = known.trace.require_prediction().shape
    apart = np.tile(np.arange(vocabulary, dtype=np.float32) * -1_000, (tokens, 1))
    wide = replace(known, trace=replace(known.trace, prediction=Logits.of(apart)))
    with pytest.raises(ValueError, match=kind.name):
        kind.drawn(wide, Random(1))
