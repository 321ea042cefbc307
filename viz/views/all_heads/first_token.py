"""Why the first token? The weight that heads put on one token, what that weight carries, and where it goes
when the token is hidden."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import streamlit as st

from model.analysis.heads.families import Family
from model.analysis.heads.sinks import TokenAsKey, hiding, moved_weight, token_as_key
from model.serving.engine import Request
from model.trace.arrays import Mask, Wide
from viz.elements.one_of import one_listed, one_of
from viz.figures.heatmap import Axis, heatmap
from viz.notation.head_formulas import weights_and_lengths
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted
from viz.notation.superlatives import led_by
from viz.notation.theme import QuantityName
from viz.shell.pictures import chart, checked, look_for, table
from viz.state.held import loaded, traced
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, chosen_head, map_of_heads, name_of
from viz.views.laboratory.effect_row import Effect, effects

WEIGHT, VALUE, EDGE, HIDDEN = "Its weight", "Its value", "What its edges carry", "When it is hidden"
LEARNED = "The learned sink"
RESTS = 0.5  # of a head's weight: more than on all other keys together
NAMED = 3  # tokens to which the weight goes


@lru_cache(maxsize=16)
def _found(request: Request, family: Family, position: int) -> TokenAsKey:
    return token_as_key(loaded(request.model), traced(request), family, position)


@lru_cache(maxsize=16)
def _moved(request: Request, hidden: Request, family: Family, position: int) -> Wide:
    return moved_weight(traced(request), traced(hidden), family, position)


def first_token(seen: Look) -> None:
    """A map of one token as a key of every head, or the run in which it is hidden."""
    picture, beside = st.columns([3, 2], gap="large")
    with picture:
        drawn = st.container()
        family = choose_family(seen)
        shown = _picture(seen, family)
        position = _token(seen, family)
    token = bold_token(family.keys(seen.trace)[position].text, position)
    try:
        found = _found(seen.request, family, position)
    except ValueError as refusal:
        drawn.info(f"{plain(str(refusal))} Choose an earlier token, or type a longer text.")
        return
    with picture:
        if shown == HIDDEN:
            seen = _hidden(seen, family, position)
            with drawn:
                _draw_moved(seen, family, position)
            _say_moved(seen, family, found, token)
        else:
            with drawn:
                _draw_map(seen, family, found, shown)
            look_for(_MAPS[shown].say(seen, found, token))
        st.latex(weights_and_lengths(sinks=_has_sinks(seen, family)))
        st.markdown(_why(seen, family, found))
    with beside:
        chosen_head(seen, "with that token hidden" if shown == HIDDEN else "")
    checked(seen)
    _table(seen, family, found)


def _picture(seen: Look, family: Family) -> str:
    """What is shown; the learned sink only of heads that have one."""
    kinds = [kind for kind in (*_MAPS, HIDDEN) if kind != LEARNED or _has_sinks(seen, family)]
    return one_of("Picture", kinds, f"all-heads-first-{len(kinds)}", quiet=True)


def _has_sinks(seen: Look, family: Family) -> bool:
    return any(one.sinks is not None for one in family.members(seen.trace))


def _token(seen: Look, family: Family) -> int:
    """The position of the token that is asked about: the first, until another one is chosen."""
    keys = family.keys(seen.trace)
    key = f"all-heads-first-{hash(tuple(token.id for token in keys))}"
    return one_listed("Token", numbered_labels((token.text for token in keys), 24), key)


@dataclass(frozen=True)
class _Map:
    """One number for each head: its colour, its name, and what is said of it."""

    values: Callable[[TokenAsKey], Wide]
    quantity: QuantityName
    title: str
    say: Callable[[Look, TokenAsKey, str], str]


def _draw_map(seen: Look, family: Family, found: TokenAsKey, shown: str) -> None:
    drawn = _MAPS[shown]
    values = drawn.values(found)
    map_of_heads(
        seen,
        family,
        values,
        quantity=drawn.quantity,
        title=drawn.title,
        words=lambda value: "no row" if np.isnan(value) else f"{drawn.title}: {value:.4f}",
        key=f"all-heads-first-{shown}-{found.position}",
        alt=f"{shown}: one number for each head; the largest is {np.nanmax(values):.2f}.",
    )


def _say_weight(seen: Look, found: TokenAsKey, token: str) -> str:
    known = ~np.isnan(found.weight)
    rests = known & (found.weight > RESTS)
    said = (
        f"{token} gets {found.weight[known].mean():.2f} of the weight of the other tokens that may attend to "
        f"it, on average over the heads. Spread evenly, it would get {found.even[known].mean():.2f}. "
        f"{_largest(seen, found, found.weight)}"
    )
    if not rests.any():
        return f"{said} No head gives it more than half of its weight on this text."
    return (
        f"{said} In {rests.sum()} of {counted(known.sum(), 'head')} it has more than half; "
        f"{_what_it_carries(found, rests)}"
    )


def _what_it_carries(found: TokenAsKey, rests: Mask) -> str:
    """Whether the weight of some heads moves the stream."""
    weight, carried = found.weight[rests].mean(), np.nanmean(found.carried[rests])
    said = (
        f"there its value is {np.nanmean(found.value_ratio[rests]):.2f} times as long as those of the other "
        f"tokens. With {weight:.0%} of the weight its edges carry {carried:.0%} of the lengths"
    )
    if carried < weight / 2:
        return f"{said}: most of this weight moves the stream little."
    if round(carried, 2) < round(weight, 2):
        return f"{said}: this weight moves the stream, but by less than its share."
    return f"{said}: this weight moves the stream by its share or more."


def _say_value(seen: Look, found: TokenAsKey, token: str) -> str:
    ratio = found.value_ratio
    return (
        f"The value of {token} is {np.nanmean(ratio):.2f} times as long as those of the other tokens, on "
        f"average over the heads. {_largest(seen, found, -ratio, 'Shortest', ratio)} "
        f"{_largest(seen, found, ratio, 'Longest')}"
    )


def _say_edge(seen: Look, found: TokenAsKey, token: str) -> str:
    return (
        f"The edges to {token} have {np.nanmean(found.weight):.0%} of the weight of these rows and "
        f"{np.nanmean(found.carried):.0%} of the lengths of all edges, on average over the heads. "
        f"{_largest(seen, found, found.carried)}"
    )


def _say_learned(seen: Look, found: TokenAsKey, token: str) -> str:
    return (
        f"In these rows the learned sink of a head takes {np.nanmean(found.learned):.2f} of the weight, on "
        f"average over the heads; {token} gets {np.nanmean(found.weight):.2f}. The sink has no value, so its "
        f"share adds nothing to the stream. {_largest(seen, found, found.learned)}"
    )


def _largest(
    seen: Look, found: TokenAsKey, by: Wide, word: str = "Highest", values: Wide | None = None
) -> str:
    """The heads that lead by some numbers, with the number of the leader."""
    names = [name_of(seen, head) for head in found.heads]
    ranked = np.where(np.isnan(by), -np.inf, by)
    leading, several = led_by(names, ranked, decimals=2)
    value = (by if values is None else values)[int(ranked.argmax())]
    return f"{word}: {leading} with {value:.2f}{' each' if several else ''}."


_MAPS: dict[str, _Map] = {
    WEIGHT: _Map(lambda found: found.weight, "weight", "mean weight", _say_weight),
    VALUE: _Map(lambda found: found.value_ratio, "value", "times the others' length", _say_value),
    EDGE: _Map(lambda found: found.carried, "stream", "share of lengths", _say_edge),
    LEARNED: _Map(lambda found: found.learned, "weight", "mean weight", _say_learned),
}


def _hidden(seen: Look, family: Family, position: int) -> Look:
    """The run in which no other token attends to that one."""
    intervention = hiding(seen.trace, family, position)
    return Look(replace(seen.request, intervention=intervention))


def _draw_moved(seen: Look, family: Family, position: int) -> None:
    """By layer and key: the weight that the hidden token loses and the others gain."""
    before, hidden = seen.requests[1], seen.request
    layers = len(family.members(seen.trace))
    moved = _moved(before, hidden, family, position).reshape(layers, -1, len(_keys(seen, family)))
    figure = heatmap(
        moved.mean(1),
        rows=Axis("layer", [str(layer) for layer in range(layers)], tokens=False),
        columns=Axis("key", _keys(seen, family)),
        quantity="difference",
        height=min(max(26 * layers + 130, 220), 800),
    )
    figure.data[-1].colorbar.title = {"text": "change of weight", "side": "right"}
    chart(figure, f"all-heads-first-moved-{position}")


def _keys(seen: Look, family: Family) -> list[str]:
    return [token.text for token in family.keys(seen.trace)]


def _say_moved(seen: Look, family: Family, found: TokenAsKey, token: str) -> None:
    """To which tokens the weight goes, and a link to the run in the laboratory."""
    moved = np.nanmean(_moved(seen.requests[1], seen.request, family, found.position), axis=0)
    keys = _keys(seen, family)
    ranked = np.argsort(-moved, kind="stable")[:NAMED].tolist()
    most = [key for key in ranked if round(moved[key], 2) > 0]
    gains = [f"{bold_token(keys[key], key)} {moved[key]:+.2f}" for key in most]
    if _has_sinks(seen, family):
        gains.append(f"the learned sink {-moved.sum():+.2f}")
    goes = f": {', '.join(gains)}" if gains else ", each a little"
    look_for(
        f"{token} is hidden from the other tokens. It had {np.nanmean(found.weight):.2f} of their weight, on "
        f"average over the heads. Others gain what it loses{goes}. The picture shows by layer how much each "
        "key's mean weight changes. A later layer also reads what the earlier ones have changed."
    )
    read = "encoder" if family.cross else family.stack
    own_row = found.position if read == seen.model.stacks()[-1] else None
    told = effects(seen, traced(seen.requests[1]), seen.trace, hidden=own_row)
    st.markdown(" · ".join(map(_written, told)))
    view = replace(current(), show="", intervention=seen.request.intervention)
    view_link("pages/laboratory.py", "Open this run in the laboratory →", view)


def _written(effect: Effect) -> str:
    """An effect on one line: its name, the number before and after."""
    was = f"{plain(effect.before)} → " if effect.before else ""
    return f"{effect.name}: {was}**{plain(effect.after)}**"


def _why(seen: Look, family: Family, found: TokenAsKey) -> str:
    sink = ", with its sink's," * _has_sinks(seen, family)
    said = (
        f"A row of weights{sink} sums to 1, so a head that finds nothing to read still puts its weight "
        "somewhere. Weight on a short value adds little to the stream. A token that is used so is an "
        "**attention sink** (Xiao et al. 2023)."
    )
    others = len(family.queries(seen.trace)) - 1
    causal = family.members(seen.trace)[0].kind == "causal"
    if causal and found.position == 0 and (found.rows == others).all():
        said += " Under the causal mask only the first token can be read by every other one."
    if _has_sinks(seen, family):
        said += (
            " In this model a head has a learned sink as well: its share of each row reads nothing."
        )
    return f"{said} Choose another token to compare."


def _table(seen: Look, family: Family, found: TokenAsKey) -> None:
    columns = {
        "head": [name_of(seen, head) for head in found.heads],
        "rows": found.rows,
        "mean weight": found.weight,
        "spread evenly": found.even,
        "length of its value": found.value,
        "of the other values, mean": found.other_values,
        "length of its edge, mean": found.edge,
        "of all edges of a row": found.edges,
        "share of lengths": found.carried,
    }
    if _has_sinks(seen, family):
        columns["learned sink, mean"] = found.learned
    table(columns, f"all-heads-first-{found.position}")
