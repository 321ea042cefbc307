"""Why the first token? The weight that heads put on one token, what that weight carries, and where it goes
when the token is hidden."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import streamlit as st

from model.analysis.heads.sinks import TokenAsKey, token_as_key
from model.analysis.heads.statistics import Family
from model.serving.engine import Request
from model.trace.arrays import Mask, Wide
from model.trace.unproven import RECORDED, NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.notation.head_formulas import weights_and_lengths
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import counted, led_by
from viz.notation.theme import QuantityName
from viz.shell.pictures import checked, look_for, table
from viz.state.look import Look, loaded, traced
from viz.views.all_heads.choice import choose_family, chosen_head, map_of_heads, name_of
from viz.views.all_heads.compare import draw_moved, has_sinks, hidden, say_moved

WEIGHT, VALUE, EDGE, HIDDEN = "Its weight", "Its value", "What its edges carry", "When it is hidden"
LEARNED = "The learned sink"
RESTS = 0.5  # of a head's weight: more than on all other keys together


@lru_cache(maxsize=16)
def _found(request: Request, family: Family, position: int) -> TokenAsKey:
    return token_as_key(loaded(request.model), traced(request), family, position)


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
    except NotShownError:
        raise
    except ValueError as refusal:
        advice = "Choose an earlier token, or type" if position else "Type"
        drawn.info(f"{plain(str(refusal))} {advice} a longer text.")
        return
    with picture:
        if shown == HIDDEN:
            seen = hidden(seen, family, position)
            with drawn:
                draw_moved(seen, family, position)
            say_moved(seen, family, found, token)
        else:
            with drawn:
                _draw_map(seen, family, found, shown)
            look_for(_MAPS[shown].say(seen, found, token))
        st.latex(weights_and_lengths(sinks=has_sinks(seen, family)))
        st.markdown(_why(seen, family, found))
    with beside:
        chosen_head(seen, "with that token hidden" if shown == HIDDEN else "")
    checked(seen)
    _table(seen, family, found)


def _picture(seen: Look, family: Family) -> str:
    """What is shown; the learned sink only of heads that have one, and only what the model can say."""
    there = {
        LEARNED: has_sinks(seen, family),
        EDGE: seen.has_output,
        HIDDEN: seen.model.runs,
    }
    kinds = [kind for kind in (*_MAPS, HIDDEN) if there.get(kind, True)]
    shown = one_of("Picture", kinds, f"all-heads-first-{'-'.join(kinds)}", quiet=True)
    if not seen.model.runs:
        st.info(
            f"{RECORDED} Open the model itself to see what its edges carry, or to hide a token."
        )
    elif not seen.has_output:
        st.info(f"W_O is not proven here, because {plain(seen.model.unproven['output'])}.")
    return shown


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
        f"{said} In {rests.sum()} of {counted(known.sum(), 'head')} it has more than half"
        f"{_what_it_carries(found, rests)}"
    )


def _what_it_carries(found: TokenAsKey, rests: Mask) -> str:
    """How long the token's value is where it has most of the weight, and whether that moves the stream."""
    said = (
        f"; there its value is {np.nanmean(found.value_ratio[rests]):.2f} times as long as those of the "
        "other tokens."
    )
    if np.isnan(found.carried[rests]).all():
        return said
    weight, carried = found.weight[rests].mean(), np.nanmean(found.carried[rests])
    said += f" With {weight:.0%} of the weight its edges carry {carried:.0%} of the lengths"
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


def _why(seen: Look, family: Family, found: TokenAsKey) -> str:
    sink = ", with its sink's," * has_sinks(seen, family)
    said = (
        f"A row of weights{sink} sums to 1, so a head that finds nothing to read still puts its weight "
        "somewhere. Weight on a short value adds little to the stream. A token used in this way is an "
        "**attention sink** (Xiao et al. 2023)."
    )
    others = len(family.queries(seen.trace)) - 1
    causal = family.members(seen.trace)[0].kind == "causal"
    if causal and found.position == 0 and (found.rows == others).all():
        said += " Under the causal mask only the first token can be read by every other one."
    if has_sinks(seen, family):
        said += " In this model each head also has a learned sink: the weight that it takes reads nothing."
    return f"{said} Choose another token to compare."


_OF_EDGES = ("length of its edge, mean", "of all edges of a row", "share of lengths")


def _table(seen: Look, family: Family, found: TokenAsKey) -> None:
    columns = {
        "head": [name_of(seen, head) for head in found.heads],
        "rows": found.rows,
        "mean weight": found.weight,
        "spread evenly": found.even,
        "length of its value": found.value,
        "of the other values, mean": found.other_values,
        **dict(zip(_OF_EDGES, (found.edge, found.edges, found.carried), strict=True)),
    }
    if has_sinks(seen, family):
        columns["learned sink, mean"] = found.learned
    if not seen.has_output:
        columns = {name: numbers for name, numbers in columns.items() if name not in _OF_EDGES}
    table(columns, f"all-heads-first-{found.position}")
