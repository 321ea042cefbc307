"""Parts of another sentence's run put into this one: how far each moves the answer, as a map made in the
background."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.attribution.patching import (
    READS,
    PatchMap,
    PatchMapKind,
    PathReads,
    Spot,
    agreement,
    growing_map,
    spots_of,
)
from model.analysis.tokens.prediction import expectation
from model.nn.patches import Patch, PatchPart
from model.nn.places import Head, Place, head_label, layer_label
from model.run.protocols import check_same_length
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
from model.training.micro_stories import WORDS
from viz.elements.one_of import one_listed, one_of, open_one
from viz.figures.head_tiles import patch_map_figure
from viz.figures.heatmap import Axis, framed
from viz.notation.labels import plotly_words, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import signed
from viz.notation.words import sentences_of
from viz.shell.background import Offer, passes_or_offer
from viz.shell.panel import Caption, Formula, Panel, Part, Table, refusals
from viz.shell.request import still_shown
from viz.state.intervention_words import parts
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced
from viz.state.presets import HEAD_OUTPUTS, PATCH_KIND, PATCHES, STREAM_STATES, Preset, preset_of
from viz.state.session import current, intervene, open_view, second_text, set_intervention
from viz.views.experiments.moving_bars import moving_bars

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("experiments.patch")

PUT_IN: dict[PatchMapKind, str] = {
    "head": say("output_head_tokens"),
    "weights": say("weights_head_values"),
    "head_tokens": say("output_head_token"),
    "stream": say("residual_stream_before"),
    "feed_forward": say("feed_forward_writes"),
    "path": say("earlier_head_chosen"),
}
EXACT, ESTIMATE, APART = "Exact", "Estimate", "Estimate − exact"
SHARE = (
    r"\begin{aligned} \text{share} &= \frac{d_{\text{patched}} - d_A}{d_B - d_A} \\"
    r" d &= \text{logit}_{\text{B's token}} - \text{logit}_{\text{A's token}} \end{aligned}"
)
KINDS: dict[str, PatchMapKind] = {
    HEAD_OUTPUTS: "head",
    "Weights of heads": "weights",
    say("heads_token"): "head_tokens",
    STREAM_STATES: "stream",
    "Feed-forwards": "feed_forward",
    say("path_chosen_head"): "path",
}
LOW = 440  # pixels of a map of few layers
ANSWERS = 6  # likeliest next tokens of each run that are offered


@dataclass(frozen=True)
class MapRequest:
    """A map: the two runs, the ids of their answers, what is put in, and where it is read."""

    runs: tuple[Request, Request]  # A and B
    answer: tuple[int, int]  # ids of A's token and B's
    kind: PatchMapKind
    place: str = ""  # the sub-layer of "head_tokens"
    receiver: Head | None = None  # the head of "path"
    reads: tuple[PathReads, ...] = READS


def patch(look: Look) -> Panel:
    """The map of what each part of sentence B's run does in A's; a click puts that part in."""
    if not still_shown(look):
        st.rerun()  # a click in this view has changed what the whole page is about
    open_one(
        "Pairs to open",
        PATCHES,
        "experiment-pairs",
        named=lambda preset: f"{preset.title}: {preset.view.text}",
        placeholder="Pairs of sentences",
        take=_open,
        quiet=True,
        width=190,
    )
    if look.trace.prediction is None:
        raise NotShownError(
            f"{look.title} predicts no next token, so there is no answer that a part could change. Choose a "
            "GPT, or open a pair of sentences."
        )
    put_in = current().intervention.patch
    other = st.text_input(
        "Sentence B",
        max_chars=TEXT_LIMIT,
        **second_text(
            "experiment-patch-text",
            put_in.text if put_in is not None else sentence_like(look.model, look.request.text),
        ),
    )
    kind = KINDS[st.selectbox("Put in", list(KINDS), key=PATCH_KIND, bind="query-params")]
    with refusals():
        pair = _pair(look, other)
        traces = traced(pair[0]), traced(pair[1])
        ours, theirs = ([token.id for token in trace.target_tokens] for trace in traces)
        if ours != theirs:
            raise NotShownError(
                "The two runs do not read the same target. Type a target of your own."
            )
        answer, remarks = _answer(look, traces)
        asked = MapRequest(pair, answer, kind)
        if kind == "head_tokens":
            asked = replace(asked, place=look.place)
        if kind == "path":
            read = one_of("Read as", ("all three", *READS), "experiment-patch-reads")
            reads = tuple(one for one in READS if read in (one, "all three"))
            asked = replace(asked, receiver=(look.place, look.head), reads=reads)
            rows = spots_of(look.model, traces[0], "head", before=look.place)
        else:
            rows = spots_of(look.model, traces[0], kind, asked.place)
    drawn = _map(look, traces, asked, rows, other)
    opened = preset_of(current())
    if opened in PATCHES:
        remarks = [*remarks, Caption(plain(opened.look_for))]
    return replace(drawn, beside=[partial(_put_in, look), Formula(SHARE), *drawn.beside, *remarks])


def _open(preset: Preset) -> None:
    """Opens a pair of sentences with its model; `undo` leads back to the visitor's own."""
    open_view(preset.view, undoable=True)
    st.session_state[PATCH_KIND] = preset.put_in


def _put_in(look: Look) -> None:
    """What was put in, each with a button that takes it out, and what it makes of the next token."""
    if look.baseline is None:
        return
    with st.container(horizontal=True, gap="xsmall"):
        for number, part in enumerate(parts(look.request.intervention)):
            st.button(
                f"{part.words} ✕",
                key=f"experiment-part-{number}",
                on_click=set_intervention,
                args=(part.without,),
            )
    ours, theirs = (run.require_prediction().after(-1) for run in (look.baseline, look.trace))
    likely = expectation(ours, theirs, 3)
    names = [token_label(token.text, 18) for token in look.model.target_tokenizer.named(likely.ids)]
    moving_bars(names, likely.before, likely.after, unit=say("probability_next_token"))


def _pair(look: Look, other: str) -> tuple[Request, Request]:
    """Runs A and B, with all changes but the parts that were put in. Both read A's target."""
    intervention = replace(look.request.intervention, patch=None)
    one = replace(look.request, intervention=intervention)
    ours, theirs = ([token.id for token in look.model.tokens(text)] for text in (one.text, other))
    check_same_length(len(ours), len(theirs))
    if ours == theirs:
        raise ValueError("Both sentences are the same to this model. Change a word of sentence B.")
    target = one.target
    if look.trace.target_tokens and target is None:
        ids = [token.id for token in traced(one).target_tokens[1:]]
        target = look.model.tokenizer.decode(ids)
    return one, replace(one, text=other, target=target)


def _answer(look: Look, traces: tuple[Trace, Trace]) -> tuple[tuple[int, int], list[Part]]:
    """The ids of the two tokens whose logits are compared: the likeliest of each run, until others are
    chosen; and a remark where both runs have the same."""
    ranked = [
        np.argsort(-trace.require_prediction().after(-1), kind="stable")[:ANSWERS].tolist()
        for trace in traces
    ]
    ids = list(dict.fromkeys([ranked[0][0], ranked[1][0], *ranked[0], *ranked[1]]))
    labels = [token_label(token.text, 24) for token in look.model.tokenizer.named(ids)]
    key = f"experiment-patch-answer-{hash(tuple(ids))}"
    with st.popover("Answers"):
        first, second = (
            ids[one_listed(f"Answer of {run}", labels, f"{key}-{run}", first=at)]
            for at, run in enumerate("AB")
        )
    if first == second:
        raise ValueError(
            "Choose two different tokens: the answer is the difference of their logits."
        )
    if ranked[0][0] != ranked[1][0]:
        return (first, second), []
    remark = Caption(say("both_sentences_lead", first_labels=labels[0]))
    return (first, second), [remark]


def _shares(
    look: Look, traces: tuple[Trace, Trace], asked: MapRequest, cells: int
) -> PatchMap | None:
    """The map as far as it is known, with its progress. cells: of the map."""
    kind, model = asked.kind, look.model
    length = len(traces[0].tokens) + len(traces[0].target_tokens)
    offer = Offer(
        "experiment-patch",
        say("sentence_run_times", cells=cells),
        f"Run it {cells} times",
        "cells",
        "done",
        cells,
        cells * length * model.parameter_count * (2 if kind == "path" else 1),
    )
    run = passes_or_offer(
        asked,
        lambda run: growing_map(
            model,
            *traces,
            kind,
            asked.answer,
            place=asked.place,
            receiver=asked.receiver,
            reads=asked.reads,
            turn=run.turn,
        ),
        offer,
    )
    return None if run is None else run.found


def _map(
    look: Look,
    traces: tuple[Trace, Trace],
    asked: MapRequest,
    rows: Sequence[Sequence[Spot]],
    other: str,
) -> Panel:
    """The map, the two answers, and, where it is shown, how good the estimate is.

    Args:
        look: the run that is shown.
        traces: runs A and B.
        asked: the map.
        rows: the spots of its cells.
        other: sentence B.
    """
    kind, patches = asked.kind, _shares(look, traces, asked, sum(map(len, rows)))
    if patches is None:
        return Panel(f"experiment-patch-{kind}")
    exact, estimate = patches.shares, patches.estimate
    maps, shown, columns = {EXACT: exact}, EXACT, {"exact": exact.ravel()}
    if estimate is not None:
        maps |= {ESTIMATE: estimate, APART: estimate - exact}
        shown = one_of("Map", tuple(maps), "experiment-patch-map", quiet=True)
        columns["estimate"] = estimate.ravel()
    widest = max(map(len, rows))  # a layer may have fewer heads than another
    spots = [spot for row in rows for spot in (*row, *[None] * (widest - len(row)))]
    names = ["" if spot is None else spot_name(spot, traces[0]) for spot in spots]
    put = [None if spot is None else part_of(spot, kind) for spot in spots]
    put_in = current().intervention.patch
    parts_in = put_in.parts if put_in is not None and put_in.text == other else frozenset()
    limit = max(float(np.nanmax(np.abs(maps[one]), initial=0)) for one in maps if one != APART)
    figure = patch_map_figure(
        maps[shown],
        rows=Axis(
            "head" if kind == "head_tokens" else "layer",
            [
                str(row[0].head) if kind == "head_tokens" else layer_label(row[0].name)
                for row in rows
            ],
            tokens=False,
        ),
        columns=_columns(max(rows, key=len), traces[0]),
        title="share",
        words=[
            f"{plotly_words(name)}<br>"
            + ("not run yet" if np.isnan(value) else signed(f"{value:+.3f}"))
            for name, value in zip(names, maps[shown].ravel(), strict=True)
        ],
        chosen=[divmod(at, widest) for at, part in enumerate(put) if part in parts_in],
        limit=limit or 1.0,
    )
    figure.update_layout(height=max(figure.layout.height, LOW))
    if np.isfinite(exact).any():  # what the sentence names
        row, column = divmod(_largest(exact), widest)
        framed(figure, [row], [column])
    start, end = (signed(f"{answer:.3f}") for answer in patches.answers)
    remark = (
        say("run_run_b_parts", start=start, end=end)
        + ("" if kind == "path" else say("click_cell_put_part"))
        + (say("click_puts_whole") if kind == "head_tokens" else "")
    )
    remarks = [Caption(remark)]
    if shown != EXACT and estimate is not None:
        remarks.append(Caption(estimate_in_words(exact, estimate, kind)))
    return Panel(
        f"experiment-patch-{kind}",
        look_for=_farthest(look, asked, exact, names),
        picture=figure,
        chosen=hash((asked, maps[shown].tobytes(), parts_in)),
        clicked=None if kind == "path" else lambda point: put_part(look, other, put[point]),
        beside=remarks,
        table=Table({"part": names, **columns}),
    )


def part_of(spot: Spot, kind: PatchMapKind) -> PatchPart:
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
        name = head_label((spot.name, spot.head))
    if spot.token is None:
        return name
    token = trace.tokens_of(Place.named(spot.name).stack)[spot.token]
    return f"{name} at {spot.token} {token_label(token.text)}"


def _columns(row: Sequence[Spot], trace: Trace) -> Axis:
    if row[0].token is None:
        return Axis("head", [str(spot.head) for spot in row], tokens=False)
    return Axis("token", [token.text for token in trace.tokens_of(Place.named(row[0].name).stack)])


def _largest(shares: Wide) -> int:
    return int(np.nanargmax(np.abs(shares)))


def _farthest(look: Look, asked: MapRequest, shares: Wide, names: Sequence[str]) -> str:
    """What there is to see: the two answers, and the part that moves the answer farthest."""
    first, second = (bold_token(token.text) for token in look.model.tokenizer.named(asked.answer))
    sentence = say("cell_more_run_sentence", put_in=PUT_IN[asked.kind], first=first, second=second)
    if not np.isfinite(shares).any():
        return sentence
    at = _largest(shares)
    share = shares.ravel()[at]
    way = f"{abs(share):.0%} of the way" + say("other_direction") * bool(share < 0)
    return say("moves_answer_farthest", sentence=sentence, names=names[at], way=way)


def estimate_in_words(exact: Wide, estimate: Wide, kind: PatchMapKind) -> str:
    """What the estimate leaves out, and its correlation and error, from the numbers of this run."""
    parts = say("weights_put") if kind == "weights" else "the part"
    sentence = say("estimate_takes_gradient", parts=parts)
    fit = agreement(exact, estimate)
    if not fit.cells:
        return sentence
    if fit.correlation is not None:
        sentence += say("correlation_exact_map", correlation=fit.correlation)
    errors = f"Largest error {fit.largest:.3f}, mean {fit.mean:.3f}"
    return f"{sentence} {errors}, over {fit.cells} cells."


_WORD = re.compile(r"\w+")


def sentence_like(model: "Model", text: str) -> str:
    """Sentence B: that of an example; else a name, or a word of the stories, is exchanged for another of its
    group, with as many tokens; else the first two words change places."""
    for preset in PATCHES:
        if (preset.view.model, preset.view.text) == (model.name, text):
            return preset.view.second_text
    words = _WORD.findall(text)
    length = len(model.tokens(text))
    for group in sorted(WORDS, key=lambda group: group != "surnames"):
        for word in words:
            if word not in WORDS[group] or words.count(word) > 1:
                continue
            for another in WORDS[group]:
                changed = re.sub(rf"\b{word}\b", another, text)
                if another not in words and len(model.tokens(changed)) == length:
                    return changed
    first, second, *rest = [*text.split(), "", ""]
    return " ".join([second, first, *rest]).strip()


def put_part(look: Look, text: str, part: PatchPart | None) -> None:
    """Puts a part of another sentence's run into this one, or takes it out again."""
    if part is None:
        return
    now = current().intervention.patch
    same = now is not None and (now.model, now.text) == (look.model.name, text)
    parts = (now.parts if now is not None and same else frozenset()) ^ {part}
    intervene(patch=Patch(look.model.name, text, parts) if parts else None)
