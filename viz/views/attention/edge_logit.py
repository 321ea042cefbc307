"""The logit that the edges of a head are said to add to: its choice, and what adds up to it."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.heads.contributions import parts_of_logit
from viz.elements.one_of import one_listed
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import part_name
from viz.notation.numbers import agreeing, counted, difference, sign_of_sum, signed
from viz.shell.pictures import look_for
from viz.state.look import Look
from viz.views.attention.walk import Cell

OFFERED = 8  # likeliest next tokens
Row = NDArray[np.float64]


@dataclass(frozen=True)
class ChosenLogit:
    """The logit that is taken apart, or how far it lies above another one."""

    token: int
    against: int | None
    name: str  # as Markdown may show it
    value: float  # the model's own


def choose_logit(seen: Look, cell: Cell) -> ChosenLogit:
    """A next token, the likeliest to begin with, and one that it is held against, or none."""
    logits = seen.trace.require_prediction().after(cell.query)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    own = [token.id for token in seen.trace.tokens_of("decoder")]
    ids = list(dict.fromkeys([*likely, *own]))
    labels = [token_label(token.text, 24) for token in seen.model.tokenizer.named(ids)]
    names = [
        f"{label} (logit {_number(logits[id_])})" for label, id_ in zip(labels, ids, strict=True)
    ]
    key = f"edges-{hash(tuple(own))}"
    place = one_listed("Next token", names, f"{key}-token")
    other = one_listed("Rather than", ["no other: its logit alone", *names], f"{key}-against") - 1
    name = f"**{plain(labels[place])}**"
    value = float(logits[ids[place]])
    if other < 0:
        return ChosenLogit(ids[place], None, f"The logit of {name}", value)
    against = ids[other]
    return ChosenLogit(
        ids[place],
        against,
        f"The logit of {name} above that of **{plain(labels[other])}**",
        value - float(logits[against]),
    )


def say_logit(seen: Look, cell: Cell, chosen: ChosenLogit, added: Row, count: int) -> None:
    """What the head's edges add, the other heads and everything else; their sum beside the model's own.

    count: of the edges that the mask leaves.
    """
    here = (cell.place, cell.head)
    sums = {"this": 0.0, "heads": 0.0, "rest": 0.0}
    for token, sign in ((chosen.token, 1.0), (chosen.against, -1.0)):
        if token is None:
            continue
        for part in parts_of_logit(seen.model, seen.trace, cell.query, token):
            which = "rest" if part.kind != "head" else "heads"
            which = "this" if (part.name, part.head) == here else which
            sums[which] += sign * part.effect
    head = plain(part_name(f"{cell.place}.{cell.head}"))
    queries, keys = ([plain(token_label(text)) for text in texts] for texts in seen.labels)
    most = int(np.abs(added).argmax())
    largest = (
        f"; the one that counts most is that to **{keys[most]}** at position {most}: "
        f"{_number(added[most], '+')}"
    )
    look_for(
        f"{chosen.name}, after **{queries[cell.query]}**, is {_number(chosen.value)}. The edges of {head} "
        f"add **{_number(added.sum(), '+')}**{largest if count > 1 else ''}."
    )
    total = float(added.sum()) + sums["heads"] + sums["rest"]
    together, recorded = agreeing(total, chosen.value)
    decimals = len(recorded.partition(".")[2])
    parts = [_number(one, "+", decimals) for one in (added.sum(), sums["heads"], sums["rest"])]
    st.caption(
        f"Check: {counted(count, 'edge')} {parts[0]}, all other heads {parts[1]}, everything else "
        f"{parts[2]}: together {sign_of_sum(parts, together)} {together}. The model's own is {recorded}, a "
        f"difference of {difference(abs(total - chosen.value))}. The edges differ from their head's part by "
        f"{difference(abs(float(added.sum()) - sums['this']))}. All pass through the norms with their "
        "recorded statistics; what an edge changes in later layers is counted there."
    )


def _number(value: float, sign: str = "", decimals: int = 2) -> str:
    return signed(f"{value:{sign if round(value, decimals) else ''}z.{decimals}f}")
