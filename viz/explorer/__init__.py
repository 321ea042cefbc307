"""The heart of the screen: one attention layer, its heads, stages and cells switched in the browser.

Python sends a layer's recorded Q and K once, V and output when they are shown; the browser derives scores,
scaled and masked scores, weights and output from them, so a switch of head, stage or cell never waits for
the server. What the reader chose is reported here afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import get_args

import streamlit as st

from viz.explorer import assets, bundle
from viz.explorer.message import AttentionRecord, parts, payload, without_arrays
from viz.explorer.packing import packed
from viz.notation.formulas import StageName

__all__ = ["Selection", "explorer", "forget", "payload"]

HELD = 4  # parts of layers that count as kept in the browser, which keeps some more (js/held.js)
_HELD = "explorer:held"
STAGES: tuple[str, ...] = get_args(StageName)
_component = st.components.v2.component(
    "attention_explorer", html=bundle.skeleton(), css=bundle.style(), js=bundle.script()
)


@dataclass(frozen=True)
class Selection:
    """One cell: a head, a stage, a query token and a key token. All count from 0."""

    head: int = 0
    stage: str = "weights"
    query: int = 0
    key: int = 0

    def clamped(self, *, heads: int, queries: int, keys: int) -> "Selection":
        """The nearest selection that exists; an unknown stage becomes the weights."""
        return Selection(
            head=_within(self.head, heads),
            stage=self.stage if self.stage in STAGES else "weights",
            query=_within(self.query, queries),
            key=_within(self.key, keys),
        )


@dataclass(frozen=True)
class _Memory:
    """What passed between the page, this function and the browser so far, for one mount."""

    passed: Selection  # by the page, last time, as it was
    returned: Selection  # to the page, last time
    sent: Selection  # to the browser
    revision: int = 0  # grows whenever the page sends the reader somewhere else


def explorer(
    attention: AttentionRecord,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    selection: Selection,
    check: float | None,
    baseline: AttentionRecord | None = None,
    layers: Sequence[str] = (),
    open_layer: Callable[[str], object] = lambda name: None,
    address: str = "",
    device: str = "",
    mount: str = "explorer",
) -> Selection:
    """Draws one attention layer and returns what the reader has chosen in it.

    attention: the layer of the run to show. queries, keys: the text of each token. baseline: the same
    layer of the unchanged run, to lay beside it; it has as many tokens. check: largest difference between
    recomputed and recorded numbers of the whole trace; None: the browser asks the address for it. layers:
    names of the layers to choose among, none where the page has them elsewhere; `open_layer` is called
    with the one that the reader chooses, before the page runs again. address: where the browser finds
    layers of the run, and its check, itself (viz.other_layers). device: what the run was made on, for the
    check line. mount: a name for this place on the page.

    `selection` is where the reader starts. Later it counts only when it differs from what was passed,
    returned and reported before, as after a link or an example; otherwise the reader's own choice stays.
    Raises ValueError if the tokens are not as many as the rows and columns.
    """

    def nearest(wanted: Selection) -> Selection:
        return wanted.clamped(heads=attention.heads, queries=len(queries), keys=len(keys))

    memory, chosen = _reconcile(selection, nearest(selection), mount)
    chosen = nearest(chosen)
    st.session_state[_memory_key(mount)] = replace(memory, returned=chosen)
    message = payload(
        attention,
        queries=queries,
        keys=keys,
        head=chosen.head,
        check=check,
        baseline=baseline,
        stage=chosen.stage,
        layers=layers,
    )
    held: tuple[str, ...] = st.session_state.get(_HELD, ())
    _hold(parts(message))
    place: dict[str, object] = {
        "selection": asdict(memory.sent),
        "mount": mount,
        "address": address,
        "device": device,
        "revision": memory.revision,
        "assets": _addresses(),
    }

    def opened() -> None:
        name, fetched = _opened(mount)
        if name in layers:
            open_layer(name)
        if fetched:
            _hold(fetched)
        else:  # it could not fetch what it lacks: all is sent again
            st.session_state.pop(_HELD, None)

    _component(
        key=mount,
        data=packed(without_arrays(message, held) | place),
        on_selection_change=_nothing,
        on_layer_change=opened,
    )
    return chosen


def _hold(parts: Sequence[str]) -> None:
    """Remembers what the browser gets: the parts of layers, those it used last at the end."""
    before = st.session_state.get(_HELD, ())
    st.session_state[_HELD] = (*(part for part in before if part not in parts), *parts)[-HELD:]


def forget(mount: str = "explorer") -> None:
    """Lets the next `selection` count in any case, for instance when an example is opened again."""
    memory = st.session_state.get(_memory_key(mount))
    if isinstance(memory, _Memory):  # else it has forgotten already
        st.session_state[_memory_key(mount)] = memory.revision


def _reconcile(passed: Selection, start: Selection, mount: str) -> tuple[_Memory, Selection]:
    """What to remember, and which choice counts now: the page's or the reader's.

    passed: the page's selection as it is; start: the nearest one that exists.
    """
    memory = st.session_state.get(_memory_key(mount))
    if not isinstance(memory, _Memory):
        revision = 0 if memory is None else memory + 1
        return _Memory(passed, start, start, revision), start
    reported = _reported(mount, memory.revision)
    mounted_anew = reported is None and memory.returned != memory.sent
    if mounted_anew or passed not in {memory.passed, memory.returned, reported}:
        revision = memory.revision + 1
        return replace(memory, passed=passed, returned=start, sent=start, revision=revision), start
    return replace(memory, passed=passed), reported or memory.sent


def _reported(mount: str, revision: int) -> Selection | None:
    """What the browser reported since it was last sent somewhere; None if nothing readable."""
    state = st.session_state.get(mount)
    report = state.get("selection") if isinstance(state, Mapping) else None
    if not isinstance(report, Mapping) or report.get("revision") != revision:
        return None
    numbers = [report.get(name) for name in ("head", "query", "key")]
    head, query, key = (number if isinstance(number, int) else 0 for number in numbers)
    return Selection(head=head, stage=str(report.get("stage")), query=query, key=key)


def _opened(mount: str) -> tuple[str, tuple[str, ...]]:
    """The layer that the reader has opened, and what the browser got of it already; as the browser says."""
    said = st.session_state[mount].get("layer")
    if not isinstance(said, Mapping):
        return "", ()
    fetched = said.get("fetched")
    return str(said.get("name")), tuple(map(str, fetched)) if isinstance(fetched, list) else ()


@cache
def _addresses() -> dict[str, str]:
    return assets.addresses()


def _memory_key(mount: str) -> str:
    return f"{mount}:memory"


def _within(number: int, count: int) -> int:
    return min(max(number, 0), max(count - 1, 0))


def _nothing() -> None:
    """Streamlit hands a state value over only where a callback is named."""
