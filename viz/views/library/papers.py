"""Results of papers as cards: what a paper claims and printed, and what the open model answers. The models
that ship were asked beforehand; others are asked on a button."""

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import streamlit as st

from model.loading.registry import models, silent
from model.papers.claims import (
    HOLDS,
    HOLDS_NOT,
    NOT_ASKED,
    PaperClaim,
    PaperResult,
    PaperVerdict,
    brief,
    claims,
)
from model.papers.stored import has_stored, stored_results
from model.run.weights_hash import weights_hash
from viz.elements.one_of import open_one
from viz.notation.numbers import signed
from viz.notation.words import sentences_of
from viz.shell.background import AT_FIRST, SECONDS, Passes, PassesOf
from viz.shell.panel import Check, Panel, Table
from viz.state import url
from viz.state.engine import engine, visitor
from viz.state.look import loaded, require_ours
from viz.state.navigation import html_link, read_address
from viz.state.quota import page_runs
from viz.state.session import current

if TYPE_CHECKING:
    from model.papers.asking import Answered

say = sentences_of("library.papers")

PAPER = "paper"  # the parameter of a link that puts one card first
KEPT = 400  # answers, of all models
STYLE = Path(__file__).with_name("papers.css")
_WANTED = "papers-wanted"  # session state: a model and the names of claims that it is asked
_SIGNS: dict[PaperVerdict, tuple[str, str]] = {
    HOLDS: ("holds", "✓"),
    HOLDS_NOT: ("holds-not", "✗"),
    NOT_ASKED: ("not-asked", "–"),
}

AnswerKey = tuple[str, str]  # a model and a claim


def results_of_papers() -> Panel:
    """The claims of papers as cards, topic by topic, with what the open model has answered."""
    name = current().model
    require_ours(name)
    answers = known(name)
    left = tuple(
        claim for claim in claims() if claim not in answers and not _is_refused(name, claim)
    )
    if left and not _wanted(name):
        st.button(
            say("ask_model", left=len(left)),
            type="primary",
            key="papers-ask-all",
            on_click=_ask,
            args=(name, left),
        )
        open_one(
            "One claim",
            left,
            "papers-ask-one",
            named=lambda claim: claims()[claim].title,
            placeholder=say("or_one_of_them"),
            take=lambda claim: _ask(name, (claim,)),
            quiet=True,
            width=260,
        )
    return Panel(
        "papers",
        look_for=_told(name, list(answers.values())),
        picture=partial(_drawn, name),
        table=_table(list(answers.values())),
        check=_check(name),
    )


def _told(name: str, answers: Sequence[PaperResult]) -> str:
    """How many claims hold, in Markdown."""
    if not answers:
        return ""
    counts = Counter(one.verdict for one in answers)
    return say(
        "claims_hold_not",
        answers=len(answers),
        holds_counts=counts[HOLDS],
        short_title=models.short_title(name),
        holds_not_counts=counts[HOLDS_NOT],
        not_asked_counts=counts[NOT_ASKED],
    )


def known(name: str) -> Mapping[str, PaperResult]:
    """What a model has answered, by claim, in the order of the claims: now, or these weights beforehand."""
    beforehand = {one.name: one for one in _stored(name)}
    found = {claim: answer(name, claim) or beforehand.get(claim) for claim in claims()}
    return {claim: result for claim, result in found.items() if result is not None}


def answer(model: str, claim: str) -> PaperResult | None:
    """What a model answered to a claim now; None where it was not asked, or has not answered yet."""
    run = _answers().known((model, claim))
    if run is None or run.found is None or not run.complete:
        return None
    return run.found.results[0]


def _stored(name: str) -> Sequence[PaperResult]:
    """What these very weights answered beforehand."""
    if not has_stored(name):
        return ()
    return stored_results(name, _weights(name, loaded(name).changed))


@lru_cache(maxsize=8)
def _weights(name: str, changed: int) -> str:
    """The hash of a model's weights. changed: when its file was, in the key of the cache."""
    return weights_hash(loaded(name))


def _check(name: str) -> Check | None:
    stored = _stored(name)
    if not stored:
        return None
    begins = _weights(name, loaded(name).changed)[:12]
    return Check(
        say("answers_computed_beforehand", stored=len(stored), begins=begins),
        say("computed_weights"),
    )


@st.cache_resource
def _answers() -> "PassesOf[AnswerKey, Answered]":
    """The answers of this process, shared by all visitors."""
    return PassesOf(KEPT)


def _is_ended(name: str, claim: str) -> bool:
    """Whether there is nothing more to ask: it has answered, or refused."""
    return answer(name, claim) is not None or _is_refused(name, claim)


def _is_refused(name: str, claim: str) -> bool:
    run = _answers().known((name, claim))
    return run is not None and run.refusal is not None


def _wanted(model: str) -> tuple[str, ...]:
    """The claims that this visitor still waits for."""
    name, names = st.session_state.get(_WANTED, ("", ()))
    return tuple(one for one in names if name == model and not _is_ended(model, one))


def _ask(model: str, names: tuple[str, ...]) -> None:
    st.session_state[_WANTED] = model, (*_wanted(model), *names)


def _stop() -> None:
    st.session_state.pop(_WANTED, None)


def _drawn(name: str) -> None:
    st.html(STYLE)
    if _wanted(name):
        _under_way(name)
    else:
        _cards(name)


@st.fragment(run_every=SECONDS)
def _under_way(name: str) -> None:
    """The progress, with a button to stop, and the cards as they are answered. A claim that nobody looks at
    any more is not asked to its end."""
    page_runs.give_up()
    _go_on(name)
    left = _wanted(name)
    if not left:
        st.rerun()
    run = _answers().known((name, left[0]))
    _, names = st.session_state[_WANTED]
    done = len(names) - len(left)
    said = say("claims_asked_now", done=done, names=len(names), title=claims()[left[0]].title)
    line = say("queue_model_place", ahead=run.ahead) if run and run.ahead else ""
    bar, stop = st.columns([6, 1], vertical_alignment="center")
    bar.progress(done / len(names), text=said + line)
    stop.button("Stop", key="papers-stop", on_click=_stop)
    _cards(name)


def _go_on(name: str) -> None:
    """Asks one claim after another, as long as they are answered at once; the next look goes on."""
    until = monotonic() + AT_FIRST
    for claim in _wanted(name):
        run = _answers().started((name, claim), partial(_work, name, claim), visitor())
        run.look()
        if not run.ended.wait(max(until - monotonic(), 0)):
            return


def _work(name: str, claim: str, run: "Passes[Answered]") -> "Iterator[Answered]":
    from model.papers.asking import running  # imports torch: the page is drawn first

    return running(engine().model(name, silent), (claim,), run.turn)


def _cards(name: str) -> None:
    """All claims; that of the link first."""
    answers = known(name)
    st.html(_overview(answers))
    linked = claims().get(url.read({PAPER}).get(PAPER, ""))
    if linked is not None:
        st.html(f'<div class="papers">{_card(name, linked, answers)}</div>')
    others = [claim for claim in claims().values() if claim is not linked]
    for topic, grouped in groupby(others, attrgetter("topic")):
        cards = "".join(_card(name, claim, answers) for claim in grouped)
        st.html(f'<h2 class="topic">{html.escape(topic)}</h2><div class="papers">{cards}</div>')


def _overview(answers: Mapping[str, PaperResult]) -> str:
    """HTML: each claim as one square with the sign of its verdict, empty where it has none yet, and how many
    there are of each. A click leads to its card."""
    squares = []
    for claim in claims().values():
        result = answers.get(claim.name)
        kind, sign = ("", "") if result is None else _SIGNS[result.verdict]
        said = claim.title + (f": {result.verdict}" if result else "")
        words = html.escape(said, quote=True)
        squares.append(
            f'<a class="{kind}" href="#paper-{claim.name}" aria-label="{words}" title="{words}">{sign}</a>'
        )
    counts = Counter(one.verdict for one in answers.values())
    key = "".join(
        f"<span>{sign} {counts[verdict]} {verdict}</span>"
        for verdict, (_, sign) in _SIGNS.items()
        if counts[verdict]
    )
    return f'<nav class="verdicts" aria-label="Claims">{"".join(squares)}<p>{key}</p></nav>'


def _card(name: str, claim: PaperClaim, answers: Mapping[str, PaperResult]) -> str:
    """HTML of a card: the claim, what the model answers beside its control, what the paper has, and behind a
    click how it is asked."""
    result, paper = answers.get(claim.name), claim.figure_of_the_paper
    run = _answers().known((name, claim.name))
    verdict = '<span class="verdict not-asked">not asked yet</span>'
    here, how = "", [claim.measured, claim.rule.words]
    if run is not None and run.refusal:
        here = f'<p class="reason">{html.escape(run.refusal)}</p>'
    if result is not None:
        kind, sign = _SIGNS[result.verdict]
        verdict = f'<span class="verdict {kind}">{sign} {result.verdict}</span>'
        here = _pair(result)
        counts = [f"{result.prompts} texts"] if result.prompts else []
        how = [claim.measured, result.reason, f"{', '.join([*counts, f'{result.seconds:.1f} s'])}."]
    page, parameters = read_address(claim.link)
    return (
        f'<article class="paper" id="paper-{claim.name}"><h3>{html.escape(claim.title)}{verdict}</h3>'
        f"<p>{html.escape(claim.claim)}</p>{here}"
        f'<p class="quiet">Paper: {html.escape(paper.words)}</p>'
        f'<p class="source">{html.escape(paper.source)}</p>'
        f"<details><summary>How it is asked</summary><p>{html.escape(' '.join(how))}</p></details>"
        f"{html_link(page.file, say('see_on_text'), parameters)}</article>"
    )


def _pair(result: PaperResult) -> str:
    """HTML: figure and control as bars on one scale from 0, which reaches 1 or −1 at least, and why the claim
    does not hold; or why there are none."""
    if result.figure is None or result.control is None:
        return f'<p class="reason">{html.escape(result.reason)}</p>'
    pair = {"Here": result.figure, "Control": result.control}
    values = [one.value for one in pair.values()]
    end = max(1.0, *map(abs, values))
    low = -end if min(values) < 0 else 0.0
    high = 0.0 if low and max(values) <= 0 else end
    rows = "".join(
        f'<dt>{label}</dt><dd><span class="bar"><i style="left:{_share(min(one.value, 0), low, high)};'
        f'width:{_share(low + abs(one.value), low, high)}"></i>'
        f'<u style="left:{_share(0, low, high)}"></u></span>'
        f"<b>{html.escape(brief(one.value))}</b> {html.escape(one.unit)}</dd>"
        for label, one in pair.items()
    )
    ends = "".join(
        f"<span>{brief(at) if at % 1 else signed(f'{at:,.0f}')}</span>" for at in (low, high)
    )
    return f'<dl>{rows}<dd class="ends">{ends}</dd></dl>{_missed(result)}'


def _share(at: float, low: float, high: float) -> str:
    """Where a number lies on a scale, in CSS."""
    return f"{100 * (at - low) / (high - low):.1f}%"


def _missed(result: PaperResult) -> str:
    """HTML: under a claim that does not hold, what it would take."""
    if result.verdict != HOLDS_NOT or result.figure is None or result.control is None:
        return ""
    rule = claims()[result.name].rule
    missed = rule.unmet(result.figure.value, result.control.value) or [
        say("least_standard_errors", errors=rule.errors)
    ]
    return f'<p class="missed">✗ It would have to be {html.escape(" and ".join(missed))}.</p>'


def _table(known: Sequence[PaperResult]) -> Table | None:
    if not known:
        return None
    return Table(
        {
            "claim": [one.title for one in known],
            "paper": [one.source for one in known],
            "figure": [None if one.figure is None else one.figure.value for one in known],
            "unit": ["" if one.figure is None else one.figure.unit for one in known],
            "control": [None if one.control is None else one.control.value for one in known],
            "verdict": [one.verdict for one in known],
            "reason": [one.reason for one in known],
        }
    )
