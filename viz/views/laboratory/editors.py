"""The drawer "More changes": what is changed now, the way back, and a control for each field of an
intervention, in five groups."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from model.nn.intervention import LARGEST_MASK_VALUE, LARGEST_SCALE, MASKS, Intervention
from model.nn.places import head_label, layer_label
from model.nn.stages import STAGES
from model.system.settings import settings
from model.trace.arrays import BoolArray
from model.trace.blocks import of_query
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import plot
from viz.figures.cells import CLICKED, edges
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import Panel
from viz.state.intervention_words import (
    MASK_VALUES,
    mask_value_name,
    masks_for,
    parts,
)
from viz.state.look import Look, traced
from viz.state.navigation import HOME, html_link
from viz.state.session import (
    Control,
    can_undo,
    current,
    intervene,
    set_intervention,
    shown,
    switch,
    undo,
)
from viz.views.laboratory.stream_numbers import stream_numbers

say = sentences_of("laboratory.editors")

LABEL = 18  # characters of a token on a button
PRESSED = 64  # up to so many options are buttons; more are a list


def field(name: str) -> Control:
    """The widget that shows a field of the intervention and sets it."""
    value = getattr(current().intervention, name)
    return switch(f"laboratory-{name}", value, lambda value: intervene(**{name: value}))


def value_or_number(
    name: str,
    words: str,
    named: Mapping[str, float | None],
    *,
    other: tuple[str, float],
    number: tuple[str, float, float],
) -> None:
    """One field of the intervention: one of some named values, or any number.

    other: what a number is called, and the first one. number: its label, bound and step.
    """
    value = getattr(current().intervention, name)
    names = {each: kind for kind, each in named.items()}
    label, bound, step = number

    def take_kind(kind: str) -> None:
        intervene(**{name: named.get(kind, other[1])})

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            words,
            (*named, other[0]),
            width=320,
            **switch(f"laboratory-{name}", names.get(value, other[0]), take_kind),
        )
        if value not in names:
            st.number_input(
                label,
                label_visibility="collapsed",
                min_value=-bound,
                max_value=bound,
                step=step,
                format="%g",
                width=120,
                **switch(
                    f"laboratory-{name}-number", value, lambda number: intervene(**{name: number})
                ),
            )


def several(
    label: str,
    options: Sequence[object],
    *,
    chosen: Sequence[object],
    name: Callable[..., str],
    key: str,
    take: Callable[[Sequence[object]], None],
) -> None:
    """Several of some options, as buttons to press; as a list where they are too many."""
    present = [option for option in chosen if option in options]
    control = shown(f"{key}-{len(options)}", present, take)
    if len(options) <= PRESSED:
        st.pills(label, options, selection_mode="multi", format_func=name, **control)
    else:
        st.multiselect(label, options, format_func=name, **control)


LARGEST = 999_999_999  # a link holds no larger whole number


def stages(look: Look) -> None:
    """A switch for each stage that the model has, or that a link has switched off."""
    own = (look.baseline or look.trace).attention
    for stage in STAGES:
        values = [stage.of(one) for one in own if stage.is_in(one)]
        if values:
            st.toggle(stage.switch(values), **field(stage.field))
        elif not stage.of(current().intervention):
            st.caption(say("model_without_nothing", field=stage.field))


def mask(look: Look) -> None:
    """Who may look at whom."""
    st.selectbox(
        "Mask",
        masks_for(look.model),
        width=320,
        format_func=lambda name: MASKS[name].title_for(look.model.config.shape),
        **field("mask"),
    )


def window(look: Look) -> None:
    """How many keys a query may read at most, and where that hides nothing."""
    st.number_input(
        say("window_keys_query"),
        value=None,
        min_value=1,
        max_value=LARGEST,
        step=1,
        placeholder="no window",
        width=320,
        help=say("most_many_keys_itself"),
        **field("window"),
    )
    with st.container():  # one place, whether there is something to say or not
        own = [one.window for one in (look.baseline or look.trace).attention]
        if widths := sorted({width for width in own if width}):
            keys, layers = " and ".join(map(str, widths)), len(own) - own.count(None)
            st.caption(say("model_own_window", keys=keys, layers=layers, own=len(own)))
        changed = look.request.intervention.window
        if changed and changed == current().intervention.window and hides_nothing(look, changed):
            st.caption(say("window_wide_text"))


def hides_nothing(look: Look, width: int) -> bool:
    """Whether a window reaches over the whole text in every layer."""
    attentions = [one for one in look.trace.attention if one.kind != "cross"]
    choice = MASKS[look.request.intervention.mask]
    looks_back = choice.is_causal or (
        not choice.removes_model_mask and all(one.kind == "causal" for one in attentions)
    )
    reach = width if looks_back else (width + 1) // 2
    return reach >= max(one.sizes[2] for one in attentions)


def positions(look: Look) -> None:
    """Whether the model is told the positions."""
    off = say("off_added_positions")
    biases = look.model.config.biases_positions
    changes_nothing = biases and current().intervention.positions
    st.toggle("Positions", help=off, disabled=changes_nothing, **field("positions"))
    with st.container():  # one place, whether there is something to say or not
        if not look.model.config.has_positions:
            st.caption(say("model_positions_switching"))
        elif biases:
            st.caption(say("model_positions_biases"))


def _factor(look: Look) -> None:
    ours = (look.baseline or look.trace).find(look.place)
    own, width = ours.scale, ours.query.shape[-1]
    divides = math.isclose(own, 1 / math.sqrt(width), rel_tol=1e-6)
    value_or_number(
        "scale",
        say("scores_multiplied"),
        {
            f"the model's own, {'1/√dₖ = ' if divides else ''}{own:.4g}": None,
            "not scaled: × 1": 1.0,
        },
        other=("a factor", 2 * own),
        number=("Factor", LARGEST_SCALE, 0.1),
    )


def _mask_value(look: Look) -> None:
    value_or_number(
        "fill",
        "A masked score becomes",
        {mask_value_name(mask_value): mask_value for mask_value in MASK_VALUES},
        other=("a number", -1.0),
        number=("Number", LARGEST_MASK_VALUE, 1.0),
    )
    if all(attention.mask is None for attention in look.trace.attention):
        st.caption(say("nothing_masked_run"))


def _padding(look: Look) -> None:
    several(
        say("padding_token_may"),
        range(len(look.trace.tokens)),
        chosen=sorted(current().intervention.hidden),
        name=lambda at: f"{at} {plain(token_label(look.trace.tokens[at].text, LABEL))}",
        key="laboratory-hidden",
        take=lambda members: intervene(hidden=frozenset(members)),
    )


def _heads(look: Look) -> None:
    place, ablated = look.place, current().intervention.ablated
    others = frozenset(member for member in ablated if member[0] != place)
    heads = range(look.attention.heads)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            several(
                say("heads_off", layer_label=layer_label(place)),
                heads,
                chosen=look.attention.ablated,
                name=lambda head: head_label((place, head)),
                key=f"laboratory-heads-{place}",
                take=lambda members: intervene(
                    ablated=others | {(place, head) for head in members}
                ),
            )
        whole = others | {(place, head) for head in heads}
        st.button(
            "The whole layer",
            key="laboratory-layer",
            disabled=whole == ablated,
            on_click=lambda: intervene(ablated=whole),
        )


def _dropout(look: Look) -> None:
    intervention = current().intervention
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.slider(
            "Dropout of weights",
            min_value=0.0,
            max_value=0.9,
            step=0.05,
            width=320,
            **switch(
                "laboratory-dropout",
                min(intervention.dropout, 0.9),
                lambda rate: intervene(dropout=rate),
            ),
        )
        st.number_input("Seed", 0, LARGEST, step=1, width=160, **field("seed"))
    if intervention.dropout:
        _what_dropped(look)


def _what_dropped(look: Look) -> None:
    """What dropout did to the shown head's weights in this draw."""
    weights, dropped = look.attention.weights(look.head), look.attention.dropped(look.head)
    seen_weights = weights > 0
    if np.array_equal(weights, dropped):
        st.caption(say("not_changed_sub", layer_label=layer_label(look.place)))
        return
    gone, sums = int((dropped[seen_weights] == 0).sum()), dropped.sum(-1)
    st.caption(
        say(
            "became_0_draw_sums",
            head_label=head_label((look.place, look.head)),
            gone=gone,
            sum_seen_weights=int(seen_weights.sum()),
            least_sums=sums.min(),
            most_sums=sums.max(),
        )
    )


def _where(look: Look) -> None:
    names = look.model.attention_names
    needed = bool(current().intervention.blocked) and len(look.model.stacks()) > 1

    def take(members: Sequence[object]) -> None:
        only = frozenset(str(member) for member in members)
        if needed and not only:
            return
        intervene(only=only or None)

    several(
        say("only_sub_layers"),
        names,
        chosen=sorted(current().intervention.only or ()),
        name=layer_label,
        key="laboratory-only",
        take=take,
    )
    st.caption(say("switching_off_positions"))


def _edges(look: Look) -> None:
    """Single edges, cut or set by hand: two lists of tokens and buttons; for short texts also a grid to
    click."""
    queries, keys = look.labels
    allowed = _allowed(look)
    if len(look.model.stacks()) > 1:
        st.caption(say("edges_cut_only_chosen", layer_label=layer_label(look.place)))
    blocked = current().intervention.blocked
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        query = _pick("Query token", queries, current().query)
        key = _pick("Key token", keys, current().key)
        cut, closed = (query, key) in blocked, not allowed[query, key]
        st.button(
            "Restore this edge" if cut else "Already masked" if closed else "Cut this edge",
            key="laboratory-edge",
            disabled=closed and not cut,
            on_click=lambda: toggle(look, query, key),
        )
        chosen = st.button(
            say("cut_chosen_cell"),
            key="laboratory-cell",
            help=say("cell_chosen_map"),
        )
        row = frozenset((query, int(key)) for key in np.flatnonzero(allowed[query]))
        st.button(
            say("cut_whole_row"),
            key="laboratory-row",
            on_click=lambda: _cut(look, current().intervention.blocked | row),
            help=say("cuts_every_key_token"),
        )
    cell = current().query, current().key  # chosen in the explorer by now
    if chosen and cell[0] < len(queries) and cell[1] < len(keys):
        if allowed[cell] or cell in blocked:
            toggle(look, *cell)
            st.rerun()
        st.caption(say("cannot_attend_mask", first_cell=cell[0], cell=cell[1]))
    _weight(look, query, key, closed=closed or cut)
    if max(len(queries), len(keys)) <= CLICKED:
        _grid(look, queries, keys, allowed)


def _pick(label: str, tokens: list[str], start: int) -> int:
    """One position; it starts at the cell that is chosen in the picture."""
    key = f"laboratory-{label}-{start}-{len(tokens)}"
    return one_listed(label, numbered_labels(tokens, LABEL), key, first=min(start, len(tokens) - 1))


def toggle(look: Look, query: int, key: int) -> None:
    """Cuts an edge, or mends it where it is cut."""
    _cut(look, current().intervention.blocked ^ {(query, key)})


def _cut(look: Look, blocked: frozenset[tuple[int, int]]) -> None:
    """A model with two stacks must name the sub-layer in which edges are cut."""
    intervention = current().intervention
    only = intervention.only
    if len(look.model.stacks()) > 1 and blocked:
        only = frozenset({look.place}) if only is None else only | {look.place}
    weights = frozenset(cell for cell in intervention.weights if cell[2:4] not in blocked)
    set_intervention(replace(intervention, blocked=blocked, only=only, weights=weights))


def _weight(look: Look, query: int, key: int, *, closed: bool) -> None:
    """The weight of this edge in the shown head, to be set. closed: the mask hides the key."""
    here, weights = (look.place, look.head, query), current().intervention.weights
    of_row = {cell[3]: cell for cell in weights if cell[:3] == here}
    elsewhere = weights - set(of_row.values())
    others = frozenset(cell for cell in of_row.values() if cell[3] != key)
    most = max(1.0 - sum(cell[4] for cell in others), 0.0)
    now = float(of_query(look.attention, query).weights(look.head)[0, key])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        wanted = st.number_input(
            f"Weight in {head_label(here[:2])}",
            0.0,
            most,
            min(round(now, 4), most),
            step=0.05,
            format="%.4f",
            width=160,
            disabled=closed,
            key=f"laboratory-weight-{hash((look.request, *here, key))}",
        )
        st.button(
            "Set this weight",
            key="laboratory-weight-set",
            disabled=closed,
            on_click=lambda: intervene(weights=elsewhere | others | {(*here, key, wanted)}),
            help=say("other_weights_row"),
        )
        st.button(
            say("row_key"),
            key="laboratory-weight-all",
            disabled=closed,
            on_click=lambda: intervene(weights=elsewhere | {(*here, key, 1.0)}),
        )
        st.button(
            "Take back",
            key="laboratory-weight-back",
            disabled=not of_row,
            on_click=lambda: intervene(weights=elsewhere),
            help=say("row_model_own_weights"),
        )


def _grid(look: Look, queries: list[str], keys: list[str], allowed: BoolArray) -> None:
    cut = np.zeros((len(queries), len(keys)), bool)
    applies = look.request.intervention.applies(look.place)
    for query, key in current().intervention.blocked if applies else ():
        if query < len(queries) and key < len(keys):
            cut[query, key] = True

    def clicked(point: int) -> None:
        query, key = divmod(point, len(keys))
        if allowed[query, key] or cut[query, key]:
            toggle(look, query, key)

    plot(
        edges(allowed, cut, queries=queries, keys=keys),
        f"laboratory-edges-{hash((look.request, look.place))}",
        clicked=clicked,
        width=min(30 * len(keys) + 140, 900),
    )
    st.caption(say("click_cell_cut_edge"))


def _allowed(look: Look) -> BoolArray:
    """Where a query may look in the shown head, the cuts aside, (query, key)."""
    intervention = look.request.intervention
    uncut = replace(look.request, intervention=replace(intervention, blocked=frozenset()))
    attention = look.attention if not intervention.blocked else traced(uncut).find(look.place)
    queries, keys = look.labels
    mask = attention.mask_of(min(look.head, attention.heads - 1))
    return np.ones((len(queries), len(keys)), bool) if mask is None else mask


GROUPS: dict[str, tuple[Callable[[Look], None], ...]] = {
    "Mask": (mask, _mask_value, window, _padding),
    "Scores": (_factor, stages, positions, _dropout),
    "Heads": (_heads, _where),
    "Edges": (_edges,),
    "Stream": (stream_numbers,),
}


def more_changes(look: Look) -> Panel:
    """Every change that a run of the model can have, each with its control."""
    if not look.model.runs:
        raise NotShownError("This is a recorded run: nothing in it can be changed.")
    _listed(look)
    group = one_of("Group", list(GROUPS), "changes-group", quiet=True)

    def draw() -> None:
        with st.container(key=f"changes-{group}"):
            for part in GROUPS[group]:
                part(look)

    return Panel("more-changes", picture=draw, below=[_compare_with_a_file])


def _compare_with_a_file() -> None:
    if settings().trace_files:
        link = html_link(HOME, say("compare_file_another"), {"show": "Changed"})
        st.html(f'<p class="onward">{link}</p>')


def _listed(look: Look) -> None:
    """Each part of the intervention with a button that takes it back, then undo and reset."""
    intervention = current().intervention
    tokens = tuple(token_label(token.text, LABEL) for token in look.trace.tokens)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="list-of-changes"
    ):
        st.markdown(
            "**Changed:**" if intervention.changes else "Nothing is changed.", width="content"
        )
        for number, part in enumerate(parts(intervention, tokens)):
            st.button(
                f"{plain(part.words)} ✕",
                key=f"laboratory-part-{number}",
                help="Undo this change",
                on_click=set_intervention,
                args=(part.without,),
            )
        st.button(
            "Undo", key="laboratory-undo", type="tertiary", disabled=not can_undo(), on_click=undo
        )
        st.button(
            "Reset",
            key="laboratory-reset",
            type="tertiary",
            disabled=intervention == Intervention(),
            on_click=set_intervention,
            args=(Intervention(),),
        )
