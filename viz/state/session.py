"""The state of one visitor's session: one `View`, its undone changes, the link that says it all, and the
models and files that were opened."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, TypedDict, get_args
from urllib.parse import unquote

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from model.download.entries import Entry
from model.loading.registry import may_be_linked, models
from model.nn.intervention import Intervention
from model.trace.uploaded import FORGOTTEN, is_uploaded
from viz.explorer.shown import forget
from viz.state import url
from viz.state.link import PARAMETERS, TEXT_LIMIT, Detail, View, from_link, short_link, to_link
from viz.state.way_back import came_back, way_back
from viz.telemetry.metrics import count_page

COOKIE = "attention-model"  # viz/shell/keys/js/main.js writes it
DETAIL_COOKIE = "attention-detail"  # viz/explorer/js/detail.js writes it
_CHOSEN = "chosen-model"  # session state


def remember(entry: Entry) -> None:
    """Has the browser keep a model of the hub. Any other one is forgotten with the visit: its vocabulary may
    not have the words of the first sentence, and a folder's name is nobody else's business."""
    st.session_state[_CHOSEN] = View().model if entry.hub is None else entry.name


def to_remember() -> str | None:
    """The name that the browser is to keep; None where nothing was chosen in this session."""
    chosen: str | None = st.session_state.get(_CHOSEN)
    return chosen


def remembered() -> str:
    """The model that a visit begins with."""
    name = unquote(str(st.context.cookies.get(COOKIE, "")))
    return name if name and may_be_linked(name) else View().model


_VIEW, _PAST, _PAGE = "view", "past-changes", "page"
_SENTENCE = "choose-text"
_ARRIVED, _LENT, _FIRST = "arrived", "lent-view", "first-of-the-views"
_STALE_LINK = (
    "link-of-a-lent-view"  # the page that lent it, the link, and what it was lent in place of
)
_BROUGHT_VIEWS = "entered-without-a-view"  # page -> the view that it took from the page before
# A link of the app that says no more opens them on the visitor's own sentence.
_PARTS = {"model", "show", "stage"}
_LINK, _CARRIED = "link", "carried-link"  # parts of what the browser was told
_WIDGET_VERSIONS = "turns-of-widgets"  # name of a widget -> how often the server has set it anew
_TAKEN, _TAKEN_LIMIT = "taken-choices", 8  # names of pictures and tables since they were drawn
_CARRIED_LIMIT = 1_000  # characters: each line of the code holds them
_PAST_LIMIT = 50  # changes that can be undone
_NEXT = "page-to-open"
_WAITS = "cell-that-waits"  # what the page chooses the cell by, until its run is there


class Control(TypedDict):
    """Key and callback of a widget that shows a part of the view and changes it."""

    key: str
    on_change: Callable[[], None]


def current() -> View:
    """The view of this session."""
    view: View = st.session_state[_VIEW]
    return view


CellChoice = Literal["last token", "difference"]


def change_view(view: View) -> None:
    """Makes this the view of the session; the link says so once the page is written. The cell of another
    sentence or model is one of that: the page chooses anew."""
    before = st.session_state.get(_VIEW, view)
    if (before.text, before.model) != (view.text, view.model) and before.cell == view.cell:
        _choose_cell_by("last token")
    st.session_state[_VIEW] = view


def _choose_cell_by(what: CellChoice) -> None:
    """Lets the page choose the cell once its run is there: by the largest weight of the last token, or by the
    weight that a change of the mechanism moves most."""
    st.session_state[_WAITS] = what


def take_cell_choice() -> CellChoice | None:
    """What the page is to choose the cell by, once; None where the cell stays."""
    waits: CellChoice | None = st.session_state.pop(_WAITS, None)
    return waits


def open_view(view: View, *, undoable: bool = False) -> None:
    """A view that comes from elsewhere, an example or a link: the explorer forgets where it was. One that
    does not ask for full detail keeps the visitor's own. undoable: whether `undo` leads back, with all that
    it replaced."""
    if undoable:
        _note(view)
    change_view(view if view.detail == "full" else replace(view, detail=_own_detail()))
    take_cell_choice()  # the view has its cell
    forget()


def _own_detail() -> Detail:
    """What was chosen in this session, or in this browser before."""
    if _VIEW in st.session_state:
        return current().detail
    kept = st.context.cookies.get(DETAIL_COOKIE)
    return next((detail for detail in get_args(Detail) if detail == kept), View().detail)


def push_temporary_view(view: View) -> None:
    """Opens a view on this page alone: the next page has the present one back, unless the reader
    chooses another sentence or model here."""
    kept = current()
    open_view(view)
    st.session_state[_LENT] = (kept, current())
    st.session_state[_STALE_LINK] = (st.session_state[_PAGE], to_link(current()), kept)


def choose_detail(name: str) -> None:
    """How much Explore shows, where there is such a detail."""
    change_view(replace(current(), detail="full" if name == "full" else "simple"))


def arrived() -> bool:
    """Whether the reader has just come to this page."""
    return bool(st.session_state.get(_ARRIVED))


def opens_with(show: str) -> None:
    """This view of the page opens by itself: it need not stand in the link."""
    st.session_state[_FIRST] = show


def chosen_show() -> str:
    """Which of the page's views was chosen; "" for the one that opens by itself."""
    show = current().show
    return "" if show == st.session_state.get(_FIRST) else show


def kept_view() -> View | None:
    """What waits for the other pages while this one shows a lent view; else None."""
    kept, lent = st.session_state.get(_LENT, (None, None))
    if lent is None or (current().text, current().model) != (lent.text, lent.model):
        return None
    view: View = kept
    return view


def shown(name: str, value: object, take: Callable[[Any], None]) -> Control:
    """The widget that shows this value now; `take` has what is chosen in it."""
    st.session_state[name] = value
    return {"key": name, "on_change": lambda: take(st.session_state[name])}


def first_text(leads_to: str | None = None) -> Control:
    """The widget of the sentence. leads_to: the page that a new sentence opens, where this one reads none."""

    def take(typed: str) -> None:
        change_view(replace(current(), text=typed))
        if leads_to is not None:
            go_on(leads_to)

    return shown(_SENTENCE, current().text, take)


def _typed_before() -> str:
    """What the box of the sentence holds in a browser that knew another session, as after a server started
    anew: the link may be older. "" for a page that was just opened. Streamlit tells no widget that is not
    drawn yet."""
    run = get_script_run_ctx(suppress_warning=True)
    states = run.session_state.get_widget_states() if run else ()
    typed = [one.string_value for one in states if one.id.endswith(f"-{_SENTENCE}")]
    return typed[0][:TEXT_LIMIT] if typed else ""


def go_on(file: str) -> None:
    """Lets the next run of this page open another one."""
    st.session_state[_NEXT] = file


def goes_on(file: str) -> str:
    """The page that this run opens, once: the open one unless another was chosen."""
    to: str = st.session_state.pop(_NEXT, file)
    return to


def second_text(name: str, start: str) -> Control:
    """The widget of the second sentence, where two are compared. start: what it says until one is typed."""
    return shown(
        name,
        current().second_text or start,
        lambda typed: change_view(replace(current(), second_text=typed)),
    )


def switch(name: str, value: object, take: Callable[[Any], None]) -> Control:
    """The same for what is chosen, not typed.

    Where the value is another than the browser knows of, it is a new widget with a key of its own: a request
    that left the browser before tells the old value of the old one, which is no choice of the visitor's. Not
    so for what people type in: a new box would take the place of the one with the cursor.
    """
    versions: dict[str, int] = st.session_state.setdefault(_WIDGET_VERSIONS, {})

    def key() -> str:
        return f"{name}-{versions[name]}" if name in versions else name

    if st.session_state.get(key(), value) != value:
        versions[name] = versions.get(name, 0) + 1
    mine = key()

    def take_own(value: object) -> None:
        if mine == key():
            take(value)

    return shown(mine, value, take_own)


def choice(name: str, take: Callable[[], None]) -> Callable[[], None]:
    """What hears a choice in a picture or a table that is drawn now, once.

    Where the choice makes it another picture, with another key, its state is gone here. A request that left
    the browser before it heard of that tells the same choice again, and Streamlit takes it for a new one.
    """
    taken: list[str] = st.session_state.setdefault(_TAKEN, [])
    if name in taken:
        taken.remove(name)

    def take_once() -> None:
        if name not in taken:
            taken.append(name)
            del taken[:-_TAKEN_LIMIT]
            take()

    return take_once


def control(field: str, of: str = "choose") -> Control:
    """The widget in which one field of the view is chosen. of: the group whose name its key begins with."""
    return switch(
        f"{of}-{field}",
        getattr(current(), field),
        lambda value: change_view(replace(current(), **{field: value})),
    )


def set_intervention(intervention: Intervention, *, moves_cell: bool = False) -> None:
    """Changes the mechanism; `undo` brings back what was before. moves_cell: whether the page then chooses
    the weight that this moves most."""
    if intervention != current().intervention:
        changed = replace(current(), intervention=intervention)
        _note(changed, *(("query", "key") if moves_cell else ()))
        change_view(changed)
        if moves_cell:
            _choose_cell_by("difference")


def _note(view: View, *others: str) -> None:
    """Keeps what this view replaces, and other fields of the present one, for `undo`."""
    replaced = {
        name: value
        for name, value in vars(current()).items()
        if name in others or value != getattr(view, name)
    }
    st.session_state[_PAST] = [*st.session_state.get(_PAST, ()), replaced][-_PAST_LIMIT:]


def intervene(**fields: object) -> None:
    """These fields of the intervention take these values."""
    set_intervention(replace(current().intervention, **fields))  # type: ignore[arg-type]


def can_undo() -> bool:
    """Whether a change of this session can be undone."""
    return bool(st.session_state.get(_PAST))


def undo() -> None:
    """Goes back by one change: what it replaced is there again."""
    if can_undo():
        *st.session_state[_PAST], replaced = st.session_state[_PAST]
        view = replace(current(), **replaced)
        (change_view if replaced.keys().isdisjoint(("text", "model")) else open_view)(view)


def adopt_link(page: str) -> tuple[str, ...]:
    """Takes the view from the link when a session starts and when another link was opened.

    Returns a sentence for each part of it that could not be read.
    """
    count_page(page)
    link = url.read(PARAMETERS)
    before = st.session_state.get(_PAGE)
    moved = before not in (None, page)
    st.session_state[_PAGE], st.session_state[_ARRIVED] = page, before != page or came_back()
    problems: tuple[str, ...] = ()
    if not _is_ours(link, moved=moved):
        linked, problems = from_link(link)
        if not link and _VIEW not in st.session_state:
            linked = replace(linked, model=remembered())
        view = _view_of_stale_link(page, link) or (
            linked if link else _brought_views().get(page, linked)
        )
        if link and link.keys() <= _PARTS and way_back.follows() and _VIEW in st.session_state:
            said = {name: getattr(linked, name) for name in link}
            view = replace(kept_view() or current(), **said)
        if _VIEW not in st.session_state and (typed := _typed_before()):
            view = replace(view, text=typed)
        open_view(view)
        is_other = (view.text, view.model) != (View().text, View().model)
        says_no_cell = link.keys().isdisjoint(("query", "key"))
        if says_no_cell and view is linked and view.intervention.changes:
            _choose_cell_by("difference")
        elif says_no_cell and is_other and (view is linked or "model" in link):
            _choose_cell_by("last token")
    elif moved:
        # The view of the page before, which opens here on this page's own first view.
        view = kept_view() or current()
        st.session_state.pop(_LENT, None)
        change_view(view if "show" in link else replace(view, show=""))
        if not link:  # the address says nothing of it, when Back leads here again
            st.session_state[_BROUGHT_VIEWS] = _brought_views() | {page: current()}
    way_back.arrive()
    return problems


def _is_ours(link: dict[str, str], *, moved: bool) -> bool:
    """Whether the link is one that this session wrote, so that its view stays. moved: whether the reader
    comes from another page."""
    if _VIEW not in st.session_state or came_back():
        return False
    if way_back.carries():
        return True
    # The request may be late: it may hold what a page's links carried, or what this page wrote, before.
    late, last = (_CARRIED, _LINK) if moved else (_LINK, _CARRIED)
    if not link or link == url.says(last):
        return True
    is_opened = way_back.follows() and not moved and link != url.says(late)
    return not is_opened and url.knows(late, link)


def _view_of_stale_link(page: str, link: dict[str, str]) -> View | None:
    """What Back shows where another page wrote the link of a view that it lent. Streamlit's browser code may
    write a page's parameters before its path: into an entry of the page before."""
    lender, lent, kept = st.session_state.get(_STALE_LINK, (page, {}, None))
    return kept if came_back() and page != lender and link == lent else None


def _brought_views() -> dict[str, View]:
    entered: dict[str, View] = st.session_state.get(_BROUGHT_VIEWS, {})
    return entered


def carried_link() -> dict[str, str]:
    """What a link to another page carries of the view, so that arriving there adds one entry to the
    browser's history and a new tab opens on the same view. Nothing where the text is long."""
    parameters = _without_waiting_cell(to_link(replace(current(), show="")))
    if sum(map(len, parameters.values())) > _CARRIED_LIMIT:
        parameters = {}
    url.tell(_CARRIED, parameters)
    return parameters


def _without_waiting_cell(link: dict[str, str]) -> dict[str, str]:
    """A link from a page that reads nothing, where the cell is still to be chosen, leaves that to whoever
    opens it."""
    if _WAITS not in st.session_state:
        return link
    return {name: value for name, value in link.items() if name not in ("query", "key")}


def write_link() -> None:
    """Writes the view into the link, as far as a server takes it; what stands beside it is put right."""
    view = current()
    if view.show == st.session_state.get(_FIRST):
        view = replace(view, show="")
    url.tell(_LINK, _without_waiting_cell(short_link(view)[0]), PARAMETERS)
    url.put_right()


_OPENED, KEPT = "opened-models", 8  # session state


def opened_here(known: Iterable[str]) -> list[str]:
    """Models beside the known ones: the open one, and what was open in this session and still may be."""
    name, before = current().model, st.session_state.get(_OPENED, [])
    if name not in {*before, *known}:
        before = st.session_state[_OPENED] = [*before, name][-KEPT:]
    return [one for one in before if one == name or (models.found(one) and not is_uploaded(one))]


_UPLOADED = (
    "dropped-files"  # session state: a file's name by content -> its name where it came from
)


def note_uploaded(name: str, called: str) -> None:
    """Notes that this session holds a file. called: the name that it has there."""
    st.session_state[_UPLOADED] = _uploaded() | {name: called}


def free_upload(file: UploadedFile) -> None:
    """Frees the memory of a file as it was sent, which Streamlit keeps until the session ends."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None and isinstance(run.uploaded_file_mgr, MemoryUploadedFileManager):
        run.uploaded_file_mgr.remove_file(run.session_id, file.file_id)


def called(name: str) -> str:
    """What a file of this session is called where it came from; "" for any other."""
    return _uploaded().get(name, "")


def own_files() -> tuple[str, ...]:
    """The names of this session's files."""
    return tuple(_uploaded())


def is_ours(name: str) -> bool:
    """Whether this session may read what has such a name. A thread that draws no page works for one that
    was allowed to."""
    if not is_uploaded(name) or get_script_run_ctx(suppress_warning=True) is None:
        return True
    return name in _uploaded()


def require_ours(name: str) -> None:
    """Raises ValueError for a file that was dropped in another session."""
    if not is_ours(name):
        raise ValueError(FORGOTTEN)


def _uploaded() -> dict[str, str]:
    uploaded: dict[str, str] = st.session_state.get(_UPLOADED, {})
    return uploaded
