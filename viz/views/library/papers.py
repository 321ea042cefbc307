"""Results of papers as cards: what a paper claims and printed, and what the open model answers once it was
asked."""

import html
from collections.abc import Iterator, Sequence
from functools import partial
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
    claims,
)
from model.papers.report import summary
from viz.notation.markdown import plain
from viz.shell.background import AT_FIRST, SECONDS, Passes, PassesOf
from viz.shell.model_picker import choose_model
from viz.shell.panel import Panel, Table
from viz.state import url
from viz.state.engine import engine, visitor
from viz.state.look import require_ours
from viz.state.navigation import html_link, read_address
from viz.state.session import current
from viz.state.shares import page_runs

if TYPE_CHECKING:
    from model.papers.asking import Answered

PAPER = "paper"  # the parameter of a link that puts one card first
ABREAST = 2
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
    choose_model()
    known = [result for claim in claims() if (result := answer(name, claim)) is not None]
    left = [claim for claim in claims() if not _is_ended(name, claim)]
    if left and not _wanted(name):
        st.button(
            f"Ask all {len(left)}" if len(left) == len(claims()) else f"Ask the other {len(left)}",
            type="primary",
            key="papers-ask-all",
            on_click=_ask,
            args=(name, tuple(left)),
        )
    words = f"{models.short_title(name)}: {summary(known)}." if known else ""
    return Panel("papers", picture=partial(_drawn, name, words), table=_table(known))


def answer(model: str, claim: str) -> PaperResult | None:
    """What a model answered to a claim; None where it was not asked, or has not answered yet."""
    run = _answers().known((model, claim))
    if run is None or run.found is None or not run.complete:
        return None
    return run.found.results[0]


@st.cache_resource
def _answers() -> "PassesOf[AnswerKey, Passes[Answered]]":
    """The answers of this process, shared by all visitors."""
    return PassesOf(Passes, KEPT)


def _is_ended(model: str, claim: str) -> bool:
    """Whether there is nothing more to ask: it has answered, or refused."""
    run = _answers().known((model, claim))
    return answer(model, claim) is not None or (run is not None and run.refusal is not None)


def _wanted(model: str) -> tuple[str, ...]:
    """The claims that this visitor still waits for."""
    name, names = st.session_state.get(_WANTED, ("", ()))
    return tuple(one for one in names if name == model and not _is_ended(model, one))


def _ask(model: str, names: tuple[str, ...]) -> None:
    st.session_state[_WANTED] = model, (*_wanted(model), *names)


def _stop() -> None:
    st.session_state.pop(_WANTED, None)


def _drawn(name: str, words: str) -> None:
    st.html(STYLE)
    if _wanted(name):
        _under_way(name)
    else:
        if words:
            st.markdown(plain(words))
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
    said = f"{done} of {len(names)} claims asked. Now: {claims()[left[0]].title}."
    line = f" In the queue for the model: place {run.ahead}." if run and run.ahead else ""
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
    linked = claims().get(url.read({PAPER}).get(PAPER, ""))
    if linked is not None:
        _row(name, [linked])
    others = [claim for claim in claims().values() if claim is not linked]
    for topic, grouped in groupby(others, attrgetter("topic")):
        st.html(f'<h2 class="topic">{html.escape(topic)}</h2>')
        of_topic = list(grouped)
        for start in range(0, len(of_topic), ABREAST):
            _row(name, of_topic[start : start + ABREAST])


def _row(name: str, some: Sequence[PaperClaim]) -> None:
    for column, claim in zip(st.columns(ABREAST, gap="small"), some, strict=False):
        with column, st.container(border=True, height="stretch", key=f"paper-{claim.name}"):
            _card(name, claim)


def _card(name: str, claim: PaperClaim) -> None:
    result, run = answer(name, claim.name), _answers().known((name, claim.name))
    st.html(_words(claim, result))
    if run is not None and run.refusal:
        st.error(plain(run.refusal))
    page, parameters = read_address(claim.link)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if result is None:
            waits = claim.name in _wanted(name)
            st.button(
                "Waits" if waits else "Ask this model",
                key=f"papers-ask-{claim.name}",
                disabled=waits,
                on_click=_ask,
                args=(name, (claim.name,)),
            )
        st.html(html_link(page.file, "See it on a text →", parameters), width="content")


def _words(claim: PaperClaim, result: PaperResult | None) -> str:
    """HTML of a card: the claim, the paper's figure, and what was or would be measured here."""
    paper = claim.figure_of_the_paper
    parts = [("The paper", f"{html.escape(paper.words)}<small>{html.escape(paper.source)}</small>")]
    verdict, measured = "", html.escape(claim.measured)
    if result is None:
        rule = html.escape(claim.rule.words)
        parts.append(("Here", f'<span class="quiet">{measured} {rule}</span>'))
    else:
        kind, sign = _SIGNS[result.verdict]
        verdict = f'<span class="verdict {kind}">{sign} {result.verdict}</span>'
        if result.figure is not None and result.control is not None:
            parts.append(("Here", f"<b>{html.escape(str(result.figure))}</b>"))
            parts.append(("Control", html.escape(str(result.control))))
        counts = [f"{result.seconds:.1f} s"]
        counts[:0] = [f"{result.prompts} texts"] if result.prompts else []
        about = f"<small>{measured} {', '.join(counts)}.</small>"
        parts.append(("Reason", html.escape(result.reason) + about))
    rows = "".join(f"<dt>{label}</dt><dd>{words}</dd>" for label, words in parts)
    return (
        f'<article class="paper"><h3>{html.escape(claim.title)}{verdict}</h3>'
        f"<p>{html.escape(claim.claim)}</p><dl>{rows}</dl></article>"
    )


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
