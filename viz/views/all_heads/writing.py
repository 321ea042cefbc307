"""What heads write to the stream: its length, and what it adds to a logit."""

from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

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
from model.nn.places import Place
from model.serving.engine import Request
from model.trace.trace import Logits
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed
from viz.figures.bars import part_bars
from viz.notation.head_formulas import concatenation, logit
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import ADDED_BY
from viz.notation.numbers import led_by, probability, sign_of_sum, signed
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.model_picker import say_encoder
from viz.shell.panel import Check, Formula, Panel, Part, Table
from viz.state.look import Look, loaded, traced
from viz.views.all_heads.choice import choose_family, head_names, name_of, of_heads, table_of

say = sentences_of("all_heads.writing")

LENGTH, EFFECT, PARTS = "Length", "Effect on a logit", say("parts_logit")
OFFERED = 8  # likeliest next tokens
BARS = 16  # single parts that are drawn
TITLE = say("adds_logit")


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
    """The length of what each head adds, its effect on one logit, or everything that adds up to that."""
    family, prediction = choose_family(look), look.trace.prediction
    if prediction is None:
        no_logit = say("predicts_next_token")
        return _map_of_lengths(look, family, [partial(say_encoder, look, no_logit)])
    measures = (LENGTH, EFFECT, PARTS)
    shown = measures[one_listed("Measure", measures, "all-heads-writes-as")]
    if shown == LENGTH:
        return _map_of_lengths(look, family, [])
    return _effects(look, family, _which_logit(look, prediction), every_part=shown == PARTS)


def _map_of_lengths(look: Look, family: Family, more: list[Part]) -> Panel:
    """The mean length of what each head writes. more: below the picture."""
    lengths, apart = _lengths(look.request, family)
    means, heads = lengths.mean(1).astype(np.float64), family.heads(look.trace)
    names = head_names(look, heads)
    longest, _ = led_by(names, means, decimals=2)
    shortest, _ = led_by(names, -means, decimals=2)
    config = look.model.config
    panel = Panel(
        "all-heads-lengths",
        look_for=say(
            "longest_vectors_come",
            longest=longest,
            most_means=means.max(),
            shortest=shortest,
            least_means=means.min(),
        ),
        alt=say("mean_length_head"),
        below=[Formula(concatenation(config)), *more],
        check=Check(
            say(
                "check_heads_write",
                choice=say("together_bias") if config.output_bias else "",
                apart=apart,
            ),
            apart,
        ),
        table=Table(table_of(look, heads, {"mean length": means})),
    )
    return of_heads(
        panel,
        look,
        family,
        means,
        quantity="stream",
        title="mean length",
        words="length {:.4f}".format,
    )


def _effects(look: Look, family: Family, of: Logit, *, every_part: bool) -> Panel:
    """What each head, or each part of the stream, adds to the logit."""
    parts, apart = _parts(look.request, of.position, of.token)
    config, names = look.model.config, [_part_name(look, part) for part in parts]
    effects = {(part.name, part.head): part.effect for part in parts if part.kind == "head"}
    heads = [name for name, part in zip(names, parts, strict=True) if part.kind == "head"]
    leading, _ = led_by(heads, np.array(list(effects.values())), decimals=2)
    together, most = sum(effects.values()), _added(max(effects.values()))
    whole, added = signed(f"{of.value:.2f}"), [_added(together), _added(of.value - together)]
    beta = say("norm_separate_part") if config.shifts else ""
    panel = Panel(
        f"all-heads-{'parts' if every_part else 'effect'}",
        look_for=say(
            "logit_heads_together",
            of=of.label,
            whole=whole,
            sign_of_sum=sign_of_sum(added, whole),
            first_added=added[0],
            added=added[1],
            leading=leading,
            most=most,
        ),
        chosen=f"{of.position}-{of.token}-",
        alt="" if every_part else say("head_adds_logit"),
        below=[
            Formula(logit(config)),
            say("stream_sum_norms", taken=config.norm_law.taken, beta=beta),
        ],
        check=Check(
            say("check_sum_parts", taken=config.norm_law.taken, apart=apart),
            apart,
        ),
        table=Table(
            {
                "part": names,
                say("length_written"): [part.length for part in parts],
                TITLE: [part.effect for part in parts],
            }
        ),
    )
    if every_part:
        ranked = sorted(zip(names, parts, strict=True), key=lambda part: -abs(part[1].effect))
        bars = {name: part.effect for name, part in ranked[:BARS]}
        if rest := ranked[BARS:]:
            bars[f"{len(rest)} smaller parts"] = sum(part.effect for _, part in rest)
        return replace(panel, picture=part_bars(list(bars), list(bars.values()), title=TITLE))
    if family.stack != "decoder":
        raise NotShownError(
            "The heads of the encoder reach the logit only through cross-attention, so their "
            "effect is part of what the cross-attention heads write. Choose heads of the decoder."
        )
    return of_heads(
        panel,
        look,
        family,
        np.array([effects[head] for head in family.heads(look.trace)]),
        quantity="difference",
        title=TITLE,
        words=lambda value: f"adds {signed(f'{value:+.4f}')}",
    )


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
        return say("bias_output_matrix")
    place = Place.named(part.name)
    if place.kind == "final":
        return say("final_norm")
    where = "the embedding" if place.layer is None else f"{ADDED_BY[place.kind]} {place.layer}"
    before = {"bias": "bias of ", "norm": say("norm_after")}.get(part.kind, "")
    return f"{before}{where}"
