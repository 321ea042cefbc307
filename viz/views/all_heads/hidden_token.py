"""The run in which no other token attends to one: where that token's weight goes."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import streamlit as st

from model.analysis.heads.families import Family
from model.analysis.heads.sinks import TokenAsKey, hiding, moved_weight
from model.serving.engine import Request
from model.trace.arrays import Wide
from viz.figures.heatmap import Axis, heatmap
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import signed
from viz.shell.pictures import chart, look_for
from viz.state.held import traced
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.laboratory.effect_row import Effect, effects

NAMED = 3  # tokens to which the weight goes


@lru_cache(maxsize=16)
def _moved(request: Request, hidden: Request, family: Family, position: int) -> Wide:
    return moved_weight(traced(request), traced(hidden), family, position)


def has_sinks(seen: Look, family: Family) -> bool:
    """Whether heads of the family have a learned sink."""
    return any(one.sinks is not None for one in family.members(seen.trace))


def hidden(seen: Look, family: Family, position: int) -> Look:
    """The run in which no other token attends to that one."""
    intervention = hiding(seen.trace, family, position)
    return Look(replace(seen.request, intervention=intervention))


def draw_moved(seen: Look, family: Family, position: int) -> None:
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


def say_moved(seen: Look, family: Family, found: TokenAsKey, token: str) -> None:
    """To which tokens the weight goes, and a link to the run in the laboratory."""
    moved = np.nanmean(_moved(seen.requests[1], seen.request, family, found.position), axis=0)
    keys = _keys(seen, family)
    ranked = np.argsort(-moved, kind="stable")[:NAMED].tolist()
    most = [key for key in ranked if round(moved[key], 2) > 0]
    gains = [f"{bold_token(keys[key], key)} {signed(f'{moved[key]:+.2f}')}" for key in most]
    if has_sinks(seen, family):
        gains.append(f"the learned sink {signed(f'{-moved.sum():+.2f}')}")
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
