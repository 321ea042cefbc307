"""The heart of the screen: one attention layer, its heads, stages and cells switched in the browser.

Python sends a layer's recorded Q and K once, V and output when they are shown; the browser derives scores,
scaled and masked scores, weights and output from them, so a switch of head, stage or cell never waits for
the server. What the reader chose is reported here afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache

import streamlit as st

from model.trace.records import Attention
from viz.explorer import assets, bundle
from viz.explorer.message import parts, payload, without_arrays
from viz.explorer.packing import packed
from viz.explorer.selection import Selection, choose, forget

__all__ = ["Selection", "explorer", "forget", "payload"]

HELD = 4  # parts of layers that count as kept in the browser, which keeps some more (js/held.js)
_HELD = "explorer:held"
_component = st.components.v2.component(
    "attention_explorer", html=bundle.skeleton(), css=bundle.style(), js=bundle.script()
)


def explorer(
    attention: Attention,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    selection: Selection,
    check: float | None,
    baseline: Attention | None = None,
    layers: Sequence[str] = (),
    open_layer: Callable[[str], object] = lambda name: None,
    address: str = "",
    device: str = "",
    mount: str = "explorer",
) -> Selection:
    """Draws one attention layer and returns what the reader has chosen in it.

    attention, queries, keys, check, baseline: as `payload` takes them. selection: where the reader
    starts; later it counts only where the page sends the reader somewhere else, as after a link or an
    example. layers: names of the layers to choose among, none where the page has them elsewhere;
    `open_layer` is called with the chosen one before the page runs again. address: where the browser
    itself finds layers of the run, and its check (endpoint.py). device: what the run was made on.
    mount: a name for this place on the page.
    Raises ValueError if the tokens are not as many as the rows and columns.
    """
    sizes = {"heads": attention.heads, "queries": len(queries), "keys": len(keys)}
    choice = choose(selection, mount, **sizes)
    message = payload(
        attention,
        queries=queries,
        keys=keys,
        head=choice.returned.head,
        check=check,
        baseline=baseline,
        stage=choice.returned.stage,
        layers=layers,
    )
    beside = {"mount": mount, "address": address, "device": device, "assets": _addresses()}
    start = {"selection": asdict(choice.sent), "revision": choice.revision}
    data = packed(without_arrays(message, _held()) | beside | start)
    _hold(parts(message))
    _component(
        key=mount,
        data=data,
        on_selection_change=_nothing,
        on_layer_change=lambda: _open(mount, layers, open_layer),
    )
    return choice.returned


def _open(mount: str, layers: Sequence[str], open_layer: Callable[[str], object]) -> None:
    """Opens the layer that the reader has chosen, and notes what the browser has fetched of it."""
    said = st.session_state[mount].get("layer")
    name, fetched = (
        (said.get("name"), said.get("fetched")) if isinstance(said, Mapping) else (None, None)
    )
    if name in layers:
        open_layer(str(name))
    if isinstance(fetched, list) and fetched:
        _hold([str(part) for part in fetched])
    else:  # it could not fetch what it lacks: all is sent again
        st.session_state.pop(_HELD, None)


def _held() -> tuple[str, ...]:
    held: tuple[str, ...] = st.session_state.get(_HELD, ())
    return held


def _hold(parts: Sequence[str]) -> None:
    """Notes what the browser gets: the parts of layers, those it used last at the end."""
    st.session_state[_HELD] = (*(part for part in _held() if part not in parts), *parts)[-HELD:]


@cache
def _addresses() -> dict[str, str]:
    return assets.addresses()


def _nothing() -> None:
    """Streamlit hands a state value over only where a callback is named."""
