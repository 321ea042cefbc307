"""The explorer as a component of Streamlit's.

Layers reach the browser in the component's data, and in no other way. An address of their own would answer
a little sooner. But it would need a secret name for each run and bounds of its own, it would know only runs
that are still kept, and it would be missing under a plain `streamlit run`. The browser keeps the last layers
instead (js/held.js): only a layer's first visit waits for the server.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import streamlit as st

from model.snippets import Origin
from model.trace.records import Attention
from viz.explorer import assets, bundle
from viz.explorer.message import (
    MODELS_OWN,
    HeadClaim,
    Hero,
    Json,
    group_parts,
    parts,
    payload,
    without_arrays,
)
from viz.explorer.packing import packed
from viz.explorer.selection import Selection
from viz.explorer.shown import hear, show

if TYPE_CHECKING:
    from model.analysis.stream.around_heads import AroundHeads

# Parts of layers, and groups of what stands around their heads, that count as kept in the browser, which
# keeps some more (js/held.js).
HELD, HELD_GROUPS = 4, 8
RECORDED_RUN = "recorded"  # the name of a run that is none of this server's
_HELD, _ASKED, _AHEAD = "explorer:held", "explorer:asks-for-check-of", "explorer:asks-ahead-of"
SwitchFacts = Mapping[str, Mapping[str, object]]
NO_TURNS: SwitchFacts = MappingProxyType({})
_component = st.components.v2.component(
    "attention_explorer",
    html=bundle.skeleton(),
    css=bundle.style(),
    js=bundle.component_script("explorer.js"),
)


def explorer(
    attention: Attention,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    selection: Selection,
    check: float | None,
    hero: Hero,
    baseline: Attention | None = None,
    layers: Sequence[str] = (),
    claims: Sequence[HeadClaim] = (),
    select: Callable[[Selection], object] = lambda selection: None,
    open_layer: Callable[[str], object] = lambda name: None,
    set_detail: Callable[[str], None] = lambda detail: None,
    run: str = "",
    device: str = "",
    mount: str = "explorer",
    origin: Origin | None = None,
    around: Sequence["AroundHeads"] = (),
    modules: Mapping[str, str] = MODELS_OWN,
    certificate: Json | None = None,
    turns: SwitchFacts = NO_TURNS,
    ahead: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
) -> Selection:
    """Draws one attention layer with the selected cell, and returns the cell: the nearest that exists.

    layers: names of those to choose among. claims: what is to be seen in some of the run's heads. `select`,
    `open_layer` and `set_detail` take what the reader chooses, before the page runs again. run: by which the
    browser knows its layers again. mount: a name for this place. hero: what stands around the map.
    certificate: what saved pictures say of the run. turns: of switches of the page, by their names, whether
    each is "on", and the "run" to which it leads. ahead: what this function takes of those runs; the browser
    asks for it, and then shows one as soon as its switch is turned. The others: as `payload` takes them,
    which raises.
    """
    chosen = selection.clamped(heads=attention.heads, queries=len(queries), keys=len(keys))
    same: dict[str, Any] = {"chosen": chosen, "layers": layers, "modules": modules}
    message = _message(
        attention,
        queries=queries,
        keys=keys,
        check=check,
        baseline=baseline,
        origin=origin,
        around=around,
        run=run,
        device=device,
        claims=claims,
        hero=hero,
        certificate=certificate,
        turns=turns,
        **same,
    )
    held = _held()
    _hold(message)
    asks = st.session_state.pop(_AHEAD, None) == run
    others = [_message(**facts, **same) for facts in (ahead() if asks else ())]
    news: Json = {"ahead": [without_arrays(one, _held()) for one in others]}
    data = packed(without_arrays(message, held) | news | _place(mount, chosen))
    _draw(data, mount, layers, select, open_layer, set_detail)
    return chosen


def recorded_explorer(
    said: Mapping[str, object],
    numbers: bytes,
    selection: Selection,
    *,
    select: Callable[[Selection], object],
    open_layer: Callable[[str], object],
    set_detail: Callable[[str], None],
    mount: str = "explorer",
) -> Selection:
    """Draws a message of `explorer` that was recorded, at a cell of its layer. said, numbers: its words and
    its arrays. The others: as `explorer` takes them."""
    layers = [str(one["name"]) for one in cast(Sequence[Json], said["layers"])]
    facts = cast(Json, said["layer"])
    chosen = selection.clamped(
        heads=cast(int, facts["heads"]),
        queries=cast(int, facts["queries"]),
        keys=cast(int, facts["keys"]),
    )
    alone: Json = {"run": RECORDED_RUN, "turns": {}, "ahead": []}
    data = packed({**said, **alone, **_place(mount, chosen)}) + numbers
    _draw(data, mount, layers, select, open_layer, set_detail)
    return chosen


def _draw(
    data: bytes,
    mount: str,
    layers: Sequence[str],
    select: Callable[[Selection], object],
    open_layer: Callable[[str], object],
    set_detail: Callable[[str], None],
) -> None:
    _component(
        key=mount,
        data=data,
        on_selection_change=lambda: hear(mount, select),
        on_layer_change=lambda: _open(mount, layers, open_layer),
        on_check_change=lambda: _note_asked(mount),
        on_detail_change=lambda: set_detail(str(st.session_state[mount].get("detail"))),
        on_ahead_change=lambda: st.session_state.update(
            {_AHEAD: st.session_state[mount].get("ahead")}
        ),
    )


def _message(
    attention: Attention,
    *,
    chosen: Selection,
    run: str,
    device: str,
    claims: Sequence[HeadClaim],
    hero: Hero,
    certificate: Json | None,
    turns: SwitchFacts,
    **facts: Any,
) -> Json:
    """What the browser draws a run from. facts: what `payload` takes beside the chosen head and stage."""
    return payload(attention, head=chosen.head, stage=chosen.stage, **facts) | {
        "run": run,
        "device": device,
        "claims": [asdict(claim) for claim in claims],
        "hero": asdict(hero),
        "certificate": certificate,
        "turns": {name: dict(turn) for name, turn in turns.items()},
    }


def _place(mount: str, chosen: Selection) -> Json:
    """What the browser shows in this place, and where it finds its libraries."""
    shown = show(chosen, mount)
    selection: Json = {"selection": asdict(shown.start), "revision": shown.revision}
    return {"mount": mount, "assets": assets.addresses()} | selection


def asks_for_check(run: str) -> bool:
    """Whether the browser shows a run that came without its check, and asks for that now."""
    return run == st.session_state.get(_ASKED)


def _open(mount: str, layers: Sequence[str], open_layer: Callable[[str], object]) -> None:
    """Opens the layer that the reader has chosen. Where the browser has lost its numbers, they are sent
    again."""
    said = st.session_state[mount].get("layer")
    if not isinstance(said, Mapping):
        return
    if said.get("lost"):
        st.session_state.pop(_HELD, None)
    if said.get("name") in layers:
        open_layer(str(said["name"]))


def _note_asked(mount: str) -> None:
    st.session_state[_ASKED] = st.session_state[mount].get("check")


def _held() -> tuple[str, ...]:
    layers, groups = st.session_state.get(_HELD, ((), ()))
    return (*layers, *groups)


def _hold(message: Json) -> None:
    """Notes what the browser gets: the parts of layers and the groups, those it used last at the end."""

    def last(held: Sequence[str], now: Sequence[str], most: int) -> tuple[str, ...]:
        return (*(part for part in held if part not in now), *now)[-most:]

    layers, groups = st.session_state.get(_HELD, ((), ()))
    st.session_state[_HELD] = (
        last(layers, parts(message), HELD),
        last(groups, group_parts(message), HELD_GROUPS),
    )
