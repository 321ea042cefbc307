"""The seven places of the menu with their pages in the order of the path through them, the way from page to
page, and links between them."""

import html
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from urllib.parse import parse_qsl, urlsplit

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError
from streamlit.navigation.page import Page as StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from viz.notation.words import sentences_of
from viz.state.link import View, address, opening_link
from viz.state.moved import gone, new_address

say = sentences_of("state.navigation")

HOME = "pages/home.py"


@dataclass(frozen=True)
class PageEntry:
    """A page's file, its name in the menu, and one line on where it stands in the whole picture.

    variants: the names of its pictures, as links say them (`show`), where it has several; some need a model
    of their kind. station: its name among the pages of its place, where that is another one. reads: whether
    it runs a model on the sentence. lends: whether it may open another sentence and model than the visitor's.
    has_beats: whether it shows the same with tiny numbers too.
    """

    file: str
    title: str
    line: str
    heading: str = ""  # above the page, where it is not the title
    variants: tuple[str, ...] = ()
    station: str = ""
    reads: bool = True
    lends: bool = False
    has_beats: bool = True

    @property
    def address(self) -> str:
        """Where it is found, behind the app's own address and a slash."""
        return "" if self.file == HOME else self.file.removeprefix("pages/").removesuffix(".py")


PLACES: dict[str, tuple[PageEntry, ...]] = {
    "Explore": (
        PageEntry(
            HOME,
            "Explore",
            say("see_transformer_read"),
            "The attention visualizer",
            variants=("Why?", "Carries", "Changed", "More changes"),  # its drawers
            has_beats=False,
        ),
    ),
    "Walk": (
        PageEntry(
            "pages/tokens.py",
            "Tokens",
            say("letters_tokens_ids"),
            variants=("Tokens", "Two tokenizers", "As a chat"),
        ),
        PageEntry(
            "pages/vectors.py",
            "Vectors",
            say("vector_token_starts"),
            variants=("Look-up", "Nearest tokens", "Two sentences"),
        ),
        PageEntry(
            "pages/positions.py",
            "Positions",
            say("model_knows_token"),
            variants=(
                "Word order",
                "The table",
                "How alike",
                say("added_tokens"),
                say("added_scores"),
            ),
        ),
        PageEntry(
            "pages/layer_norm.py",
            "Norm",
            say("between_sub_layers"),
            "Layer norm",
        ),
        PageEntry(
            "pages/feed_forward.py",
            "Feed-forward",
            say("happens_token_vector"),
            variants=("Experts", "Neurons", "On the curve"),
        ),
        PageEntry(
            "pages/stream.py",
            "Stream",
            say("every_sub_layer"),
            "Residual stream",
            variants=("Layer by layer", "Contributions"),
        ),
        PageEntry(
            "pages/prediction.py",
            "Next token",
            say("last_state_stream"),
            variants=("The next token", say("tokens_made")),
        ),
        PageEntry(
            "pages/writing.py",
            "Writing",
            say("token_token_share"),
            variants=("Token by token", "KV cache"),
        ),
        PageEntry(
            "pages/encoder_decoder.py",
            "Translation",
            say("stack_reads_sentence"),
            lends=True,
            variants=("Translate", "Alignment", "Three attentions", "Your own French"),
        ),
        PageEntry(
            "pages/model_as_code.py",
            "Code",
            say("open_model_listing"),
            say("model_code"),
            has_beats=False,
        ),
    ),
    "Heads": (
        PageEntry(
            "pages/all_heads.py",
            "Heads",
            say("head_attends_writes"),
            "All heads",
            station="All",
            variants=(
                "Maps",
                "Pattern",
                "Word to word",
                "First token",
                "What it writes",
                "Leave one out",
                "Over a corpus",
                "Your corpus",
            ),
        ),
        PageEntry(
            "pages/head.py",
            "One head",
            say("head_attends_job"),
            station="One",
            variants=("Map", "Matrices", "Joined"),
            has_beats=False,
        ),
        PageEntry(
            "pages/compare.py",
            "Compare",
            say("maps_side_side_sentences"),
            variants=("Two sentences", "Two models", "Averages", "Untrained", "Two runs"),
            has_beats=False,
        ),
        PageEntry(
            "pages/stands_out.py",
            "What stands out",
            say("unusual_run_finding"),
            has_beats=False,
        ),
    ),
    "Experiments": (
        PageEntry(
            "pages/experiments.py",
            "Experiments",
            say("question_guess_model"),
            say("guess_first"),
            has_beats=False,
            variants=(
                "All",
                "No mask",
                "No scaling",
                "No positions",
                "Without one head",
                "Hidden word",
                "Row without keys",
                "Sliding window",
                "No sinks",
                "Patch",
                "Steer",
                "Padded batch",
                "Dropout",
                "Gradient",
                "GRU",
                "Claims",
            ),
        ),
        PageEntry(
            "pages/training.py",
            "Training",
            say("training_turns_random"),
            reads=False,
            lends=True,
        ),
    ),
    "Cost": (
        PageEntry(
            "pages/shapes_and_cost.py",
            "Cost",
            say("large_arrays_cost"),
            say("cost"),
        ),
    ),
    "Library": (
        PageEntry(
            "pages/library.py",
            "Library",
            say("questions_answers_terms"),
            variants=("All", "Questions", "Terms", "Examples"),
            reads=False,
            has_beats=False,
        ),
        PageEntry(
            "pages/worked_examples.py",
            "Worked examples",
            say("every_calculation_step"),
            station="Worked",
            variants=("Step by step", "Code that fails", "Errata"),
            reads=False,
            has_beats=False,
        ),
        PageEntry(
            "pages/papers.py",
            "Papers",
            say("papers_found_about"),
            "Results of papers",
            reads=False,
            has_beats=False,
        ),
    ),
    "Teach": (
        PageEntry(
            "pages/for_a_class.py",
            "Teach",
            say("lesson_90_minutes"),
            has_beats=False,
            variants=("Lesson", "Exercises", "Share"),
        ),
    ),
}

PAGES: tuple[PageEntry, ...] = tuple(page for pages in PLACES.values() for page in pages)


def entry(file: str) -> PageEntry:
    """The page of a file. Raises KeyError if the menu does not list it."""
    for page in PAGES:
        if page.file == file:
            return page
    raise KeyError(file)


def read_address(link: str) -> tuple[PageEntry, dict[str, str]]:
    """The page and the parameters of an address of the app, such as "/tokens?show=Two+tokenizers"; of one of
    an earlier version those that it opens now. Raises KeyError where it leads to no page."""
    said = urlsplit(link)
    path, parameters = said.path.strip("/"), dict(parse_qsl(said.query))
    pages = {page.address: page for page in PAGES}
    return moved_to(path, parameters) or (pages[path], parameters)


def moved_to(path: str, parameters: Mapping[str, str]) -> tuple[PageEntry, dict[str, str]] | None:
    """The page and the parameters that an address of an earlier version opens now; None where nothing has
    moved. path: without a slash."""
    if (new := new_address(path, parameters)) is None:
        return None
    return next(page for page in PAGES if page.address == new[0]), new[1]


_PAGES = "pages-of-the-app"  # session state: all pages, where the app around this one has them
THIS_VIEW: Mapping[str, str] = MappingProxyType({})  # a link that says nothing of the view keeps it


def pages() -> dict[str, StreamlitPage]:
    """All pages by their files, for one run of the app, which marks the one that it opens."""
    context = get_script_run_ctx()
    folder = Path() if context is None else context.pages_manager.main_script_parent
    made = {file: copy(page) for file, page in _made_in(folder).items()}
    st.session_state[_PAGES] = made
    return made


def former_pages() -> list[StreamlitPage]:
    """The pages of earlier versions, each at its address: `run_app` leaves them for where their views are."""
    listed = {page.address for page in PAGES}
    return [
        st.Page(lambda: None, title="Moved", url_path=path) for path in gone() if path not in listed
    ]


@lru_cache(maxsize=4)
def _made_in(folder: Path) -> dict[str, StreamlitPage]:
    """The pages of the app in a folder. To make them Streamlit looks for the file of each."""
    return {
        page.file: st.Page(page.file, title=page.title, default=page.file == HOME) for page in PAGES
    }


def menu() -> None:
    """The seven places; viz/shell/keys marks the open one."""
    places = "".join(
        html_link(pages[0].file, place, shown_on=pages) for place, pages in PLACES.items()
    )
    st.html(f'<i class="mark"></i><nav class="menu" aria-label="Places">{places}</nav>')


def stations(file: str) -> None:
    """The pages of this one's place. Those of the walk are the blocks of its map; Explore stands alone."""
    pages = next(pages for pages in PLACES.values() if entry(file) in pages)
    if pages != PLACES["Walk"] and len(pages) > 1:
        links = "".join(html_link(page.file, page.station or page.title) for page in pages)
        st.html(f'<nav class="menu stations" aria-label="Pages of this place">{links}</nav>')


def path(file: str) -> None:
    """At the foot: links to the page before and the page after this one."""
    here = PAGES.index(entry(file))
    before = (html_link(page.file, f"← {page.title}") for page in PAGES[:here][-1:])
    after = (html_link(page.file, f"{page.title} →") for page in PAGES[here + 1 :][:1])
    with st.container(key="path"):
        st.html(f'<nav aria-label="The way on">{_place(before)}{_place(after)}</nav>')


def _place(links: Iterable[str]) -> str:
    return f"<span>{''.join(links)}</span>"


def page_link(file: str, label: str, *, help: str | None = None, **parameters: str) -> None:
    """A link to a page; its name alone where a page is run by itself and knows no other."""
    try:
        page = st.session_state.get(_PAGES, {}).get(file, file)
        st.page_link(page, label=label, help=help, query_params=parameters or None)
    except StreamlitPageNotFoundError:
        st.caption(label)


def has_others() -> bool:
    """Whether the app around this page has the others: a page that runs by itself leads nowhere."""
    return _PAGES in st.session_state


def html_link(
    file: str,
    words: str,
    parameters: Mapping[str, str] = THIS_VIEW,
    shown_on: Iterable[PageEntry] = (),
) -> str:
    """An HTML link to a page; its words alone where a page runs by itself. shown_on: the pages on which
    viz/shell/keys marks it, beside its own."""
    leads = leading_to(file, parameters) if has_others() else ""
    if pages := " ".join(f"/{page.address}" for page in shown_on):
        leads += f' data-shown-on="{pages}"'
    return f"<a {leads}>{html.escape(words)}</a>"


def leading_to(file: str, parameters: Mapping[str, str] = THIS_VIEW) -> str:
    """The attributes of an HTML link to a page, which viz/shell/keys follows within the app."""
    return f'href="{html.escape(page_address(file, parameters))}" data-page'


def page_address(file: str, parameters: Mapping[str, str] = THIS_VIEW) -> str:
    """Where a page is found in the app, with the parameters of a view."""
    return address(f"/{entry(file).address}", parameters)


def view_link(file: str, label: str, view: View) -> None:
    """A link to a page that opens a view there."""
    page_link(file, label, **opening_link(view))
