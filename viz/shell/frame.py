"""What stands around every page: the menu, the work bar, the map of the model, the heading, the beats of a
teaching page, the way on.

`app.py` draws it, so that it stays where it is while the page inside is changed for another: the menu keeps
its place and the keyboard its link. A page that runs by itself draws it too.
"""

import html
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.nn.config import ProvenPart, TransformerConfig
from model.nn.places import Head
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_of
from viz.notation.mark import mark
from viz.notation.markdown import plain
from viz.notation.model_map import BlockKind, MapBlock, Rail, rails
from viz.notation.theme import BLACK, MASKED
from viz.notation.words import sentences_of
from viz.saving.save import link_of_view
from viz.shell import class_bar
from viz.shell.controls import choose_example, sentence_box
from viz.shell.keys import STYLES as KEYS_STYLES
from viz.shell.keys import keys
from viz.shell.model_picker import choose_model, say_untrained
from viz.shell.recorded_run import bring_text
from viz.shell.streamlit_patches import mend_streamlit
from viz.state import navigation
from viz.state.embedded import is_embedded
from viz.state.link import View, opening_link
from viz.state.look import is_loaded, loaded
from viz.state.navigation import THIS_VIEW, PageEntry, entry, has_others, html_link, leading_to
from viz.state.session import adopt_link, current
from viz.tour import card as tour

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.run.model import Model

say = sentences_of("shell.frame")


# The map of the model above the pages of the walk: its blocks in order, the first of each page a link to it.
# The blocks that the open page shows are filled, and the tick of the chosen layer is lit.

PAGES: dict[BlockKind, str] = {
    "tokens": "pages/tokens.py",
    "positions": "pages/positions.py",
    "norm": "pages/layer_norm.py",
    "attention": navigation.HOME,
    "cross": "pages/encoder_decoder.py",
    "feed_forward": "pages/feed_forward.py",
    "add": "pages/stream.py",
    "memory": "pages/encoder_decoder.py",
    "vectors": "pages/vectors.py",
    "logits": "pages/prediction.py",
    "next_token": "pages/prediction.py",
}
ALSO: dict[str, tuple[BlockKind, ...]] = {"pages/encoder_decoder.py": ("attention",)}
OTHERS = (
    "pages/writing.py",
    "pages/encoder_decoder.py",
    "pages/model_as_code.py",
)  # stations of the walk that are no block
# The addresses of the pages on which a block is filled, by viz/shell/keys/js/links.js: drawn anew with each
# page, the map would lose the keyboard.
SHOWN_ON = {
    kind: " ".join(
        f"/{entry(one).address}" for one in (file, *(also for also in ALSO if kind in ALSO[also]))
    )
    for kind, file in PAGES.items()
}
SPOKEN: dict[BlockKind, str] = {"add": say("add_residual_stream")}  # where the name is a sign
_ROOM_FOR_STACKS = "<style>.st-key-work-bar { --picker: var(--encoder) }</style>"


@dataclass
class ModelMap:
    """A map that is drawn, or about to be."""

    rails: tuple[Rail, ...]
    carried: Mapping[str, str]  # what each link says of the view
    drawn: "DeltaGenerator"
    lit: str | None = None  # the sub-layer whose layer's tick is lit

    def light(self, place: str) -> None:
        """Draws the map with the tick of a layer lit. place: the name of a sub-layer of it."""
        if place != self.lit:
            self.lit = place
            led: set[str] = set(OTHERS)
            rows = "".join(
                _rail(rail, place, self.carried, led, named=len(self.rails) > 1)
                for rail in self.rails
            )
            room = _ROOM_FOR_STACKS if len(self.rails) > 1 else ""
            others = "".join(html_link(one, entry(one).title, self.carried) for one in OTHERS)
            parts = f'{rows}<div class="others">{others}</div>'
            self.drawn.html(f'<nav aria-label="The parts of the model">{parts}</nav>{room}')


def model_map(
    config: TransformerConfig, carried: Mapping[str, str], unproven: Collection[ProvenPart] = ()
) -> ModelMap:
    """One line of blocks for each stack. unproven: parts that are left out."""
    return ModelMap(rails(config, unproven), carried, st.empty())


def _rail(rail: Rail, place: str, carried: Mapping[str, str], led: set[str], *, named: bool) -> str:
    """The blocks of a stack, with one tick a layer, and how many there are. led: the pages that have a link;
    those of the blocks join them."""
    before, layer, after = (
        "".join(_block(block, carried, led) for block in blocks)
        for blocks in (rail.before, rail.layer, rail.after)
    )
    name = f"<small>{rail.stack.capitalize()}</small>" if named else ""
    chosen = [n for n in range(rail.layers) if place.startswith(f"{rail.stack}.{n}.")]
    ticks = "".join(f"<i class={'lit' if n in chosen else 'tick'}></i>" for n in range(rail.layers))
    said = f"{rail.layers} layers" + (f", layer {chosen[0]} is chosen" if chosen else "")
    return (
        f'<div class="rail" data-stack="{rail.stack}">{name}{before}'
        f'<span class="layer">{layer}<span class="ticks" role="img" aria-label="{said}" '
        f'data-stack="{rail.stack}"><b>× {rail.layers}</b><span>{ticks}</span></span></span>{after}</div>'
    )


def _block(block: MapBlock, carried: Mapping[str, str], led: set[str]) -> str:
    """A block; the first of its page is a link to it."""
    file, said = PAGES[block.kind], html.escape(f"{block.formula}\nshape: {block.shape}")
    link = ""
    if file not in led and has_others():
        led.add(file)
        label = f' aria-label="{SPOKEN[block.kind]}"' if block.kind in SPOKEN else ""
        to = (
            {**carried, "stage": "query"} if block.kind == "attention" else carried
        )  # Explore, at Q
        link = f' aria-description="{said}"{label} {leading_to(file, to)}'
    return (
        f'<a data-kind="{block.kind}" data-shown-on="{SHOWN_ON[block.kind]}" data-said="{said}"{link}>'
        f"{html.escape(block.name)}</a>"
    )


_DRAWN = "frame-drawn"  # session state: the page that is about to run has its frame
_FRAME = "frame"  # session state: that of the open page
SIDEBAR = 200  # pixels, the fewest that Streamlit takes; viz/shell/style.css makes it narrower
_STYLE = "".join(
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("style.css", "frame.css")
)
_MARK = f'.mark {{ --mark: url("{mark(BLACK)}") }}'
STYLES = f"<style>{_STYLE}{_MARK}</style>{KEYS_STYLES}"  # those of all pages
_ICON = mark(MASKED)  # a grey that is seen on light and on dark
_ONE_SCREEN = Path(__file__).with_name("one_screen.css")
_EMBEDDED = Path(__file__).with_name("embedded.css")


@dataclass
class Frame:
    """The places that a page fills."""

    page: PageEntry
    bar: "DeltaGenerator"  # the work bar: it stays in sight
    map: "DeltaGenerator"  # of the model, or the pages of the place
    said: "DeltaGenerator"  # what is said on the way to a run, above the heading
    card: "DeltaGenerator"  # of the tour
    opening: "DeltaGenerator"  # beside the title
    is_embedded: bool  # whether it stands in a frame of another page
    model_map: ModelMap | None = None
    is_mapped: bool = False
    has_controls: bool = False
    has_ways: bool = False  # whether the page shows the same with tiny numbers too
    has_drawn_ways: bool = False
    head: Head | None = None  # that the work bar names

    def draw_controls(self) -> None:
        """The sentence box and the choice of the model, where the work bar does not hold them yet."""
        if not self.has_controls:
            self.has_controls = True
            with _of_every_page(), self.bar:
                sentence_box(None if self.page.reads else navigation.HOME)
                if not self.is_embedded:
                    choose_example()
                    st.html(_REST)
                    choose_model()
            with _of_every_page(), self.said:
                say_untrained()

    def draw_map(self, model: "Model", view: View | None = None) -> None:
        """The map of the model along the walk through it, where it could not be drawn before the model was
        loaded; on other pages the room that the names of its heads need. view: the view that its links open,
        where the page shows another model than the chosen one."""
        if self.is_mapped or self.is_embedded:
            return
        self.is_mapped = True
        with _of_every_page(), self.map:
            if self.page in navigation.PLACES["Walk"]:
                carried = THIS_VIEW if view is None else opening_link(view)
                self.model_map = model_map(model.config, carried, model.unproven)
            elif len(rails(model.config, model.unproven)) > 1:
                st.html(_ROOM_FOR_STACKS)
        self.light_layer((view or current()).place)

    def light_layer(self, place: str) -> None:
        """Lights the tick of a layer on the map. place: the name of one of its sub-layers."""
        if self.model_map is not None:
            self.model_map.light(place)

    def draw_ways(self) -> None:
        """In the row of a page's controls: the way to the tiny numbers and back."""
        self.has_drawn_ways = True
        if self.has_ways:
            with st.container(width="content", key="ways"):
                one_of(WAYS, (self.live, HAND), self._way, quiet=True)

    @property
    def live(self) -> str:
        """What the way back from the tiny numbers is called: not every page reads the sentence."""
        return "Your sentence" if self.page.reads else "Live"

    @property
    def _way(self) -> str:
        return f"way-{self.page.address}"

    def is_live(self) -> bool:
        """Whether the page shows the visitor's sentence, and not the tiny numbers."""
        return st.session_state.get(self._way) != HAND

    def follow_way(self) -> None:
        """Draws the page anew where a click in a part of it has chosen the tiny numbers."""
        if not self.is_live():
            st.rerun()

    def follow_head(self) -> None:
        """Draws the page anew where a click in a part of it has chosen another head."""
        view = current()
        if self.head not in (None, (view.place, view.head)):
            st.rerun()


def run_app() -> None:
    """The frame of the page that the address names, and that page inside it."""
    mend_streamlit()
    pages = navigation.pages()
    opened = st.navigation([*pages.values(), *navigation.former_pages()], position="hidden")
    if (new := navigation.moved_to(opened.url_path, dict(st.query_params))) is not None:
        page, parameters = new
        st.switch_page(pages[page.file], query_params=parameters)
    file = next(file for file, page in pages.items() if page is opened)
    with _frame(file):
        keys(file)
    inside = st.container(key="page")
    navigation.path(file)
    st.session_state[_DRAWN] = True
    with inside:
        if file != navigation.HOME:  # it can show something before
            # The frame is there; the server may be importing it (viz/server/asgi.py).
            import_module("torch")
        opened.run()


def open_page(file: str) -> None:
    """The first call of every page: its frame, where `app.py` has not drawn it.

    Raises KeyError if the menu does not list the file.
    """
    if not st.session_state.pop(_DRAWN, False):
        mend_streamlit()
        _frame(file)


def frame() -> Frame:
    """The frame of the open page."""
    drawn: Frame = st.session_state[_FRAME]
    return drawn


@contextmanager
def _of_every_page() -> Iterator[None]:
    """What is drawn meanwhile belongs to the frame, even if a page draws it. Streamlit removes a page's own
    parts when another page opens, and the keyboard would lose its place."""
    context = get_script_run_ctx()
    if context is None:
        yield
        return
    with context.run_with_active_hash(context.pages_manager.main_script_hash):
        yield


def _frame(file: str) -> "DeltaGenerator":
    """Draws the frame of a page; returns the place beside its title."""
    page = entry(file)
    class_bar.join()
    st.set_page_config(
        f"{page.title} · Attention visualizer",
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=SIDEBAR,
    )
    notes = adopt_link(file)
    bring_text()
    tour.open_page(file)
    embedded = is_embedded()
    if not embedded:
        with st.sidebar:
            navigation.menu()
            tour.invitation("menu", quiet=True)
    st.html(STYLES)
    if embedded:
        st.html(_EMBEDDED)
    elif file == navigation.HOME:
        st.html(_ONE_SCREEN)
    drawn = st.session_state[_FRAME] = Frame(
        page,
        bar=st.container(horizontal=True, vertical_alignment="center", gap="small", key="work-bar"),
        map=st.container(key="model-map" if page in navigation.PLACES["Walk"] else "places"),
        said=st.container(key="said"),
        card=st.container(),
        opening=st.container(),
        is_embedded=embedded,
    )
    if not (page.reads and page.lends):
        drawn.draw_controls()
    if embedded:
        with drawn.bar, st.container(key="whole-app", width="content"):
            st.page_link(link_of_view(), label=say("open_app"))
    if not page.lends and is_loaded(current().model):
        drawn.draw_map(loaded(current().model))
    with drawn.said:
        for note in notes:
            st.warning(plain(note))
        tour.elsewhere()
        class_bar.bar(file)
    if not embedded:
        with drawn.map:
            navigation.stations(file)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heading"):
        st.title(page.heading or page.title, anchor=False, width="content")
        drawn.opening = st.container(key="opening")
        beside_title = st.container(width="content")
        if not page.has_beats:
            with drawn.opening:
                st.caption(page.line)
    return beside_title


# On a phone what stands beside the sentence is behind this button: viz/shell/frame.css.
_REST = '<details class="rest"><summary>Examples, model and head</summary></details>'


WAYS = "Numbers"
HAND = "Tiny numbers"
IDEA = say("idea_words")


def beats(
    *, opening: str, idea: Callable[[], None], hand: Callable[[], None], live: Callable[[], None]
) -> None:
    """A page that teaches: the live model, or the same worked by hand with tiny numbers. In a frame of
    another page the live model alone.

    opening: the idea in two sentences, in Markdown, above the picture; the whole of it can be opened below.
    """
    drawn = frame()
    if drawn.is_embedded:
        with error_boundary():
            live()
        return
    with drawn.opening:
        st.markdown(opening)
    drawn.has_ways = True
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    is_live = drawn.is_live()
    with error_boundary():
        if is_live:
            live()
        else:
            with row:
                drawn.draw_ways()
            tour.point_back(drawn.live)
            hand()
    if not drawn.has_drawn_ways:  # the live part has no views of its own
        with row:
            drawn.draw_ways()
    words = st.expander(IDEA, key="idea", on_change="rerun")
    if words.open:
        with words, error_boundary():
            idea()
