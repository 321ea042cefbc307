"""Parts of another sentence's run put into this one: how far each moves the answer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.attribution.patch_estimates import agreement
from model.analysis.attribution.patching import Spot, spots_of
from model.analysis.attribution.paths import READS, Reads
from model.nn.patches import Patch, PatchKind
from model.nn.places import head_label, layer_label
from model.run.refusals import check_same_length
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import plot
from viz.figures.heatmap import Axis
from viz.figures.patch_map import patch_map_figure
from viz.notation.labels import plotly_words, token_label
from viz.notation.markdown import bold_token, plain
from viz.saving.save import save_figure
from viz.shell.alternatives import say_encoder
from viz.shell.background import Offer, run_or_offer
from viz.shell.pictures import look_for, table
from viz.state.held import traced
from viz.state.look import Look
from viz.state.presets import HEAD_OUTPUTS, PATCH_KIND, PATCHES, STREAM_STATES
from viz.state.session import change_view, current, intervene, shown
from viz.state.view import TEXT_LIMIT
from viz.views.laboratory.cards import cards
from viz.views.laboratory.patch_runs import Asked, Kind, PatchMap, runs, work

SHARE = (
    r"\text{share} = \frac{d_{\text{patched}} - d_A}{d_B - d_A} \qquad "
    r"d = \text{logit}(\text{B's token}) - \text{logit}(\text{A's token})"
)
KINDS: dict[str, Kind] = {
    HEAD_OUTPUTS: "head",
    "Weights of heads": "weights",
    "Heads at each token": "head_tokens",
    STREAM_STATES: "stream",
    "Feed-forwards": "feed_forward",
    "Path to the chosen head": "path",
}
PUT_IN: dict[Kind, str] = {
    "head": "the output of one head, at all tokens",
    "weights": "the weights of one head; its values stay those of A",
    "head_tokens": "the output of one head at one token",
    "stream": "the residual stream before one layer at one token",
    "feed_forward": "what one feed-forward writes at one token",
    "path": "one earlier head, as the chosen head alone reads it",
}
ANSWERS = 6  # likeliest next tokens of each run that are offered
EXACT, ESTIMATE, APART = "Exact", "Estimate", "Estimate − exact"


def patch(seen: Look) -> None:
    """The map, what is put in, and the two sentences."""
    if seen.trace.prediction is None:
        say_encoder(
            seen,
            "reads a text and predicts no next token, so there is no answer that a patch could move. "
            "Choose a GPT.",
        )
        return
    picture, words = st.columns([3, 2], gap="large")
    with words:
        above = st.container()
        other = _other_sentence(seen)
        name = st.selectbox("Put in", list(KINDS), key=PATCH_KIND, bind="query-params")
    try:
        pair = _pair(seen, other)
        traces = traced(pair[0]), traced(pair[1])
        _check_targets(seen, traces)
        with words:
            answer = _answer(seen, traces)
            asked = _asked(seen, pair, answer, KINDS[name])
        rows = _spots(seen, traces[0], asked)
    except ValueError as refusal:
        with picture:
            st.warning(plain(str(refusal)))
        found = None
    else:
        with picture, st.container():
            found = _found(seen, traces, asked, rows)
    if found is not None:
        with picture:
            shown_now = _picture(seen, traces[0], asked, rows, found, other)
        _words(seen, traces, asked, rows, found, above, shown_now)
    with words:
        st.latex(SHARE)
        cards(PATCHES, "Examples", "laboratory-patch-card")


def _other_sentence(seen: Look) -> str:
    """Sentence B: the visitor's; else the one that parts were put in from; else the sentence with its first
    two words exchanged."""
    put_in, (first, second, *rest) = (
        current().intervention.patch,
        [*seen.request.text.split(), "", ""],
    )
    start = put_in.text if put_in is not None else " ".join([second, first, *rest]).strip()
    return st.text_input(
        "Sentence B, of as many tokens",
        max_chars=TEXT_LIMIT,
        **shown(
            "laboratory-patch-text",
            current().second_text or start,
            lambda typed: change_view(replace(current(), second_text=typed)),
        ),
    )


def _pair(seen: Look, other: str) -> tuple[Request, Request]:
    """Runs A and B, with all changes but the parts that were put in. Both read A's target."""
    intervention = replace(seen.request.intervention, patch=None)
    one = replace(seen.request, intervention=intervention)
    check_same_length(len(seen.model.tokens(one.text)), len(seen.model.tokens(other)))
    target = one.target
    if seen.trace.target_tokens and target is None:
        ids = [token.id for token in traced(one).target_tokens[1:]]
        target = seen.model.tokenizer.decode(ids)
    return one, replace(one, text=other, target=target)


def _check_targets(seen: Look, traces: tuple[Trace, Trace]) -> None:
    one, other = ([token.id for token in trace.target_tokens] for trace in traces)
    if one != other:
        raise ValueError("The two runs do not read the same target. Type a target of your own.")


def _answer(seen: Look, traces: tuple[Trace, Trace]) -> tuple[int, int]:
    """The two tokens whose logits are compared: the likeliest of each run, until others are chosen."""
    ranked = [
        np.argsort(-trace.require_prediction().after(-1), kind="stable")[:ANSWERS].tolist()
        for trace in traces
    ]
    ids = list(dict.fromkeys([ranked[0][0], ranked[1][0], *ranked[0], *ranked[1]]))
    labels = [token_label(token.text, 24) for token in seen.model.tokenizer.named(ids)]
    left, right = st.columns(2)
    key = f"laboratory-patch-answer-{hash(tuple(ids))}"
    same = ranked[0][0] == ranked[1][0]
    first, second = (
        ids[one_listed(f"Answer of {run}", labels, f"{key}-{run}", first=at, box=box)]
        for run, at, box in (("A", 0, left), ("B", 1, right))
    )
    if same:
        st.caption(
            f"Both sentences lead to {plain(labels[0])}, so the second answer is the next likeliest token. "
            "Choose the two that you want to compare."
        )
    if first == second:
        raise ValueError(
            "Choose two different tokens: the answer is the difference of their logits."
        )
    return first, second


def _asked(seen: Look, pair: tuple[Request, Request], answer: tuple[int, int], kind: Kind) -> Asked:
    asked = Asked(pair, answer, kind)
    if kind == "head_tokens":
        return replace(asked, place=seen.place)
    if kind != "path":
        return asked
    read = one_of("Read as", ("all three", *READS), "laboratory-patch-reads")
    reads: tuple[Reads, ...] = READS if read == "all three" else (read,)
    return replace(asked, receiver=(seen.place, seen.head), reads=reads)


def _spots(seen: Look, trace: Trace, asked: Asked) -> list[list[Spot]]:
    """The cells of the map."""
    if asked.kind == "path":
        return spots_of(seen.model, trace, "head", before=seen.place)
    return spots_of(seen.model, trace, asked.kind, asked.place)


def _found(
    seen: Look, traces: tuple[Trace, Trace], asked: Asked, rows: Sequence[Sequence[Spot]]
) -> PatchMap | None:
    """The map as far as it is known, with its progress."""
    cells = sum(map(len, rows))
    weights = sum(weight.numel() for weight in seen.model.module.parameters())
    length = len(traces[0].tokens) + len(traces[0].target_tokens)
    offer = Offer(
        "laboratory-patch",
        f"Sentence A is run {cells} times, each time with one part of B’s run.",
        f"Run it {cells} times",
        "cells",
        "done",
        cells,
        cells * length * weights * (2 if asked.kind == "path" else 1),
    )
    run = run_or_offer(runs(), asked, partial(work, seen.model, traces, asked), offer)
    return None if run is None else run.found


def _picture(
    seen: Look,
    trace: Trace,
    asked: Asked,
    rows: Sequence[Sequence[Spot]],
    found: PatchMap,
    other: str,
) -> str:
    """The map that is chosen; a click puts that part into the run. Gives which one is shown."""
    estimated = found.estimate
    shown_now = EXACT
    if estimated is not None:
        shown_now = one_of("Map", (EXACT, ESTIMATE, APART), "laboratory-patch-map", quiet=True)
    exact = found.shares
    values = exact
    if estimated is not None and shown_now != EXACT:
        values = estimated if shown_now == ESTIMATE else estimated - exact
    known = [one for one in (exact, estimated) if one is not None]
    limit = max(float(np.nanmax(np.abs(one), initial=0.0)) for one in known) or 1.0
    parts = [[part_of(spot, asked.kind) for spot in row] for row in rows]
    now = current().intervention.patch
    put_in = now.parts if now is not None and now.text == other else frozenset()
    chosen = next(
        (
            (at, column)
            for at, row in enumerate(parts)
            for column, part in enumerate(row)
            if part in put_in
        ),
        None,
    )
    figure = patch_map_figure(
        values,
        rows=_rows(asked.kind, rows),
        columns=_columns(trace, asked.kind, rows),
        title="share",
        words=[
            f"{plotly_words(spot_name(spot, trace))}<br>"
            + ("not run yet" if np.isnan(value) else f"{value:+.3f}")
            for row, line in zip(rows, values, strict=True)
            for spot, value in zip(row, line, strict=False)
        ],
        chosen=chosen,
        limit=limit,
    )
    flat = [part for row in parts for part in row]
    key = f"laboratory-patch-{hash((asked, shown_now, put_in))}"
    if asked.kind == "path":
        plot(figure, key)
    else:
        plot(figure, key, clicked=lambda point: put(seen, other, flat[point]))
    save_figure(lambda: figure, f"laboratory-patch-{asked.kind}")
    columns = {"part": [spot_name(spot, trace) for row in rows for spot in row]}
    numbers = {"exact": exact.ravel()} | (
        {} if estimated is None else {"estimate": estimated.ravel()}
    )
    table(columns | numbers, f"laboratory-patch-{asked.kind}")
    return shown_now


def put(seen: Look, text: str, part: tuple[PatchKind, str, int]) -> None:
    """Puts a part of another sentence's run into this one, or takes it out again."""
    now = current().intervention.patch
    same = now is not None and (now.model, now.text) == (seen.model.name, text)
    parts = (now.parts if now is not None and same else frozenset()) ^ {part}
    intervene(patch=Patch(seen.model.name, text, parts) if parts else None)


def part_of(spot: Spot, kind: Kind) -> tuple[PatchKind, str, int]:
    """What a click on a cell puts in: of a head at one token, the whole head."""
    if kind == "weights":
        return "weights", spot.name, spot.head or 0
    if kind in ("stream", "feed_forward"):
        return ("stream" if kind == "stream" else "feed_forward"), spot.name, spot.token or 0
    return "head", spot.name, spot.head or 0


def spot_name(spot: Spot, trace: Trace) -> str:
    """L1H7, or "L1 at 4 ·cat", or both."""
    name = layer_label(spot.name)
    if spot.head is not None:
        name = head_label((spot.name, spot.head), full=True)
    if spot.token is None:
        return name
    token = trace.tokens_of("encoder" if spot.name.startswith("encoder") else "decoder")[spot.token]
    return f"{name} at {spot.token} {token_label(token.text)}"


def _rows(kind: Kind, rows: Sequence[Sequence[Spot]]) -> Axis:
    if kind == "head_tokens":
        return Axis("head", [str(row[0].head) for row in rows], tokens=False)
    return Axis("layer", [layer_label(row[0].name) for row in rows], tokens=False)


def _columns(trace: Trace, kind: Kind, rows: Sequence[Sequence[Spot]]) -> Axis:
    widest = max(rows, key=len)
    if widest[0].token is None:
        return Axis("head", [str(spot.head) for spot in widest], tokens=False)
    stack = trace.find(rows[0][0].name).stack if kind != "feed_forward" else trace.source
    return Axis("token", [token.text for token in trace.tokens_of(stack)])


def _words(
    seen: Look,
    traces: tuple[Trace, Trace],
    asked: Asked,
    rows: Sequence[Sequence[Spot]],
    found: PatchMap,
    above: DeltaGenerator,
    shown_now: str,
) -> None:
    """What there is to see, the two answers, and how good the estimate is."""
    first, second = seen.model.tokenizer.named(asked.answer)
    shares, spots = found.shares, [spot for row in rows for spot in row]
    said = (
        f"Each cell is one more run of your sentence (A) with one part of B’s run in its place: "
        f"{PUT_IN[asked.kind]}. At 0 the answer stays A’s, {bold_token(first.text)}; at 1 it becomes B’s, "
        f"{bold_token(second.text)}."
    )
    if np.isfinite(shares).any():
        at = int(np.nanargmax(np.abs(shares)))
        most, share = spots[at], float(shares.ravel()[at])
        said += f" Farthest: **{plain(spot_name(most, traces[0]))}**, {share:+.3f}."
    with above:
        look_for(said)
    start, end = found.answers
    with above:
        st.caption(
            f"d is {start:.3f} in run A and {end:.3f} in run B. Parts can do the same work twice, or only "
            "together, so the cells need not sum to 1."
            + ("" if asked.kind == "path" else " Click a cell to put that part into the run.")
        )
        if found.estimate is not None:
            st.caption(_agreement(shares, found.estimate))


def _agreement(exact: Wide, estimate: Wide) -> str:
    """The correlation and the error of the estimate, from the numbers of this run."""
    how = "The estimate takes one gradient of run A instead of a run for each cell."
    found = agreement(exact, estimate)
    if not found.cells:
        return how
    linked = (
        ""
        if found.correlation is None
        else f" Correlation with the exact map: {found.correlation:.3f}."
    )
    return f"{how}{linked} Largest error {found.largest:.3f}, mean {found.mean:.3f}, over {found.cells} cells."
