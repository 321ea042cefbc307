"""A profile of the visitor's own text, made while the visitor looks on."""

from dataclasses import replace

import streamlit as st

from model.system.fair_queue import QueueFullError
from model.system.settings import settings
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.state.look import Look
from viz.state.session import change_view, current
from viz.views.corpus.choice import PROFILE
from viz.views.corpus.runs import (
    MOST,
    Plan,
    ProfileRun,
    key_of,
    note,
    plan_of,
    runs,
    start,
    title_of,
    window_of,
)

PLAN, REFUSAL = "corpus-plan", "corpus-refusal"  # session state
_SHOWS, _LOOKS = (
    "corpus-shows",
    "corpus-looks",
)  # and whether the profile is to be shown; is looked at
TEXT, FILE, LINES = "corpus-text", "corpus-file", "corpus-lines"  # keys of widgets
EVERY = 0.5  # seconds between two looks at a run
MINUTE = 60.0


def own_text(seen: Look) -> None:
    """The text, how long its profile will take, and the run."""
    dropped = ", or drop a small file" if settings().trace_files else ""
    st.markdown(
        f"Type or paste a text{dropped}: at most {MOST // 1000} kB. The open model, "
        f"**{plain(seen.title)}**, reads it in windows of at most {window_of(seen.model)} tokens. "
        "Nobody else sees your text or its profile, and nothing is written to disk."
    )
    _form()
    st.button("How long will it take?", key="corpus-measure", on_click=_measure, args=(seen,))
    if refusal := st.session_state.pop(REFUSAL, None):
        st.error(plain(refusal))
    plan: Plan | None = st.session_state.get(PLAN)
    if plan is not None:
        st.fragment(_run, run_every=EVERY if _is_under_way(plan) else None)(plan)


def _form() -> None:
    text, file = st.columns([3, 2], gap="large")
    text.text_area("Your text", key=TEXT, height=140, max_chars=MOST, persist_state="session")
    if settings().trace_files:
        file.file_uploader("Or a file of text in UTF-8", ["txt", "md"], key=FILE, max_upload_size=1)
    file.toggle("Each line is a text of its own", key=LINES)


def _measure(seen: Look) -> None:
    """Makes the plan, with the first windows' times."""
    st.session_state.pop(PLAN, None)
    file = st.session_state.get(FILE)
    try:
        text, name = st.session_state.get(TEXT, ""), "your text"
        if file is not None:
            if file.size > MOST:
                raise ValueError(f"The file has more than {MOST:,} bytes.")
            text, name = _decoded(file.getvalue()), file.name
        st.session_state[PLAN] = plan_of(
            seen.model, text, by_line=bool(st.session_state.get(LINES)), name=name
        )
    except ValueError as refusal:
        st.session_state[REFUSAL] = str(refusal)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"The file is not text in UTF-8: {error.reason}.") from None


def _known(plan: Plan) -> ProfileRun | None:
    return runs().known(key_of(plan))


def _is_under_way(plan: Plan) -> bool:
    run = _known(plan)
    return run is not None and not run.ended.is_set()


def _run(plan: Plan) -> None:
    """The estimate before the run, its progress while it goes on, and what it led to."""
    if st.session_state.pop(_SHOWS, False):
        st.rerun()  # the whole page: its other view
    run = _known(plan)
    with st.container():
        if run is None or (run.ended.is_set() and run.found is None):
            _offer(plan, run)
        elif run.ended.is_set():
            _ended(plan, run)
        else:
            _progress(plan, run)
    if st.session_state.get(_LOOKS, False) != (looks := _is_under_way(plan)):
        st.session_state[_LOOKS] = looks
        st.rerun()


def _offer(plan: Plan, run: ProfileRun | None) -> None:
    if run is not None and run.refusal:
        st.error(plain(run.refusal))
    windows, tokens = counted(len(plan.windows), "window"), counted(plan.tokens, "token")
    st.markdown(
        f"{windows}, {tokens}: **about {_time(plan.seconds)}**, measured on the first windows, as long as "
        "nobody else uses this server."
    )
    st.button("Make the profile", type="primary", key="corpus-start", on_click=_start, args=(plan,))


def _progress(plan: Plan, run: ProfileRun) -> None:
    run.look()
    bar, stop = st.columns([6, 1], vertical_alignment="center")
    done, left = 0 if run.found is None else run.found.done, run.seconds_left
    said = f"{done} of {counted(len(plan.windows), 'window')}."
    if place := runs().place(run) or run.ahead:
        said += f" In the queue: place {place}."
    elif left is not None:
        said += f" About {_time(left)} left."
    bar.progress(done / len(plan.windows), text=said)
    stop.button("Stop", key="corpus-stop", on_click=runs().stop, args=(key_of(plan),))


def _ended(plan: Plan, run: ProfileRun) -> None:
    found, title = run.found, title_of(plan)
    if found is None or title is None:
        return
    skipped = len(found.profile.about.skipped)
    left_out = f" {counted(skipped, 'window')} could not be read." if skipped else ""
    if run.state == "done":
        st.success(f"Done: {counted(found.done, 'window')}.{left_out}")
    else:
        st.info(f"Stopped: the profile is of {found.done} of {found.total} windows.{left_out}")
    if run.refusal:
        st.error(plain(run.refusal))
    with st.container(horizontal=True):
        st.button(
            "Show its heads", type="primary", key="corpus-show", on_click=_show, args=(title,)
        )
        if run.state != "done":
            st.button("Start over", key="corpus-again", on_click=_start, args=(plan,))


def _start(plan: Plan) -> None:
    try:
        start(plan)
        note(plan)
    except QueueFullError:
        st.session_state[REFUSAL] = "Too many visitors are waiting. Try again in a few minutes."


def _show(title: str) -> None:
    st.session_state.update({PROFILE: title, _SHOWS: True})
    change_view(replace(current(), show=""))


def _time(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} seconds"
    return f"{seconds / MINUTE:.0f} minutes"
