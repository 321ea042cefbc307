"""What each head writes to the stream, and what it adds to the logit of the next token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.heads.contributions import (
    StreamPart,
    logit_check,
    parts_of_logit,
    result_lengths,
    results_check,
)
from model.analysis.heads.statistics import Family
from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import probabilities
from model.nn.intervention import UNCHANGED
from model.nn.places import Place
from model.serving.engine import Request
from model.trace.trace import Logits
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import part_bars
from viz.notation.head_formulas import concatenation, logit
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import ADDED_BY
from viz.notation.numbers import difference, led_by, probability, sign_of_sum, signed
from viz.shell.model_picker import say_encoder
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look, loaded, traced
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.all_heads.choice import beside_chosen_head, choose_family, map_of_heads, name_of

LENGTH, EFFECT, PARTS = "Length", "Effect on a logit", "All parts"
OFFERED = 8  # likeliest next tokens
BARS = 16  # single parts that are drawn
TITLE = "adds to the logit"


@dataclass(frozen=True)
class Logit:
    """The logit that is taken apart."""

    position: int  # after this token
    token: int  # id
    label: str  # the token, as Markdown may show it
    value: float


@lru_cache(maxsize=32)
def _lengths(request: Request, family: Family) -> tuple[np.ndarray, float]:
    """(head of the family, token) lengths, and the largest difference of the sums."""
    model, trace = loaded(request.model), traced(request)
    members = family.members(trace)
    lengths = np.concatenate([result_lengths(model, one) for one in members])
    lengths.flags.writeable = False
    return lengths, max(results_check(model, trace, one.name) for one in members)


@lru_cache(maxsize=64)
def _parts(request: Request, position: int, token: int) -> tuple[tuple[StreamPart, ...], float]:
    model, trace = loaded(request.model), traced(request)
    parts = parts_of_logit(model, trace, position, token)
    return parts, logit_check(trace, parts, position, token)


def head_results(seen: Look) -> None:
    """Length, effect on one logit, or everything that adds up to it."""
    with beside_chosen_head(seen):
        picture = st.container()
        prediction = seen.trace.prediction
        if prediction is None:
            _lengths_view(seen, picture)
            say_encoder(
                seen,
                "predicts no next token, so there is no logit to add to. The map shows the "
                "lengths of the vectors that its heads write.",
            )
            return
        shown = one_of("Picture", (EFFECT, PARTS, LENGTH), "all-heads-writes-as", quiet=True)
        if shown == LENGTH:
            _lengths_view(seen, picture)
        else:
            of = _which_logit(seen, prediction, st.columns([2, 3]))
            _effect_view(seen, of, shown == PARTS, picture)
        _offer_edges(seen)


def _offer_edges(seen: Look) -> None:
    head = name_of(seen, (seen.place, seen.head))
    view = replace(current(), show="Edges", intervention=UNCHANGED)  # as this page shows the run
    view_link("pages/attention.py", f"What each edge of {head} carries →", view)


def _lengths_view(seen: Look, picture: DeltaGenerator) -> None:
    family = choose_family(seen)
    lengths, apart = _lengths(seen.request, family)
    means = lengths.mean(1).astype(np.float64)
    names = [name_of(seen, head) for head in family.heads(seen.trace)]
    longest, _ = led_by(names, means, decimals=2)
    shortest, _ = led_by(names, -means, decimals=2)
    look_for(
        f"The longest vectors come from {longest}: their mean length is {means.max():.2f}. The "
        f"shortest come from {shortest}: {means.min():.2f}. A head with a sharp pattern of weights "
        "can still write next to nothing."
    )
    with picture:
        map_of_heads(
            seen,
            family,
            means,
            quantity="stream",
            title="mean length",
            words="length {:.4f}".format,
            key="all-heads-lengths",
            alt="Mean length of what each head writes.",
        )
    st.latex(concatenation(seen.model.config))
    st.caption(
        "Check: what the heads write, each through its rows of W_O"
        f"{', together with the bias,' if seen.model.config.output_bias else ''} adds up to what the "
        f"stream received; the largest difference is {difference(apart)}."
    )
    table({"head": names, "mean length": means}, "all-heads-lengths")


def _effect_view(seen: Look, of: Logit, every_part: bool, picture: DeltaGenerator) -> None:
    parts, apart = _parts(seen.request, of.position, of.token)
    heads = [part for part in parts if part.kind == "head"]
    effects = np.array([part.effect for part in heads])
    leading, _ = led_by([_part_name(seen, part) for part in heads], effects, decimals=2)
    together = sum(part.effect for part in heads)
    whole, added = signed(f"{of.value:.2f}"), [_added(together), _added(of.value - together)]
    look_for(
        f"The logit of **{of.label}** is {whole} {sign_of_sum(added, whole)} {added[0]} (all heads together) "
        f"{added[1]} (everything else). The head that adds most is {leading}: {_added(effects.max())}."
    )
    (_bars if every_part else _map)(seen, parts, f"{of.position}-{of.token}", picture)
    st.caption(
        "Check: the sum of all parts, each passed through the norms with their recorded "
        f"{_held(seen)}, differs from the model's own logit by {difference(apart)}."
    )
    columns = {
        "part": [_part_name(seen, part) for part in parts],
        "length of what is written": [part.length for part in parts],
        TITLE: [part.effect for part in parts],
    }
    table(columns, f"all-heads-parts-{every_part}")


def _added(value: float) -> str:
    return signed(f"{value:+.2f}")


def _which_logit(seen: Look, prediction: Logits, boxes: Sequence[DeltaGenerator]) -> Logit:
    """After which token, and of which next token: the last and the likeliest to begin with."""
    texts = [token.text for token in seen.trace.tokens_of("decoder")]
    position = one_listed(
        "After the token",
        numbered_labels(texts, 24),
        f"all-heads-position-{len(texts)}",  # a text of another length opens on its own end
        first=len(texts) - 1,
        box=boxes[0],
    )
    logits = prediction.after(position)
    shares = probabilities(logits)
    likely = np.argsort(-shares, kind="stable")[:OFFERED].tolist()
    error = rounding(seen.trace, logits)
    labels = [token_label(token.text, 24) for token in seen.model.tokenizer.named(likely)]
    names = [
        f"{rank}. {label} (probability {probability(shares[id_], error, 3)})"
        for rank, (label, id_) in enumerate(zip(labels, likely, strict=True), 1)
    ]
    place = one_listed("Next token", names, "all-heads-token", box=boxes[1])
    return Logit(position, likely[place], plain(labels[place]), float(logits[likely[place]]))


def _map(seen: Look, parts: tuple[StreamPart, ...], key: str, picture: DeltaGenerator) -> None:
    family = choose_family(seen)
    effects = {(part.name, part.head): part.effect for part in parts}
    if family.stack != "decoder":
        st.info(
            "The heads of the encoder reach the logit only through cross-attention, so their "
            "effect is part of what the cross-attention heads write. Choose heads of the decoder."
        )
        return
    with picture:
        map_of_heads(
            seen,
            family,
            np.array([effects[head] for head in family.heads(seen.trace)]),
            quantity="difference",
            title=TITLE,
            words=lambda value: f"adds {signed(f'{value:+.4f}')}",
            key=f"all-heads-effect-{key}",
            alt="What each head adds to the logit.",
        )
    st.latex(logit(seen.model.config))


def _bars(seen: Look, parts: tuple[StreamPart, ...], key: str, picture: DeltaGenerator) -> None:
    ranked = sorted(parts, key=lambda part: -abs(part.effect))
    bars = {_part_name(seen, part): part.effect for part in ranked[:BARS]}
    if rest := ranked[BARS:]:
        bars[f"{len(rest)} smaller parts"] = sum(part.effect for part in rest)
    with picture:
        figure = part_bars(list(bars), list(bars.values()), title=TITLE)
        chart(figure, f"all-heads-parts-{key}")
    st.latex(logit(seen.model.config))
    beta = ", and each norm's β is a separate part" if seen.model.config.shifts else ""
    st.markdown(
        "The stream is a sum, and the norms on the way to the logit are linear once the "
        f"{_held(seen)} of each token are fixed at their values in this run. So each summand "
        "*p* has its own part in the logit; *u* is the row of the output matrix for the token "
        f"*t*{beta}. This is the **direct effect**: what a head changes in later layers is "
        "counted there."
    )


def _held(seen: Look) -> str:
    """What this model's norms take from each token's vector."""
    return seen.model.config.norm_law.taken


def _part_name(seen: Look, part: StreamPart) -> str:
    """A part in words: "L1H3", "bias of attention 1", "feed-forward 0"."""
    if part.kind == "head":
        return name_of(seen, (part.name, part.head or 0))
    if part.kind == "embedding":
        return {"tokens": "token vector", "positions": "position", "segments": "segment"}[part.name]
    if part.name == "output":
        return "bias of the output matrix"
    place = Place.named(part.name)
    if place.kind == "final":
        return "β of the final norm"
    where = "the embedding" if place.layer is None else f"{ADDED_BY[place.kind]} {place.layer}"
    before = {"bias": "bias of ", "norm": "β of the norm after "}.get(part.kind, "")
    return f"{before}{where}"
