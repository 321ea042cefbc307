"""The one seam with Streamlit: menu, sentence box, choices, the link, and the way to a trace.

A page calls `open_page`, then `look` for what the visitor wants to see. The state is one `View` a
session; every control shows a part of it and writes it back, and the link always says the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from model.engine import Request
from model.intervention import Intervention, MaskChoice
from model.registry import models
from model.trace import Attention, Trace
from viz.examples import EXAMPLES, Example
from viz.explorer import explorer, forget
from viz.markdown import plain
from viz.menu import MENU, PAGES, entry
from viz.shared import engine
from viz.view import PARAMETERS, TEXT_LIMIT, View, from_link, to_link

if TYPE_CHECKING:
    from model.live import Model

VIEW, LINK, NOTES = "view", "link", "link-notes"
STYLE = """<style>
.stMainBlockContainer { padding-top: 2.5rem; padding-bottom: 3rem; max-width: 90rem; }
.katex-display { overflow-x: auto; overflow-y: hidden; padding: 0.25rem 0; }
</style>"""
READS_ALL = "minilm"  # the model offered where words are new to another one
MASK_NAMES: dict[MaskChoice, str] = {
    "model": "the model's own",
    "none": "none: all may look",
    "causal": "causal: no future",
}
MASKS_OF_SHAPE: dict[str, tuple[MaskChoice, ...]] = {
    "decoder": ("model", "none"),
    "encoder": ("model", "causal"),
    "encoder-decoder": ("model", "none", "causal"),
}


@dataclass(frozen=True)
class Look:
    """What the visitor looks at: a run of the model, and the unchanged run where it is changed."""

    request: Request
    place: str  # name of the attention sub-layer
    model: "Model"

    @property
    def trace(self) -> Trace:
        return traced(self.request)

    @property
    def attention(self) -> Attention:
        """The chosen layer's attention, of the run as it is shown."""
        return self.trace.find(self.place)

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """The texts of the tokens that look, and of those looked at."""
        trace, attention = self.trace, self.attention
        return (
            [token.text for token in trace.queries_of(attention)],
            [token.text for token in trace.keys_of(attention)],
        )

    @property
    def head(self) -> int:
        """The chosen head, within this layer's."""
        return min(current().head, self.attention.heads - 1)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The run that is shown and, where it is changed, the unchanged one."""
        if not self.request.intervention.changes:
            return (self.request,)
        return self.request, replace(self.request, intervention=Intervention())

    @property
    def baseline(self) -> Trace | None:
        """The unchanged run; None if nothing is changed."""
        return None if len(self.requests) == 1 else traced(self.requests[1])


def open_page(file: str) -> None:
    """Page settings, the menu, the heading: the first call of every page."""
    page = entry(file)
    st.set_page_config(page_title=f"{page.title} · Attention visualizer", layout="wide")
    _adopt_link()
    with st.sidebar:
        _menu()
    st.html(STYLE)
    heading, path = st.columns([3, 2], vertical_alignment="bottom")
    with heading:
        st.title(page.heading or page.title, anchor=False)
        st.caption(page.line)
    with path:
        _path(file)
    with st.container():  # one place, whether there is something to say or not
        for note in st.session_state.pop(NOTES, ()):
            st.warning(plain(note))


def look(*, switches: bool = False, layers: bool = True, full: bool = False) -> Look:
    """The sentence box and the choices, then the run they ask for.

    switches: whether the reader may change the mechanism here. layers: whether a layer is chosen.
    full: whether the trace holds feed-forward activations and norm outputs too.
    Stops the page with a sentence where there is nothing to run; what was typed stays.
    """
    _sentence_box()
    with st.sidebar:
        st.caption("Choose")
        st.selectbox("Model", list(models), format_func=_model_name, **_control("model"))
        choices = st.container()
    # What is said on the way keeps one place: if elements were counted anew, the explorer below
    # would be mounted anew.
    with st.container():
        try:
            model = _loaded(current().model)
            _settle(model)
            with choices:
                if layers:
                    choose_layer(model.attention_names)
                if switches:
                    _switches(model)
            change = current().intervention if switches else Intervention()
            request = Request(model.name, _readable(model), intervention=change, full=full)
            return _run(Look(request, current().place, model))
        except ValueError as refusal:
            st.error(plain(str(refusal)))
            st.stop()
        finally:
            _write_link()


def beats(*, idea: Callable[[], None], hand: Callable[[], None], live: Callable[[], None]) -> None:
    """The three beats of a teaching page, as tabs; it opens on the live model. One is drawn at a time."""
    names = ("The idea", "By hand", "On your sentence")
    tabs = st.tabs(names, default=names[-1], on_change="rerun")
    for tab, beat in zip(tabs, (idea, hand, live), strict=True):
        if tab.open:
            with tab:
                beat()


def current() -> View:
    """The view of this session."""
    view: View = st.session_state[VIEW]
    return view


def traced(request: Request) -> Trace:
    """The trace of a request, from the engine's cache where it is there.

    Raises ValueError as `Model.trace` does.
    """
    return engine().trace(request, lambda place: None)


def choose_layer(names: Sequence[str]) -> str:
    """The layer among some attention sub-layers, chosen where the page stands; it joins the link."""
    if current().place not in names:
        _change(replace(current(), place=names[0]))
        _write_link()
    st.selectbox("Layer", names, format_func=_layer_name, **_control("place"))
    return current().place


def choose_head(heads: int) -> int:
    """The head among so many, chosen where the page stands; it joins the link."""
    if current().head >= heads:
        _change(replace(current(), head=heads - 1))
        _write_link()
    st.selectbox("Head", range(heads), **_control("head"))
    return current().head


def offer_model(name: str) -> None:
    """A button that opens the same sentence in another model."""
    st.button(
        f"Read it with {models[name].title}",
        key=f"offer-{name}",
        on_click=lambda: _change(replace(current(), model=name)),
    )


@st.fragment
def explore(seen: Look) -> None:
    """The explorer on the chosen layer; head, stage and cell join the link when they change."""
    attention, (queries, keys) = seen.attention, seen.labels
    chosen = explorer(
        attention,
        queries=queries,
        keys=keys,
        selection=current().selection,
        check=seen.trace.check(),
        baseline=None if seen.baseline is None else seen.baseline.find(seen.place),
    )
    _change(current().at(chosen))
    _write_link()


def what_to_look_for() -> None:
    """The line above a picture, where the view is an example that has one."""
    look_for = current().look_for
    with st.container():
        if look_for:
            st.markdown(f"**What to look for.** {plain(look_for)}")


def chart(figure: go.Figure, key: str) -> None:
    """A Plotly figure without its tool bar."""
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})


def table(frame: pd.DataFrame, key: str, *, decimals: int = 4) -> None:
    """The plain table behind a picture, closed at first: for screen readers and for copying."""
    with st.expander("The numbers as a table"):
        numbers = frame.select_dtypes("number").columns
        formats = dict.fromkeys(numbers, st.column_config.NumberColumn(format=f"%.{decimals}f"))
        st.dataframe(frame, key=f"table-{key}", column_config=formats)


def checked(seen: Look) -> None:
    """The check line of a page: how far the recomputed numbers lie from the recorded ones."""
    st.caption(
        f"Check: attention outputs and norms, recomputed from what was recorded, differ from the "
        f"model's own by at most {seen.trace.check():.0e}."
    )


class _Control(TypedDict):
    key: str
    on_change: Callable[[], None]


def _control(field: str) -> _Control:
    """Key and callback of the widget that shows one field of the view and changes it."""
    key = f"choose-{field}"
    st.session_state[key] = getattr(current(), field)

    def changed() -> None:
        _change(replace(current(), **{field: st.session_state[key]}))

    return {"key": key, "on_change": changed}


def _change(view: View) -> None:
    st.session_state[VIEW] = view


def _adopt_link() -> None:
    """Takes the view from the link when a session starts and when the link was changed by hand."""
    parameters = _linked()
    known = VIEW in st.session_state
    if known and (not parameters or parameters == st.session_state.get(LINK)):
        return
    view, st.session_state[NOTES] = from_link(parameters)
    _change(view)
    forget()


def _write_link() -> None:
    parameters, written = to_link(current()), _linked()
    if written != parameters:  # one by one: a widget's own parameter must not be set from here
        for name in written.keys() - parameters.keys():
            del st.query_params[name]
        st.query_params.update(parameters)
    st.session_state[LINK] = parameters


def _linked() -> dict[str, str]:
    """The parameters of the link that are the view's; a page may keep its own beside them."""
    return {name: st.query_params[name] for name in st.query_params if name in PARAMETERS}


def _menu() -> None:
    for group, pages in MENU.items():
        if group:
            st.caption(group)
        for page in pages:
            page_link(page.file, page.title)


def _path(file: str) -> None:
    """Links to the page before and the page after this one."""
    files = [page.file for page in PAGES]
    here = files.index(file)
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if here > 0:
            page_link(PAGES[here - 1].file, f"← {PAGES[here - 1].title}")
        if here + 1 < len(PAGES):
            page_link(PAGES[here + 1].file, f"{PAGES[here + 1].title} →")


def page_link(file: str, label: str, **parameters: str) -> None:
    """A link to a page; its name alone where a page is run by itself and knows no other."""
    try:
        st.page_link(file, label=label, query_params=parameters or None)
    except StreamlitPageNotFoundError:
        st.caption(label)


def _sentence_box() -> None:
    box, examples = st.columns([3, 1], vertical_alignment="bottom")
    box.text_input(
        "Your sentence",
        max_chars=TEXT_LIMIT,
        placeholder="Type a sentence and press Enter",
        **_control("text"),
    )
    examples.selectbox(
        "Examples",
        EXAMPLES,
        index=None,
        key="example",
        format_func=lambda example: example.text,
        placeholder="Start from an example",
        on_change=_open_example,
    )


def _open_example() -> None:
    example: Example | None = st.session_state["example"]
    if example is None:
        return
    _change(
        View(
            text=example.text,
            model=example.model,
            place=example.place,
            head=example.head,
            query=example.query,
            key=example.key,
        )
    )
    forget()
    st.session_state["example"] = None


def _model_name(name: str) -> str:
    entry_ = models[name]
    return entry_.title if entry_.on_disk else f"{entry_.title}, to be downloaded"


def _loaded(name: str) -> "Model":
    """The model, with its progress on the page while it loads."""
    if engine().has(name):
        return engine().model(name, lambda sentence, share: None)
    place = st.empty()
    with place.container():
        bar = st.progress(0.0, text=f"Loading {models[name].title}")
        model = engine().model(
            name, lambda sentence, share: bar.progress(share or 0.0, text=sentence)
        )
    place.empty()
    return model


def _run(seen: Look) -> Look:
    """Makes the traces now, so that a refusal is said in its place; tells the place in line."""
    place = st.empty()
    for request in seen.requests:
        engine().trace(
            request, lambda ahead: place.caption(f"In line for the model: place {ahead}.")
        )
    place.empty()
    return seen


def _settle(model: "Model") -> None:
    """Brings the view to what this model has; says so where a link asked for something else."""
    view = current()
    if view.place not in model.attention_names:
        if view.place and view.model == st.session_state.get("settled"):
            st.warning(plain(f"{model.name} has no layer “{view.place}”; the first one is shown."))
        view = replace(view, place=model.attention_names[0])
    if view.mask not in MASKS_OF_SHAPE[model.config.shape]:
        view = replace(view, mask="model")
    _change(view)


def _layer_name(place: str) -> str:
    stack, layer, kind = place.split(".")
    return f"{layer} · {stack} {'cross-attention' if kind == 'cross' else 'self-attention'}"


def _switches(model: "Model") -> None:
    st.caption("Change and compare")
    st.toggle("Divide scores by √dₖ", **_control("scaled"))
    st.radio(
        "Mask",
        MASKS_OF_SHAPE[model.config.shape],
        format_func=MASK_NAMES.__getitem__,
        **_control("mask"),
    )
    if current().intervention.changes:
        st.caption("A trained model run this way is a counterfactual: it never learned to.")
        st.button("Back to the unchanged model", on_click=_unchange)


def _unchange() -> None:
    default = View()
    _change(replace(current(), scaled=default.scaled, mask=default.mask))


def _readable(model: "Model") -> str:
    """As much of the text as the model can read; says so where that is not all."""
    text = current().text
    kept = model.kept(text)
    if kept != text:
        length, context = len(model.tokens(text)), model.config.context
        st.warning(
            f"Your text is {length:,} tokens long and {models[model.name].title} reads {context:,}: "
            f"the first {context:,} are shown. Your text stays in the box."
        )
    _new_words(model, kept)
    return kept


def _new_words(model: "Model", text: str) -> None:
    words = model.new_words(text)
    if not words or model.name == READS_ALL:
        return
    listed = ", ".join(f"“{word}”" for word in words[:6]) + (" and more" if len(words) > 6 else "")
    st.info(plain(f"New to this model: {listed}. It reads them byte by byte."))
    offer_model(READS_ALL)
