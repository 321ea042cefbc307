"""Asks a model the claims of papers, one after another."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.analysis.cost.timing import Turn
from model.papers import explanations, heads, next_token, sinks
from model.papers.claims import (
    HOLDS,
    HOLDS_NOT,
    NOT_ASKED,
    PaperClaim,
    PaperQuantity,
    PaperResult,
    brief,
    claims,
    distance,
    result_of,
)
from model.papers.subject import Measured, Subject
from model.system.border import at_border, check_name
from model.system.remote import asked

if TYPE_CHECKING:
    from model.run.model import Model

MEASUREMENTS: Mapping[str, Callable[[Subject], Measured]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        heads.induction,
        heads.second_half,
        heads.forming,
        heads.previous_token,
        next_token.longer_texts,
        heads.retrieval,
        next_token.copy_suppression,
        sinks.first_token,
        sinks.sink_values,
        sinks.massive,
        sinks.massive_at_zero,
        next_token.other_name,
        next_token.name_movers,
        next_token.greater_than,
        next_token.logit_lens,
        heads.copying,
        heads.successors,
        heads.syntax,
        explanations.shuffled_weights,
        explanations.adversarial_weights,
        explanations.erasure,
        explanations.relevance_propagation,
        explanations.value_zeroing,
        explanations.value_norms,
        explanations.rollout,
    )
}


@dataclass(frozen=True)
class Answered:
    """The results so far. done: claims, of `total`."""

    results: tuple[PaperResult, ...]
    done: int
    total: int


@at_border
def results(model: "Model", names: Sequence[str] = ()) -> tuple[PaperResult, ...]:
    """What a model answers to each claim, or to those of these names. Raises ValueError for another name.

    >>> from model.papers import results
    >>> (answer,) = results(model, ["first-token"])
    >>> answer.verdict
    'does not hold here'
    """
    *_, last = running(model, tuple(names))
    return last.results


@asked
@at_border
def running(
    model: "Model", names: Sequence[str] = (), turn: Turn = nullcontext
) -> Iterator[Answered]:
    """The same with progress, claim by claim. names: of the claims; none: all of them. turn: makes a context
    for each batch of passes; whoever raises there stops the work. Raises ValueError for another name.

    >>> from model.papers import running
    >>> [(answered.done, answered.total) for answered in running(model, ("first-token",))]
    [(0, 1), (1, 1)]
    """
    for name in names:
        check_name("claim of a paper", name, claims())
    wanted = [claims()[name] for name in names or claims()]
    subject = Subject(model, turn)
    answers: tuple[PaperResult, ...] = ()
    yield Answered(answers, 0, len(wanted))
    for claim in wanted:
        answers += (_answer(subject, claim),)
        yield Answered(answers, len(answers), len(wanted))


def _answer(subject: Subject, claim: PaperClaim) -> PaperResult:
    """One claim, asked of one model. What refuses a pass says why it cannot be asked."""
    begun, name = time.perf_counter(), subject.model.name
    try:
        subject.model.require_run()
        measured = MEASUREMENTS[claim.name](subject)
    except ValueError as refusal:
        seconds = time.perf_counter() - begun
        return result_of(claim, name, NOT_ASKED, str(refusal), seconds=seconds)
    holds = claim.rule.holds(measured.figure.value, measured.control.value, measured.error)
    # Figure, control and rule, and what else is known.
    apart = brief(distance(measured.figure.value, measured.control.value))
    error = "" if measured.error is None else f" (standard error {brief(measured.error)})"
    sentence = f"{brief(measured.figure.value)} beside {brief(measured.control.value)}, {apart} apart{error}."
    return result_of(
        claim,
        name,
        HOLDS if holds else HOLDS_NOT,
        " ".join(filter(None, (sentence, claim.rule.words, measured.note))),
        figure=PaperQuantity(measured.figure.value, measured.figure.unit),
        control=PaperQuantity(measured.control.value, measured.control.unit),
        prompts=measured.prompts,
        seeds=measured.seeds,
        seconds=time.perf_counter() - begun,
    )
