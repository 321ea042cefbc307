"""Parts of another sentence's run put into this one: how far each moves the answer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.attribution.growing_map import Kind, PatchMap
from model.analysis.attribution.patching import Spot, spots_of
from model.analysis.attribution.paths import READS
from model.nn.patches import Patch, PatchPart
from model.run.refusals import check_same_length
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.shell.alternatives import say_encoder
from viz.shell.background import Offer, run_or_offer
from viz.shell.request import still_asked
from viz.state.held import traced
from viz.state.look import Look
from viz.state.presets import HEAD_OUTPUTS, PATCH_KIND, PATCHES, STREAM_STATES
from viz.state.session import current, intervene, second_text
from viz.state.view import TEXT_LIMIT
from viz.views.laboratory.cards import cards
from viz.views.laboratory.patch_picture import EXACT, DrawnMap, chosen_map, draw, say
from viz.views.laboratory.patch_runs import Asked, runs, work
from viz.views.laboratory.sentence_like import sentence_like

SHARE = (
    r"\begin{aligned} \text{share} &= \frac{d_{\text{patched}} - d_A}{d_B - d_A} \\"
    r" d &= \text{logit}_{\text{B's token}} - \text{logit}_{\text{A's token}} \end{aligned}"
)
KINDS: dict[str, Kind] = {
    HEAD_OUTPUTS: "head",
    "Weights of heads": "weights",
    "Heads at each token": "head_tokens",
    STREAM_STATES: "stream",
    "Feed-forwards": "feed_forward",
    "Path to the chosen head": "path",
}
ANSWERS = 6  # likeliest next tokens of each run that are offered


def patch(seen: Look) -> None:
    """The map, what is put in, and the two sentences."""
    if not still_asked(seen) or current().intervention != seen.request.intervention:
        st.rerun()  # a click in this view has changed what the whole page is about
    if seen.trace.prediction is None:
        say_encoder(
            seen,
            "reads a text and predicts no next token, so there is no answer that a patch could move. "
            "Choose a GPT.",
        )
        return
    picture, words = st.columns([3, 2], gap="large")
    with words:
        cards(PATCHES, "Examples", "laboratory-patch-card")
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
        drawn = DrawnMap(traces[0], asked, tuple(map(tuple, rows)), found, other)
        with words:
            values, shows = chosen_map(found)
        with picture:
            draw(drawn, values, partial(put, seen, other))
        with above:
            say(drawn, seen.model.tokenizer.named(asked.answer), estimated=shows != EXACT)
    with words:
        st.latex(SHARE)


def _other_sentence(seen: Look) -> str:
    """Sentence B: the visitor's; else the one that parts were put in from; else one like A."""
    put_in = current().intervention.patch
    start = put_in.text if put_in is not None else sentence_like(seen.model, seen.request.text)
    return st.text_area(
        "Sentence B, of as many tokens",
        height="content",
        max_chars=TEXT_LIMIT,
        **second_text("laboratory-patch-text", start),
    )


def _pair(seen: Look, other: str) -> tuple[Request, Request]:
    """Runs A and B, with all changes but the parts that were put in. Both read A's target."""
    intervention = replace(seen.request.intervention, patch=None)
    one = replace(seen.request, intervention=intervention)
    ours, theirs = ([token.id for token in seen.model.tokens(text)] for text in (one.text, other))
    check_same_length(len(ours), len(theirs))
    if ours == theirs:
        raise ValueError("Both sentences are the same to this model. Change a word of sentence B.")
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
            f"Both sentences lead to {plain(labels[0])}, so the second answer is the next most likely "
            "token. Choose the two that you want to compare."
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
    reads = tuple(one for one in READS if read in (one, "all three"))
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
    weights = seen.model.parameter_count
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


def put(seen: Look, text: str, part: PatchPart | None) -> None:
    """Puts a part of another sentence's run into this one, or takes it out again."""
    if part is None:
        return
    now = current().intervention.patch
    same = now is not None and (now.model, now.text) == (seen.model.name, text)
    parts = (now.parts if now is not None and same else frozenset()) ^ {part}
    intervene(patch=Patch(seen.model.name, text, parts) if parts else None)
