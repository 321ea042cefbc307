"""The tour's card: it stands beside each page's picture, below the menu, and on a phone below the page."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from model.nn.intervention import Intervention
from model.serving.engine import Request
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.questions.question import Question
from viz.questions.show import answerable, ask, asks, is_answered, scene_of, try_yourself
from viz.state.link import to_link
from viz.state.look import traced
from viz.state.navigation import HOME, entry, page_link
from viz.state.session import chosen_show, current
from viz.tour.progress import (
    PARAMETER,
    TourState,
    adopt,
    arrived,
    compared_with,
    go,
    leave,
    mark_done,
    progress,
    resume,
    start,
)
from viz.tour.steps import MODEL, TEXT, TOUR_STEPS, Moment, TourStep, unfit

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from viz.state.look import Look

say = sentences_of("tour.card")

MINUTES = 8
_STYLE = Path(__file__).with_name("card.css")
_REQUEST = "tour-request"  # session state: the run that the page shows
_PAGE = "tour-page"
_ASKED = "tour-asked"  # session state: the step's question
_REMARK = "tour-said"  # session state: what the card says of what the reader did
_DONE = "✓ Done."
FIRST = say("answer_question_first")
_NOTHING_RAN = say("page_cannot_show")


def open_page(file: str) -> None:
    """Takes the step from the link; moves to the page of a step that was just opened."""
    adopt()
    st.session_state[_PAGE] = file
    for name in (_REQUEST, _ASKED, _REMARK):
        st.session_state.pop(name, None)
    known = progress()
    if not known.moving:
        return
    arrived()
    page = HOME if known.step is None else known.step.page
    if page != file:
        try:
            link = to_link(current()) | {PARAMETER: known.link}
            st.switch_page(page, query_params=link)
        except StreamlitPageNotFoundError:  # the page runs by itself, without the others
            return


def invitation(key: str, *, quiet: bool = False) -> None:
    """The way into the tour, or back to where it was left."""
    known = progress()
    kind: Literal["primary", "tertiary"] = "tertiary" if quiet else "primary"
    if known.step is None or not known.started:
        st.button(
            "Guided tour" if quiet else "Take the tour",
            key=f"tour-start-{key}",
            type=kind,
            help=f"{len(TOUR_STEPS)} steps, about {MINUTES} minutes",
            on_click=start,
        )
    elif not known.under_way or (quiet and st.session_state.get(_PAGE) != known.step.page):
        where = f"step {known.number + 1} of {len(TOUR_STEPS)}"
        st.button(
            f"Tour: {where} →" if quiet else f"Continue the tour: {where}",
            key=f"tour-resume-{key}",
            type=kind,
            on_click=resume,
        )


def elsewhere() -> None:
    """On a page other than the step's: where the tour goes on."""
    known = progress()
    if not known.under_way or known.step is None or _here(known):
        return
    with _beside("tour-elsewhere"):
        _head(known, known.step)
        st.markdown(say("continues_page", title=entry(known.step.page).title))
        with st.container(horizontal=True, gap="small"):
            st.button("Go there", key="tour-there", type="primary", on_click=resume)
            st.button("Leave", key="tour-leave", type="tertiary", on_click=leave)


def card(look: "Look | None") -> None:
    """The step, or the end of the tour; nothing where no tour is under way. look: None where nothing ran."""
    known = progress()
    if not known.under_way:
        return
    if known.step is None:
        with _beside():
            _finish(known)
    elif _here(known):
        with _beside():
            if look is None:
                _head(known, known.step)
                st.markdown(_NOTHING_RAN)
                st.session_state[_REMARK] = _NOTHING_RAN
                _ways(known.number, done=False, astray=False)
            else:
                _step(known, known.step, look)


def _beside(key: str = "tour") -> "DeltaGenerator":
    """Where the card stands: below the menu, and on a phone below the page."""
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
    return st.container(key=key, gap="small")


def _head(known: TourState, step: TourStep) -> None:
    st.subheader(f"{known.number + 1} of {len(TOUR_STEPS)}: {step.title}", anchor=False)


def notice(shown: Request | None = None) -> None:
    """After a click inside a fragment of the page: draws the page again where the card's words change.

    shown: the run that the fragment shows, where it is not the page's.
    """
    request = shown or st.session_state.get(_REQUEST)
    if request is None or not _here(progress()):
        return
    if _remark(request) != st.session_state.get(_REMARK):
        st.rerun()


def point_back(way: str) -> None:
    """Beside numbers that the step does not use: names those with which the tour goes on."""
    if _here(progress()):
        st.caption(say("tour_continues", way=way))


def beside_questions(page: str, look: "Look", picture: Callable[[], None]) -> None:
    """A page's picture and its questions. The picture may hold the answer, so it is hidden while the reader
    has a question open."""
    if not asks(page):
        picture()
        try_yourself(page, look)
    elif try_yourself(page, look):
        picture()
    else:
        st.caption(say("picture_opens_answered"))


def is_asking() -> bool:
    """Whether a question is open on this page: small pictures of the heads may hold its answer, too."""
    return asks(PurePath(st.session_state[_PAGE]).stem.replace("_", "-"))


def _here(known: TourState) -> bool:
    """Whether a step is under way and this is its page."""
    step = known.step if known.under_way else None
    return step is not None and step.page == st.session_state[_PAGE]


def _waits(known: TourState) -> bool:
    """Whether the step's question must be answered first."""
    question: Question | None = st.session_state.get(_ASKED)
    return not known.is_done and question is not None and not is_answered(question)


def _missing(step: TourStep, request: Request) -> str | None:
    """What is missing until the act of a step is done; None where nothing is. A view that opened by itself is
    no choice."""
    view = replace(current(), show=chosen_show())
    return step.missing(Moment(view, compared_with(view), traced(request)))


def _remark(request: Request) -> str:
    """What the card says about what the reader did; "" where the reader has done nothing yet.

    Marks the step as done as soon as nothing is missing.
    """
    known = progress()
    if known.step is None:
        return ""
    if known.is_done:
        return _DONE
    if reason := _unfit(known.step, request):
        return reason
    if _waits(known):
        return FIRST
    missing = _missing(known.step, request)
    if missing is not None:
        return missing
    if known.step.reads_off and _ASKED not in st.session_state:
        return FIRST  # the page asks once it is drawn anew
    mark_done()
    return _DONE


def _unfit(step: TourStep, request: Request) -> str | None:
    """Why a step cannot be done with the sentence and model of a run, whatever is changed in it."""
    return unfit(step, traced(replace(request, intervention=Intervention())), current())


def _step(known: TourState, step: TourStep, look: "Look") -> None:
    """What to guess first, what to do, what is missing, and why it matters once it is done."""
    request = st.session_state[_REQUEST] = look.request
    _head(known, step)
    if known.taken_back:
        st.caption(plain(say("undone_step_starts", taken_back=known.taken_back)))
    st.session_state.pop(_ASKED, None)
    fits = _unfit(step, request) is None
    scene = scene_of(look, compared_with(current()))
    if fits and step.question and not (step.reads_off and _missing(step, request) is not None):
        st.session_state[_ASKED] = answerable(scene, [step.question])
    remark = st.session_state[_REMARK] = _remark(request)
    done, question = remark == _DONE, st.session_state.get(_ASKED)
    if question is None or step.reads_off or is_answered(question) or done:
        st.markdown(f"**Do this.** {plain(step.do)}")
    if question is not None:
        ask(question, "tour-question", scene)
    if remark and remark != FIRST:
        st.markdown(f"**{plain(remark)}**")
    if done:
        st.markdown(step.why)
    _ways(known.number, done=done, astray=remark not in ("", _DONE, FIRST))


def _ways(number: int, *, done: bool, astray: bool) -> None:
    """Next, back and leave; the tour's sentence where another one is open; and a fresh start of the step
    where the reader (astray) did something else."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        last = number + 1 == len(TOUR_STEPS)
        onward = "Finish" if last else f"Next: {TOUR_STEPS[number + 1].title} →"
        st.button(
            onward if done else "Skip",
            key="tour-next",
            type="primary" if done else "secondary",
            on_click=go,
            args=(number + 1,),
        )
        if number:
            st.button("Back", key="tour-back", on_click=go, args=(number - 1,))
        if number and (current().text, current().model) != (TEXT, MODEL):
            st.button(
                say("open_tour_sentence"),
                key="tour-sentence",
                on_click=go,
                args=(number,),
                kwargs={"tour_sentence": True},
            )
        elif astray:
            st.button(say("start_step_over"), key="tour-anew", on_click=go, args=(number,))
        st.button("Leave", key="tour-leave", type="tertiary", on_click=leave)


def _finish(known: TourState) -> None:
    """What was learned, and where to go on."""
    with st.container(gap="small"):
        st.caption("Tour: finished")
        if known.taken_back:
            st.caption(plain(say("undone_continue_unchanged", taken_back=known.taken_back)))
        st.markdown(say("since_last_loaded", done=len(known.done), tour_steps=len(TOUR_STEPS)))
        marks = ("✓" if step.name in known.done else "–" for step in TOUR_STEPS)
        st.markdown(
            "\n".join(
                f"{number}. {mark} **{step.title}.** {step.learned}"
                for number, (mark, step) in enumerate(zip(marks, TOUR_STEPS, strict=True), 1)
            )
        )
        st.markdown(say("next_type_own_sentence"))
        page_link("pages/tokens.py", say("walk_tokens_next"))
        page_link("pages/training.py", say("training_heads_learned"))
        page_link("pages/library.py", say("library_questions_terms"))
        page_link("pages/for_a_class.py", say("teach_lesson_class"))
        with st.container(horizontal=True, gap="small"):
            st.button("Close", key="tour-leave", type="primary", on_click=leave)
            st.button("Start over", key="tour-again", on_click=start)
