"""The keys that work on every page: their list, the search for everything, the lecture view.

The component has three buttons for the same, and listens to the whole document. A head or a token that is
chosen opens on the page where it can be seen.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from model.loading.registry import models
from model.nn.config import Shape
from model.nn.places import Place, layer_label
from viz.explorer.assets import static_address
from viz.explorer.bundle import BUNDLED
from viz.notation.labels import token_label
from viz.shell import class_bar
from viz.state.link import PARAMETERS, View
from viz.state.look import is_loaded, loaded
from viz.state.session import carried_link, change_view, current, go_on, goes_on, to_remember

SHOW_HEADS = ("pages/home.py", "pages/all_heads.py", "pages/head.py")  # the first opens
_LETTERS = 24  # of a token in the list
_MOUNT = "keys"
_FOLDER = Path(__file__).parent
_STYLE, _LECTURE = (
    (_FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "lecture.css")
)
STYLES = f'<style>{_STYLE}</style><style class="lecture" media="not all">{_LECTURE}</style>'
_component = st.components.v2.component(
    "keys",
    html=(_FOLDER / "keys.html").read_text(encoding="utf-8"),
    css=(BUNDLED / "keys.css").read_text(encoding="utf-8"),
    js=(BUNDLED / "keys.js").read_text(encoding="utf-8"),
)


def keys(file: str) -> None:
    """Draws the buttons and hears the keys. file: of the page that is open.

    Where a jump leads to another page, the run ends here and that page runs.
    """
    to = goes_on(file)
    if to != file:
        with suppress(StreamlitPageNotFoundError):  # a page that runs by itself knows no other
            st.switch_page(to, query_params=carried_link())
    _component(
        key=_MOUNT,
        data=_goals(),
        width="content",
        on_jump_change=lambda: _jump(file),
        on_look_change=lambda: None,
    )


def _goals() -> dict[str, object]:
    """What the search lists beside static/catalogue.json: models, and heads and tokens of the open one, if it
    is loaded. Also what a link to another page says of the view, and the model that the browser keeps. No
    value is a list: in each list Streamlit looks for a table, by pandas, whose import takes 0.3 seconds."""
    view = current()
    goals: dict[str, object] = {
        "catalogue": static_address("catalogue.json"),
        "models": tuple((entry.name, entry.title, entry.about) for entry in models.values()),
        "view": tuple(sorted(PARAMETERS - {"show"})),
    }
    if (chosen := to_remember()) is not None:
        goals["chosen"] = chosen
    if (led := class_bar.to_remember()) is not None:
        goals["led"] = led
    if not is_loaded(view.model):
        return goals
    changed = loaded(view.model).changed
    layers = _layers(view.model, changed)
    return goals | {"layers": layers, "tokens": _tokens(view.model, view.text, changed)}


@lru_cache(maxsize=8)
def _layers(name: str, changed: int) -> tuple[tuple[object, ...], ...]:
    """The attention sub-layers of a model, each with its label and the number of its heads. changed: when its
    file was, in the key of the cache."""
    model = loaded(name)
    return tuple(
        (name, layer_label(name), model.layer(name).heads) for name in model.attention_names
    )


@lru_cache(maxsize=8)
def _tokens(name: str, text: str, changed: int) -> tuple[str, ...]:
    """The tokens that the model reads of a text; none of a blank one. changed: as above."""
    model = loaded(name)
    try:
        tokens = model.tokens(text)
    except ValueError:
        return ()
    return tuple(token_label(token.text, _LETTERS) for token in tokens[: model.config.n_ctx])


def _jump(file: str) -> None:
    """Opens the head or token that was chosen in the list, on a page that shows it."""
    said = st.session_state[_MOUNT].get("jump")
    if not isinstance(said, Mapping):
        return
    model = loaded(current().model)
    view = view_at(current(), said, model.attention_names, model.config.shape)
    if view != current():
        change_view(view)
    go_on(file if file in SHOW_HEADS else SHOW_HEADS[0])


def view_at(view: View, said: Mapping[str, object], layers: tuple[str, ...], shape: Shape) -> View:
    """The view at a head, {"place", "head"}, or at a token of the text, {"token"}.

    The token becomes the query whose row is shown. In cross-attention, whose keys are the text, it becomes
    the key. A head or token that does not exist changes nothing.
    """
    head, token = said.get("head"), said.get("token")
    if said.get("place") in layers and isinstance(head, int) and head >= 0:
        return replace(view, place=str(said["place"]), head=head)
    if not isinstance(token, int) or token < 0:
        return view
    place = Place.named(view.place)
    if place.kind == "cross":
        return replace(view, key=token)
    if shape == "encoder-decoder":  # the decoder's queries are another text's tokens
        place = replace(place, stack="encoder")
    return replace(view, place=place.name, query=token)
