"""The tour's card: one quiet box at one place of every page with a sentence box."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from model.engine import Request
from viz.held import traced
from viz.markdown import plain
from viz.menu import entry
from viz.navigation import page_link
from viz.questions.question import Question
from viz.questions.show import answerable, ask, is_answered, scene_of
from viz.session import current
from viz.tour.progress import (
    PARAMETER,
    Progress,
    adopt,
    arrived,
    go,
    keep,
    leave,
    note,
    progress,
    resume,
    start,
)
from viz.tour.steps import MODEL, STEPS, TEXT, Moment, Step, unfit
from viz.view import to_link

if TYPE_CHECKING:
    from viz.shell import Look

MINUTES = 10
_REQUEST = "tour-request"  # session state: the run that the page shows
_PAGE = "tour-page"
_NEWS = "tour-news"  # session state: a step has just been done, which is told once


def open_page(file: str) -> None:
    """Takes the step from the link; goes on to the page of a step that was just opened."""
    adopt()
    st.session_state[_PAGE] = file
    st.session_state.pop(_REQUEST, None)
    known = progress()
    if known is None or known.step is None or not known.moving:
        return
    arrived()
    if known.step.page != file:
        try:
            link = to_link(current()) | {PARAMETER: known.link}
            st.switch_page(known.step.page, query_params=link)
        except StreamlitPageNotFoundError:  # a page that is run by itself knows no other
            return


def invitation(key: str, *, quiet: bool = False) -> None:
    """The way into the tour, or back to where it was left."""
    known = progress()
    kind: Literal["primary", "tertiary"] = "tertiary" if quiet else "primary"
    if known is None or known.step is None:
        name = (
            "Guided tour"
            if quiet
            else f"Take the tour: {len(STEPS)} steps, about {MINUTES} minutes"
        )
        st.button(name, key=f"tour-start-{key}", type=kind, on_click=start)
    elif not known.under_way or (quiet and st.session_state.get(_PAGE) != known.step.page):
        where = f"step {known.number + 1} of {len(STEPS)}"
        st.button(
            f"Tour: {where} →" if quiet else f"Go on with the tour: {where}",
            key=f"tour-resume-{key}",
            type=kind,
            on_click=resume,
        )


def card(seen: "Look | None") -> None:
    """The step, or where it goes on; nothing before and after a tour. seen: None where nothing ran."""
    known = progress()
    if known is None or not known.under_way:
        return
    if known.step is None:
        _finish(known)
    elif known.step.page != st.session_state[_PAGE]:
        _elsewhere(known.step, known.number)
    else:
        if seen is not None:
            st.session_state[_REQUEST] = seen.request
            _note(known, seen.request)
        if st.session_state.pop(_NEWS, False):  # the card may have been scrolled out of sight
            st.toast(f"Step {known.number + 1} is done. The tour goes on at the top of the page.")
        _step(progress() or known, known.step, seen)


def notice(shown: Request | None = None) -> None:
    """After a click inside a part of the page: draws the page again if the step was done by it.

    shown: the run that this part shows, where it is another than the page's.
    """
    known, request = progress(), shown or st.session_state.get(_REQUEST)
    if known is None or not known.under_way or request is None or known.step is None:
        return
    if known.step.page == st.session_state[_PAGE] and _note(known, request):
        st.rerun()


def hides(seen: "Look") -> bool:
    """Whether the page's picture waits for the answer to the step's question."""
    known = progress()
    if known is None or not known.under_way or known.step is None or not known.step.hides:
        return False
    if known.step.page != st.session_state[_PAGE] or known.step.name in known.done:
        return False
    question = _question(known, known.step, seen)
    return question is not None and not is_answered(question)


def _question(known: Progress, step: Step, seen: "Look") -> Question | None:
    """The question of a step, on the head that it was opened with."""
    if step.question is None:
        return None
    return answerable(scene_of(seen, known.before or current()), [step.question])


def _note(known: Progress, request: Request) -> bool:
    if known.before is None:
        keep(replace(known, before=current()))
    before = known.before or current()
    done = note(Moment(current(), before, traced(request)))
    if done:
        st.session_state[_NEWS] = True
    return done


def _step(known: Progress, step: Step, seen: "Look | None") -> None:
    done = step.name in known.done
    mark = " · ✓ done" if done else ""
    with st.expander(
        f"Tour, step {known.number + 1} of {len(STEPS)}: {step.title}{mark}",
        expanded=True,
        key="tour-card",
    ):
        reason = None if seen is None else unfit(step, seen.trace, current())
        question = None if seen is None or reason else _question(known, step, seen)
        if question is None:
            _act(known, step, reason=None if done else reason)
        else:
            predict, act = st.columns(2, gap="large")
            with predict:
                answered = ask(question, "tour-question")
            with act:
                _act(known, step, tells=answered or done)
        stuck = seen is None or (reason is not None and not done)
        if stuck:
            _offer_sentence(known.number)
        _ways(known, done, home=not stuck)


def _act(known: Progress, step: Step, *, reason: str | None = None, tells: bool = True) -> None:
    """What to do and why it matters, or why it cannot be done here. tells: whether the reason may be
    read, which answers the question."""
    if reason:
        st.markdown(plain(reason))
        return
    done = "  \n**✓ Done.**" if step.name in known.done else ""
    st.markdown(f"**Do this.** {plain(step.do)}{done}")
    if tells:
        st.caption(step.why)


def _ways(known: Progress, done: bool, *, home: bool) -> None:
    """On, back, out; home: also to the sentence of the tour, where another one is open."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        last = known.number + 1 == len(STEPS)
        onward = "Finish" if last else f"Next: {STEPS[known.number + 1].title} →"
        st.button(
            onward if done else "Skip this step",
            key="tour-next",
            type="primary" if done else "secondary",
            on_click=go,
            args=(known.number + 1,),
        )
        if known.number:
            st.button("Back", key="tour-back", on_click=go, args=(known.number - 1,))
        if home and known.number and (current().text, current().model) != (TEXT, MODEL):
            st.button(
                "Back to the tour's sentence",
                key="tour-own",
                type="tertiary",
                on_click=go,
                args=(known.number,),
                kwargs={"tour_sentence": True},
            )
        st.button("Leave the tour", key="tour-leave", type="tertiary", on_click=leave)


def _offer_sentence(number: int) -> None:
    st.button(
        "Open the tour's sentence",
        key="tour-sentence",
        on_click=go,
        args=(number,),
        kwargs={"tour_sentence": True},
    )


def _elsewhere(step: Step, number: int) -> None:
    """On another page than the step's: where it goes on."""
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", gap="small", key="tour-elsewhere"
    ):
        st.markdown(
            f"**Tour, step {number + 1} of {len(STEPS)}: {step.title}.** "
            f"It waits on the page “{entry(step.page).title}”.",
            width="content",
        )
        st.button("Go there", key="tour-there", on_click=resume)
        st.button("Leave the tour", key="tour-leave", type="tertiary", on_click=leave)


def _finish(known: Progress) -> None:
    """What was learned, and where to go on."""
    with st.expander("Tour: finished", expanded=True, key="tour-card"):
        st.markdown(
            f"You did **{len(known.done)} of {len(STEPS)} steps**. "
            "This is the way of a sentence through a transformer:"
        )
        marks = ("✓" if step.name in known.done else "–" for step in STEPS)
        st.markdown(
            "\n".join(
                f"{number}. {mark} **{step.title}.** {step.learned}"
                for number, (mark, step) in enumerate(zip(marks, STEPS, strict=True), 1)
            )
        )
        st.markdown("**Where to go on.** Type a sentence of your own in the box above, or see:")
        page_link("pages/examples.py", "Examples: sentences worth opening →")
        page_link("pages/worked_examples.py", "Worked examples: every number by hand →")
        page_link("pages/training.py", "Training: how the heads came to do this →")
        page_link("pages/glossary.py", "Glossary: each term in one sentence →")
        with st.container(horizontal=True, gap="small"):
            st.button("Close", key="tour-leave", type="primary", on_click=leave)
            st.button("Start again", key="tour-again", on_click=start)
