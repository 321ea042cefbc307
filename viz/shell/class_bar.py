"""A line on every page of whoever shows a class something, or follows one. Others never see it."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.state import url
from viz.state.class_views import ENDED, JOIN, LEAD, ShownView, class_views
from viz.state.engine import visitor
from viz.state.link import PARAMETERS, opening_link
from viz.state.navigation import entry, page_link
from viz.state.session import current

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

say = sentences_of("shell.class_bar")

COOKIE = "attention-class"  # viz/shell/keys/js/main.js writes it
# Session state: a lecturer's class; a pupil's class with the view that was opened; the class that was left;
# the message that waits; the lecturer's class when the line was last drawn.
_LED, _FOLLOWED, _LEFT = "class-led", "class-followed", "class-left"
_SAID, _DRAWN = "class-said", "class-drawn"
_KEPT = "class-kept"  # whether the browser was told of a class that this visitor leads
_NUMBER = re.compile("[0-9]{1,9}", re.ASCII)
_EVERY = 5.0  # seconds between two looks at what the class is shown
_NOT_SHOWN = {JOIN, LEAD, "tour"}  # parameters that belong to one visitor


@dataclass(frozen=True)
class Led:
    """The class of a lecturer."""

    code: str
    key: str


def led() -> Led | None:
    """The class that this visitor shows something, as long as it goes on."""
    mine: Led | None = st.session_state.get(_LED)
    if _LED not in st.session_state and not url.read({JOIN}):
        mine = st.session_state[_LED] = _kept()
    if mine is not None and class_views.shown(mine.code) is None:
        st.session_state[_LED], st.session_state[_SAID] = None, say("class_ended")
        return None
    return mine


def _kept() -> Led | None:
    """The class that this browser leads, after a reload."""
    code, _, key = unquote(str(st.context.cookies.get(COOKIE, ""))).partition(".")
    return Led(code, key) if class_views.leads(code, key) else None


def to_remember() -> str | None:
    """What the browser is to keep of a class that this visitor leads; "" where it has ended, None where there
    was none."""
    mine = led()
    if mine is None:
        return "" if st.session_state.get(_KEPT) else None
    st.session_state[_KEPT] = True
    return f"{mine.code}.{mine.key}"


def begin(file: str) -> None:
    """Shows a new class the view of this session on a page."""
    view = replace(current(), show="")
    _try(
        lambda: st.session_state.update(
            {_LED: Led(*class_views.begin(file, opening_link(view), visitor()))}
        )
    )


def show(file: str) -> None:
    """Shows the class this page."""
    if (mine := led()) is not None:
        others = {
            name: st.query_params[name]
            for name in st.query_params
            if name not in PARAMETERS and name not in _NOT_SHOWN
        }
        shown = others | opening_link(current())
        _try(lambda: class_views.show(mine.code, mine.key, file, shown))


def end() -> None:
    """Ends the class: its link opens nothing more."""
    if (mine := led()) is not None:
        class_views.end(mine.code, mine.key)
        st.session_state[_LED] = None


def leave() -> None:
    """Stops following the class, even while the address still names it."""
    if _FOLLOWED in st.session_state:
        st.session_state[_LEFT] = st.session_state.pop(_FOLLOWED)[0]
        url.say({}, {JOIN})


def is_late() -> bool:
    """Whether the line has to be drawn anew: the class began or ended since, or a message is waiting."""
    return _SAID in st.session_state or st.session_state.get(_DRAWN) != led()


def join() -> None:
    """Joins the class that a link names. Where the link names nothing else, opens the view that the class is
    shown. Leads it where the link has its key, which then leaves the address."""
    if (leading := url.read({LEAD}).get(LEAD)) is not None:
        code, _, key = leading.partition(".")
        if class_views.leads(code, key):
            st.session_state[_LED] = Led(code, key)
        else:
            st.session_state[_SAID] = ENDED
        url.say({}, {LEAD})
    asked = url.read({JOIN}).get(JOIN)
    if asked is None:
        return
    code, dot, number = asked.partition(".")
    if dot and code == st.session_state.get(_LEFT):
        return
    view = class_views.look(code)
    if view is None:
        url.say({}, {JOIN})
        st.session_state[_SAID] = ENDED
    elif dot:
        known, seen = st.session_state.get(_FOLLOWED) or ("", 0)
        opened = int(number) if _NUMBER.fullmatch(number) else -1
        st.session_state[_FOLLOWED] = (code, max(opened, seen) if known == code else opened)
    else:
        st.session_state[_FOLLOWED] = (code, -1)
        with suppress(
            StreamlitPageNotFoundError
        ):  # a page that runs by itself: the line says where to go
            st.switch_page(view.page, query_params=_link(code, view))


def bar(file: str) -> None:
    """The line, where this visitor leads or follows a class."""
    if said := st.session_state.pop(_SAID, None):
        st.warning(plain(said))
    st.session_state[_DRAWN] = led()
    if st.session_state[_DRAWN] is not None:
        mine = st.session_state[_LED]
        view = class_views.shown(mine.code)
        seen = "" if view is None else entry(view.page).title
        with _row():
            st.markdown(plain(f"Your class sees: {seen}."), width="content")
            st.button("Show this page", key="class-show", on_click=show, args=(file,))
            st.button("End the class", key="class-end", type="tertiary", on_click=end)
    elif st.session_state.get(_FOLLOWED) is not None:
        st.fragment(_of_a_pupil, run_every=_EVERY)()


def _of_a_pupil() -> None:
    followed = st.session_state.get(_FOLLOWED)
    if followed is None:
        return
    code, seen = followed
    view = class_views.look(code)
    with _row():
        if view is None:
            st.markdown(say("class_ended_continue"), width="content")
        elif view.number > seen:
            st.markdown(say("lecturer_moved"), width="content")
            label = f"Go there: {plain(entry(view.page).title)} →"
            page_link(view.page, label, **_link(code, view))
        else:
            st.caption(say("following_lecturer"), width="content")
        label = "Close" if view is None else "Leave the class"
        st.button(label, key="class-leave", type="tertiary", on_click=leave)


def _row() -> "DeltaGenerator":
    return st.container(horizontal=True, vertical_alignment="center", gap="small", key="class-bar")


def _link(code: str, view: ShownView) -> dict[str, str]:
    return {**view.parameters, JOIN: f"{code}.{view.number}"}


def _try(act: Callable[[], object]) -> None:
    try:
        act()
    except ValueError as refusal:
        st.session_state[_SAID] = str(refusal)
