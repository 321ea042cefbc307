"""What heads write to the stream: its length, what it adds to a logit, and all heads together through W_O."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.analysis.heads.contributions import (
    Merged,
    StreamPart,
    logit_check,
    merged,
    parts_of_logit,
    result_lengths,
    results_check,
)
from model.analysis.heads.statistics import Family
from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import probabilities
from model.code.around import map_reads, output_reads
from model.code.check import within_weights
from model.code.script import saves
from model.nn.intervention import UNCHANGED
from model.nn.places import Place
from model.serving.engine import Request
from model.snippets import layers
from model.trace.trace import Logits
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import part_bars
from viz.figures.vectors import merging, merging_of_tokens
from viz.notation.head_formulas import concatenation, logit
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import ADDED_BY
from viz.notation.numbers import difference, led_by, probability, sign_of_sum, signed
from viz.shell.controls import LISTED
from viz.shell.model_picker import say_encoder
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Part, Table
from viz.state.look import Look, loaded, traced
from viz.state.navigation import HOME, view_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, map_of_heads, name_of, of_heads

LENGTH, EFFECT, PARTS = "Length", "Effect on a logit", "All parts"
OFFERED = 8  # likeliest next tokens
BARS = 16  # single parts that are drawn
TITLE = "adds to the logit"


class Logit(NamedTuple):
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


def head_results(look: Look) -> Panel:
    """Length, effect on one logit, or everything that adds up to it."""
    prediction = look.trace.prediction
    if prediction is None:
        no_logit = (
            "predicts no next token, so there is no logit to add to. The map shows the "
            "lengths of the vectors that its heads write."
        )
        return _map_of_lengths(look, partial(say_encoder, look, no_logit))
    shown = one_of("Picture", (EFFECT, PARTS, LENGTH), "all-heads-writes-as")
    head = name_of(look, (look.place, look.head))
    view = replace(current(), show="Carries", intervention=UNCHANGED)  # as this page shows the run
    edges = partial(view_link, HOME, f"What each edge of {head} carries →", view)
    if shown == LENGTH:
        return _map_of_lengths(look, edges)
    return _effects(look, _which_logit(look, prediction), edges, every_part=shown == PARTS)


def _map_of_lengths(look: Look, more: Part) -> Panel:
    """The mean length of what each head writes. more: the last part below the picture."""
    family = choose_family(look)
    lengths, apart = _lengths(look.request, family)
    means, heads = lengths.mean(1).astype(np.float64), family.heads(look.trace)
    names = [name_of(look, head) for head in heads]
    longest, _ = led_by(names, means, decimals=2)
    shortest, _ = led_by(names, -means, decimals=2)
    config = look.model.config
    panel = Panel(
        "all-heads-lengths",
        look_for=f"The longest vectors come from {longest}: their mean length is {means.max():.2f}. The "
        f"shortest come from {shortest}: {means.min():.2f}. A head with a sharp pattern of weights "
        "can still write next to nothing.",
        picture=map_of_heads(
            look,
            family,
            means,
            quantity="stream",
            title="mean length",
            words="length {:.4f}".format,
        ),
        alt="Mean length of what each head writes.",
        below=[Formula(concatenation(config)), more],
        check=Check(
            "Check: what the heads write, each through its rows of W_O"
            f"{', together with the bias,' if config.output_bias else ''} adds up to what the "
            f"stream received; the largest difference is {difference(apart)}.",
            apart,
        ),
        table=Table({"head": names, "mean length": means}),
    )
    return of_heads(panel, look, heads)


def _effects(look: Look, of: Logit, edges: Part, *, every_part: bool) -> Panel:
    """What each head, or each part of the stream, adds to the logit."""
    parts, apart = _parts(look.request, of.position, of.token)
    config, names = look.model.config, [_part_name(look, part) for part in parts]
    effects = {(part.name, part.head): part.effect for part in parts if part.kind == "head"}
    heads = [name for name, part in zip(names, parts, strict=True) if part.kind == "head"]
    leading, _ = led_by(heads, np.array(list(effects.values())), decimals=2)
    together, most = sum(effects.values()), _added(max(effects.values()))
    whole, added = signed(f"{of.value:.2f}"), [_added(together), _added(of.value - together)]
    below: list[Part] = [Formula(logit(config))]
    family = None if every_part else choose_family(look)
    figure: go.Figure | Callable[[], object]
    if family is None:
        ranked = sorted(zip(names, parts, strict=True), key=lambda part: -abs(part[1].effect))
        bars = {name: part.effect for name, part in ranked[:BARS]}
        if rest := ranked[BARS:]:
            bars[f"{len(rest)} smaller parts"] = sum(part.effect for _, part in rest)
        figure = part_bars(list(bars), list(bars.values()), title=TITLE)
        beta = ", and each norm's β is a separate part" if config.shifts else ""
        below.append(
            "The stream is a sum, and the norms on the way to the logit are linear once the "
            f"{config.norm_law.taken} of each token are fixed at their values in this run. So each summand "
            "*p* has its own part in the logit; *u* is the row of the output matrix for the token "
            f"*t*{beta}. This is the **direct effect**: what a head changes in later layers is "
            "counted there."
        )
    elif family.stack != "decoder":
        figure = partial(
            st.info,
            "The heads of the encoder reach the logit only through cross-attention, so their "
            "effect is part of what the cross-attention heads write. Choose heads of the decoder.",
        )
    else:
        figure = map_of_heads(
            look,
            family,
            np.array([effects[head] for head in family.heads(look.trace)]),
            quantity="difference",
            title=TITLE,
            words=lambda value: f"adds {signed(f'{value:+.4f}')}",
        )
    panel = Panel(
        f"all-heads-{'parts' if every_part else 'effect'}",
        look_for=f"The logit of **{of.label}** is {whole} {sign_of_sum(added, whole)} {added[0]} (all heads "
        f"together) {added[1]} (everything else). The head that adds most is {leading}: {most}.",
        picture=figure,
        chosen=f"{of.position}-{of.token}-",
        alt="" if every_part else "What each head adds to the logit.",
        below=[*below, edges],
        check=Check(
            "Check: the sum of all parts, each passed through the norms with their recorded "
            f"{config.norm_law.taken}, differs from the model's own logit by {difference(apart)}.",
            apart,
        ),
        table=Table(
            {
                "part": names,
                "length of what is written": [part.length for part in parts],
                TITLE: [part.effect for part in parts],
            }
        ),
    )
    return of_heads(panel, look, () if family is None else family.heads(look.trace))


def _added(value: float) -> str:
    return signed(f"{value:+.2f}")


def _which_logit(look: Look, prediction: Logits) -> Logit:
    """After which token, and of which next token: the last and the likeliest to begin with."""
    texts = [token.text for token in look.trace.tokens_of("decoder")]
    position = one_listed(
        "After the token",
        numbered_labels(texts, LISTED),
        f"all-heads-position-{len(texts)}",  # a text of another length opens on its own end
        first=len(texts) - 1,
    )
    logits = prediction.after(position)
    shares = probabilities(logits)
    likely = np.argsort(-shares, kind="stable")[:OFFERED].tolist()
    error = rounding(look.trace, logits)
    labels = [token_label(token.text, LISTED) for token in look.model.tokenizer.named(likely)]
    names = [
        f"{rank}. {label} (probability {probability(shares[id_], error, 3)})"
        for rank, (label, id_) in enumerate(zip(labels, likely, strict=True), 1)
    ]
    place = one_listed("Next token", names, "all-heads-token")
    return Logit(position, likely[place], plain(labels[place]), float(logits[likely[place]]))


def _part_name(look: Look, part: StreamPart) -> str:
    """A part in words: "L1H3", "bias of attention 1", "feed-forward 0"."""
    if part.kind == "head":
        return name_of(look, (part.name, part.head or 0))
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


OWN, IDENTITY = "The model's", "The identity"
FITTING = 24  # tokens of a sentence that is drawn whole
WHOLE = "The whole sentence"


def through_output(look: Look) -> Panel:
    """All heads of a layer put together: their outputs side by side, times W_O, and what the layer writes. Of
    one token, or of the whole sentence where it fits."""
    queries, _ = look.labels
    names = numbered_labels(queries, LISTED)
    names += [WHOLE] if len(queries) <= FITTING else []
    token = one_listed(
        "Token",
        names,
        f"all-heads-merged-{len(names)}",
        first=min(current().query, len(queries) - 1),
    )
    matrix = one_of("W_O", (OWN, IDENTITY), "all-heads-w-o")
    whole = token == len(queries)
    rows = slice(None) if whole else slice(token, token + 1)
    own = together = merged(look.model, look.trace, look.place, rows)
    notes: list[Part] = []
    if matrix == IDENTITY:
        try:
            together = own.by_identity()
        except ValueError as refusal:
            notes.append(partial(st.info, str(refusal)))
    groups = look.attention.vectors[1].shape[0]
    if whole:
        figure = merging_of_tokens(together.outputs, together.total, tokens=queries, groups=groups)
        columns = dict(zip(names, together.total, strict=False))
    else:
        bias = {"+ bias": together.bias} if together.bias.any() else {}
        sums = bias | {"= sum": together.total[0], "recorded": together.recorded[0]}
        figure = merging(
            together.outputs[:, 0],
            together.written[:, 0],
            sums,
            groups=groups,
            chosen=look.head,
        )
        columns = {f"head {head}": written[0] for head, written in enumerate(together.written)}
        columns |= {"bias": together.bias, "sum": together.total[0], "recorded": own.recorded[0]}
    return Panel(
        "all-heads-merged",
        look_for=_look(look, together, by_identity=together is not own, whole=whole),
        picture=figure,
        chosen=f"{look.place}-{look.head}",
        beside=[
            *notes,
            Caption(
                "What if W_O changed nothing? As the identity it leaves the numbers of each head in their "
                "places."
            ),
            Formula(concatenation(look.model.config)),
            Caption(_shapes(look, own, groups)),
        ],
        check=Check(
            "Check: the heads' outputs side by side, times "
            f"W_O{', plus its bias' if own.bias.any() else ''}, differ from what this sub-layer "
            f"added to the stream by at most {difference(own.check)}.",
            own.check,
        ),
        code=_code(look, own, 0 if whole else token),
        table=Table(columns, index="dimension"),
    )


def _look(look: Look, together: Merged, *, by_identity: bool, whole: bool) -> str:
    heads, _, width = together.outputs.shape
    names = [name_of(look, (look.place, head)) for head in range(heads)]
    lengths = np.linalg.norm(together.written, axis=-1).mean(-1).astype(np.float64)
    longest, _ = led_by(names, lengths, decimals=2)
    framed = "" if whole else f" The frame is around the chosen head, {names[look.head]}."
    if by_identity:
        apart = np.linalg.norm(together.total - together.recorded, axis=-1).mean()
        return (
            f"As if W_O were the identity, each head would write to its own {width} numbers only, and the "
            f"sum would be the outputs side by side. It lies {apart:.2f} from what the layer really wrote, "
            f"whose length is {np.linalg.norm(together.recorded, axis=-1).mean():.2f}."
        )
    return (
        f"Side by side each of the {heads} heads has {width} places of its own. Through W_O every head "
        f"writes to all {len(together.bias)} numbers of the stream, and their sum is what the layer writes. "
        f"The longest vector here comes from {longest}: length {lengths.max():.2f}.{framed}"
    )


def _shapes(look: Look, together: Merged, groups: int) -> str:
    heads, _, width = together.outputs.shape
    words = (
        f"W_V of a head turns {look.model.config.d_model} numbers into {width}, so no identity can take its "
        f"place. W_O has {heads * width} rows, {width} for each head."
    )
    if groups < heads:
        words += (
            f" The {heads} heads share {groups} heads of keys and values: heads of one colour mix the same "
            "values, each with its own weights and its own rows of W_O."
        )
    return words


def _code(look: Look, together: Merged, token: int) -> Code:
    attention, has_bias = look.attention, bool(together.bias.any())
    heads, queries, width = attention.output.shape
    is_saved = saves(look.model, f"{within_weights(attention)}output.weight")
    return Code(
        layers.concatenation(attention, len(together.bias), bias=has_bias),
        given={
            "output": f"({heads}, {queries}, {width}): of each head",
            "w": "(the layer's weights by name)",
        },
        cell={"query": token, "dimension": 0},
        value=float(together.total[0, 0]),
        reads=(*output_reads(attention), map_reads(look.model, attention)) if is_saved else None,
    )
