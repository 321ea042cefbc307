"""Parts of another sentence's run put into this one: how far each moves the answer, as a map made in the
background."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.attribution.patching import (
    READS,
    Kind,
    PatchMap,
    Reads,
    Spot,
    agreement,
    growing_map,
    spots_of,
)
from model.nn.patches import Patch, PatchPart
from model.nn.places import Head, Place, head_label, layer_label
from model.run.protocols import check_same_length
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.records import Token
from model.trace.trace import Trace
from model.training.micro_stories import WORDS
from viz.elements.one_of import one_listed, one_of
from viz.elements.plot import plot
from viz.figures.head_tiles import patch_map_figure
from viz.figures.heatmap import Axis
from viz.notation.labels import plotly_words, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import signed
from viz.saving.save import save_figure
from viz.shell.background import Offer, Passes, PassesOf, run_or_offer
from viz.shell.model_picker import say_encoder
from viz.shell.pictures import look_for, table
from viz.shell.request import still_asked
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced
from viz.state.presets import HEAD_OUTPUTS, PATCH_KIND, PATCHES, STREAM_STATES
from viz.state.session import current, intervene, second_text
from viz.views.laboratory.editors import cards

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True)
class Asked:
    """A map: the two runs, the ids of their answers, what is put in, and where it is read."""

    runs: tuple[Request, Request]  # A and B
    answer: tuple[int, int]  # ids of A's token and B's
    kind: Kind
    place: str = ""  # the sub-layer of "head_tokens"
    receiver: Head | None = None  # the head of "path"
    reads: tuple[Reads, ...] = READS


class PatchRun(Passes[PatchMap]):
    """A map under way or ended."""


@st.cache_resource
def runs() -> PassesOf[Asked, PatchRun]:
    """The runs of this process, shared by all visitors."""
    return PassesOf(PatchRun)


def work(
    model: "Model", traces: tuple[Trace, Trace], asked: Asked, run: PatchRun
) -> Iterator[PatchMap]:
    """The estimate first, then the exact map batch by batch."""
    return growing_map(
        model,
        *traces,
        asked.kind,
        asked.answer,
        place=asked.place,
        receiver=asked.receiver,
        reads=asked.reads,
        turn=run.turn,
    )


PUT_IN: dict[Kind, str] = {
    "head": "the output of one head, at all tokens",
    "weights": "the weights of one head; its values stay those of A",
    "head_tokens": "the output of one head at one token",
    "stream": "the residual stream before one layer at one token",
    "feed_forward": "what one feed-forward writes at one token",
    "path": "one earlier head, as the chosen head alone reads it",
}
EXACT, ESTIMATE, APART = "Exact", "Estimate", "Estimate − exact"


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """A map, run A, what was asked, the spots of its cells, and sentence B."""

    trace: Trace
    asked: Asked
    rows: tuple[tuple[Spot, ...], ...]
    found: PatchMap
    other: str

    @property
    def cells(self) -> list[Spot | None]:
        """Row by row; None where a layer has fewer heads than another."""
        widest = max(map(len, self.rows))
        return [spot for row in self.rows for spot in (*row, *[None] * (widest - len(row)))]

    @property
    def parts(self) -> list[PatchPart | None]:
        """What a click on each cell puts in."""
        kind = self.asked.kind
        return [None if spot is None else part_of(spot, kind) for spot in self.cells]

    @property
    def names(self) -> list[str]:
        return ["" if spot is None else spot_name(spot, self.trace) for spot in self.cells]


def chosen_map(found: PatchMap) -> tuple[Wide, str]:
    """The exact map, the estimate, or how far they are apart; and which of them."""
    exact, estimated = found.shares, found.estimate
    if estimated is None:
        return exact, EXACT
    chosen = one_of("Map", (EXACT, ESTIMATE, APART), "laboratory-patch-map", quiet=True)
    return {EXACT: exact, ESTIMATE: estimated, APART: estimated - exact}[chosen], chosen


def draw(drawn: DrawnMap, values: Wide, put: Callable[[PatchPart | None], None]) -> None:
    """The map; a click puts that part into the run."""
    kind, exact, estimated = drawn.asked.kind, drawn.found.shares, drawn.found.estimate
    known = [one for one in (exact, estimated) if one is not None]
    limit = max(float(np.nanmax(np.abs(one), initial=0.0)) for one in known) or 1.0
    parts, now = drawn.parts, current().intervention.patch
    put_in = now.parts if now is not None and now.text == drawn.other else frozenset()
    framed = [at for at, part in enumerate(parts) if part in put_in]
    figure = patch_map_figure(
        values,
        rows=_rows(kind, drawn.rows),
        columns=_columns(drawn),
        title="share",
        words=[
            f"{plotly_words(name)}<br>"
            + ("not run yet" if np.isnan(value) else signed(f"{value:+.3f}"))
            for name, value in zip(drawn.names, values.ravel(), strict=True)
        ],
        chosen=[divmod(at, values.shape[1]) for at in framed],
        limit=limit,
    )
    clicked = None if kind == "path" else lambda point: put(parts[point])
    key = f"laboratory-patch-{hash((drawn.asked, values.tobytes(), put_in))}"
    plot(figure, key, clicked=clicked)
    save_figure(lambda: figure, f"laboratory-patch-{kind}")
    columns: dict[str, object] = {"part": drawn.names, "exact": exact.ravel()}
    if estimated is not None:
        columns["estimate"] = estimated.ravel()
    table(columns, f"laboratory-patch-{kind}")


def part_of(spot: Spot, kind: Kind) -> PatchPart:
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


def _rows(kind: Kind, rows: Sequence[Sequence[Spot]]) -> Axis:
    if kind == "head_tokens":
        return Axis("head", [str(row[0].head) for row in rows], tokens=False)
    return Axis("layer", [layer_label(row[0].name) for row in rows], tokens=False)


def _columns(drawn: DrawnMap) -> Axis:
    widest, trace = max(drawn.rows, key=len), drawn.trace
    if widest[0].token is None:
        return Axis("head", [str(spot.head) for spot in widest], tokens=False)
    stack = Place.named(widest[0].name).stack
    return Axis("token", [token.text for token in trace.tokens_of(stack)])


def say(drawn: DrawnMap, answers: Sequence[Token], *, estimated: bool) -> None:
    """What there is to see, the two answers, and, where it is shown, how good the estimate is."""
    first, second = (bold_token(token.text) for token in answers)
    shares, found = drawn.found.shares, drawn.found
    said = (
        "Each cell is one more run of your sentence (A) with one part of B’s run in its place: "
        f"{PUT_IN[drawn.asked.kind]}. At 0 the answer stays A’s, “{first}”; at 1 it becomes B’s, “{second}”."
    )
    if np.isfinite(shares).any():
        at = int(np.nanargmax(np.abs(shares)))
        said += (
            f" **{plain(drawn.names[at])}** moves the answer farthest: {_way(shares.ravel()[at])}."
        )
    look_for(said)
    start, end = (signed(f"{answer:.3f}") for answer in found.answers)
    st.caption(
        f"d is {start} in run A and {end} in run B. Parts can do the same work twice, or only together, so "
        "the cells need not sum to 1."
        + ("" if drawn.asked.kind == "path" else " Click a cell to put that part into the run.")
        + (" A click puts the whole head in." if drawn.asked.kind == "head_tokens" else "")
    )
    if estimated and found.estimate is not None:
        st.caption(estimate_in_words(shares, found.estimate, drawn.asked.kind))


def _way(share: float) -> str:
    if share < 0:
        return f"{-share:.0%} of the way, in the other direction"
    return f"{share:.0%} of the way"


def estimate_in_words(exact: Wide, estimate: Wide, kind: Kind) -> str:
    """What the estimate leaves out, and its correlation and error, from the numbers of this run."""
    parts = "its queries and keys" if kind == "weights" else "the part"
    said = (
        "The estimate takes one gradient of run A instead of a run for each cell. It is of first order, as "
        f"if the answer were linear in {parts}."
    )
    if kind == "weights":
        said += " The softmax between them and the weights is far from linear where weights change much."
    found = agreement(exact, estimate)
    if not found.cells:
        return said
    if found.correlation is not None:
        said += f" Correlation with the exact map: {signed(f'{found.correlation:.3f}')}."
    errors = f"Largest error {found.largest:.3f}, mean {found.mean:.3f}"
    return f"{said} {errors}, over {found.cells} cells."


_WORD = re.compile(r"\w+")


def sentence_like(model: "Model", text: str) -> str:
    """Sentence B: that of an example; else a name, or a word of the stories, is exchanged for another of its
    kind, with as many tokens; else the first two words change places."""
    for preset in PATCHES:
        if (preset.view.model, preset.view.text) == (model.name, text):
            return preset.view.second_text
    found = _WORD.findall(text)
    length = len(model.tokens(text))
    for kind in sorted(WORDS, key=lambda kind: kind != "surnames"):
        for word in found:
            if word not in WORDS[kind] or found.count(word) > 1:
                continue
            for another in WORDS[kind]:
                changed = re.sub(rf"\b{word}\b", another, text)
                if another not in found and len(model.tokens(changed)) == length:
                    return changed
    first, second, *rest = [*text.split(), "", ""]
    return " ".join([second, first, *rest]).strip()


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
