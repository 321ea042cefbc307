"""Questions on one row of weights, and on which head looks at what. Pure."""

from collections.abc import Callable

import numpy as np

from model.analysis.heads.labels import Evidence, allowed_cells, goes_on_with_its_text, places
from model.analysis.heads.statistics import after_the_same, family_of, mean_share
from model.nn.places import Head, head_label
from model.trace.arrays import BoolArray
from model.trace.blocks import of_query
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.notation.names import listed
from viz.notation.words import sentences_of
from viz.questions.question import CLEAR, OPTIONS, Question, Scene

say = sentences_of("questions.rows")

_BUSY, _IDLE = 0.5, 0.2  # mean weight: the least of the answer, the most of every other option


def row_of(attention: Attention, number: int) -> int:
    """The row that a number picks: the last one first, then upwards."""
    rows = attention.query.shape[1]
    return rows - 1 - number % rows


def open_keys(attention: Attention, query: int, head: int) -> list[int]:
    """The keys that a query may look at."""
    keys: list[int] = np.flatnonzero(allowed_cells(of_query(attention, query), head)[0]).tolist()
    return keys


def copying_head(scene: Scene, number: int) -> Question | None:
    """Which head looks at what followed the same word before?"""
    cells = copied_cells(scene.trace, scene.attention)
    if cells is None:
        return None
    return _which_head(
        scene,
        number,
        cells,
        lambda evidence: evidence.stands_out,
        say("word_repeated_heads"),
        say("mean_weight_followed", sum_any=int(cells.any(-1).sum())),
        say("head_every_repeated"),
    )


def copied_cells(trace: Trace, attention: Attention) -> BoolArray | None:
    """(query, key): True where the key followed the query's word earlier; None where no word comes back,
    and where a head cannot copy forward."""
    if not goes_on_with_its_text(attention, translates=bool(trace.target_tokens)):
        return None
    words = [token.text.strip() for token in trace.keys_of(attention)]
    cells = after_the_same(words)  # “Tom” and “·Tom” are one word
    return cells if cells.any() else None


def copying_heads(trace: Trace, attention: Attention) -> dict[Head, float]:
    """The heads of a layer's family that copy on this text, the surest first, with their mean weight on
    what is copied: most repeated words put most of their weight there, and other words do not."""
    cells, copying = copied_cells(trace, attention), {}
    if cells is None:
        return {}
    for member in family_of(trace, attention).members(trace):
        for head in range(member.heads):
            evidence = places(cells, allowed_cells(member, head)).evidence(member.weights(head))
            clear = 2 * evidence.clear > evidence.rows and evidence.weight >= _BUSY
            if clear and evidence.stands_out:
                copying[member.name, head] = evidence.weight
    return dict(sorted(copying.items(), key=lambda one: -one[1]))


def previous_head(scene: Scene, number: int) -> Question | None:
    """Which head looks at the token just before?"""
    if scene.attention.kind == "cross":
        return None
    return _which_head(
        scene,
        number,
        np.eye(len(scene.trace.keys_of(scene.attention)), k=-1, dtype=bool),
        lambda evidence: evidence.holds,
        say("heads_attends_previous"),
        say("mean_weight_token"),
        say("tile_line_just_below"),
    )


def _which_head(
    scene: Scene,
    number: int,
    cells: BoolArray,
    is_answer: Callable[[Evidence], bool],
    prompt: str,
    unit: str,
    why: str,
) -> Question | None:
    """The head with the most weight on some cells (query, key), among three with hardly any there.

    is_answer: whether the head's rows bear it out."""
    if not cells.any():
        return None
    trace = scene.trace
    family = family_of(trace, scene.attention)
    values = {
        (attention.name, head): float(mean_share(attention.weights(head), cells))
        for attention in family.members(trace)
        for head in range(attention.heads)
    }
    ranked = sorted(values.items(), key=lambda one: -one[1])
    best = ranked[0]
    idle = [one for one in ranked if one[1] <= _IDLE]
    if best[1] < _BUSY or len(idle) < OPTIONS - 1:
        return None
    attention, head = trace.find(best[0][0]), best[0][1]
    allowed = allowed_cells(attention, head)
    if not is_answer(places(cells, allowed).evidence(attention.weights(head))):
        return None
    step = len(idle) // (OPTIONS - 1)
    offered = sorted([best, *(idle[(place * step + number) % len(idle)] for place in range(3))])
    names = [head_label(head) for head, _ in offered]
    alike = [head_label(head) for head, value in ranked[1:] if best[1] - value < CLEAR]
    also = f" Nearly as much: {listed(alike)}." if alike else ""
    amounts = [f"{name} {of[1]:.3f}" for name, of in zip(names, offered, strict=True)]
    return Question(
        prompt,
        tuple(names),
        offered.index(best),
        f"{unit[0].upper()}{unit[1:]}: {listed(amounts)}.{also}",
        why,
        tuple(head for head, _ in offered),
    )
