"""The picture of one head as files: its matrices, CSV, a page that opens without a network, a report. Pure.

Token text is data in every file: escaped in HTML, in JSON that no `</script>` can end, and in CSV where a
spreadsheet would take it for a formula.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from model.analysis.run_comparison import (
    divergence_rounding,
    divergences,
    largest_difference,
    losses,
    rounding,
    row_statistics,
)
from model.snippets import LaterStage
from model.trace.arrays import Array, BoolArray, matrix_csv, read_only
from model.trace.blocks import (
    CellBlock,
    block_of,
    by_queries,
    in_blocks,
    largest_of_blocks,
    rows_together,
)
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.explorer.around import AroundStage, between, offered, parts_of
from viz.explorer.message import formulas_of, later_of, stages_of
from viz.explorer.stages import Stage
from viz.explorer.stages import StageAxis as AxisName
from viz.figures.chart import on_white
from viz.figures.heatmap import Axis, heatmap
from viz.notation.formulas import StageName, StepFormula
from viz.notation.labels import numbered_labels, token_label
from viz.notation.numbers import difference, nats
from viz.notation.theme import BLACK, QUANTITIES
from viz.notation.words import sentences_of
from viz.state.intervention_words import COUNTERFACTUAL, parts

if TYPE_CHECKING:
    from model.analysis.stream.around_heads import AroundHeads
    from model.run.model import Model

say = sentences_of("saving.offline_page")

UNCHANGED, BASELINE, CHANGED, DIFFERENCE = "unchanged", "baseline", "changed", "difference"
BEFORE, AFTER = "before", "after"
CAPTIONS = {
    BASELINE: "baseline: unchanged run",
    CHANGED: "changed run",
    DIFFERENCE: "changed − baseline",
}
_TEMPLATE = Path(__file__).with_name("offline_page.html")
_LABEL = 18  # characters beside a picture
_INK = re.compile(r"@ink:(\w+)@")


@dataclass(frozen=True, eq=False)
class HeadPicture:
    """One stage of one head, alone or beside the unchanged run. Cells not allowed are NaN."""

    stage: Stage
    name: str  # L1H3
    later: tuple[LaterStage, ...]  # the stages between the scaled scores and the weights
    runs: Mapping[str, Array]  # (row, column) each
    limits: Mapping[str, float]  # end of each run's colours, the same for all heads of the layer
    rows: tuple[str, ...]  # labels, each with its position: "3 ·cat"
    columns: tuple[str, ...]
    formula: StepFormula | None = None  # of a stage around the heads
    block: CellBlock = (1, 1)  # rows and columns of each number, the largest of them, where many

    @property
    def captions(self) -> Mapping[str, str]:
        """What stands above each run's picture."""
        if self.stage.captions and BEFORE in self.runs:
            return dict(zip((BEFORE, AFTER), self.stage.captions, strict=True))
        return CAPTIONS if len(self.runs) > 1 else {UNCHANGED: self.title}

    @property
    def title(self) -> str:
        return self.stage.title.format(head=self.name)


def head_picture(
    attention: Attention,
    baseline: Attention | None,
    *,
    head: int,
    stage: StageName,
    queries: Sequence[str],
    keys: Sequence[str],
    around: Sequence["AroundHeads"] = (),
) -> HeadPicture:
    """What the explorer draws, in numbers: one run, or baseline, changed and difference.

    queries, keys: the texts of the tokens. Scores and vectors have one scale for all heads of both runs,
    differences one for all heads. around: what stands around the heads, in this run, then in the unchanged.
    """
    groups, *unchanged = offered(around, runs=1 if baseline is None else 2)
    known = {each.name: each for each in between(groups, stages_of(attention, baseline))}
    stage = stage if stage in known else "weights"
    if known[stage].group:
        both = [parts_of(run)[stage] for run in (groups, *unchanged)]
        return _around_heads(both, attention, head, queries)
    sink = known[stage].sink
    pairs = known[stage].columns == "key"
    block = block_of(len(queries), len(keys) + sink) if pairs else (1, 1)

    def by_run(one: int) -> dict[str, Array]:
        """The numbers of a head in each run."""

        def drawn(layer: Attention) -> Array:
            return in_blocks(layer, block, lambda part: stage_matrix(part, one, stage, sink=sink))

        if baseline is None:
            return {UNCHANGED: drawn(attention)}
        pieces = [(attention, baseline)]
        if block != (1, 1):
            rows = rows_together(block)
            pieces = list(zip(by_queries(attention, rows), by_queries(baseline, rows), strict=True))
        apart = [
            largest_of_blocks(difference_matrix(ours, theirs, one, stage, sink=sink), block)
            for ours, theirs in pieces
        ]
        changed = drawn(attention)
        return {BASELINE: drawn(baseline), CHANGED: changed, DIFFERENCE: np.concatenate(apart)}

    runs, largest = by_run(head), dict[str, float]()
    for one in range(attention.heads):
        for name, values in (runs if one == head else by_run(one)).items():
            largest[name] = max(largest.get(name, 0.0), _extent(values))
    labels: dict[AxisName, tuple[str, ...]] = {
        "query": tuple(numbered_labels(queries)),
        "key": (*numbered_labels(keys), *(["sink"] if sink else [])),
        "dimension": tuple(map(str, range(next(iter(runs.values())).shape[1]))),
    }
    return HeadPicture(
        stage=known[stage],
        name=attention.place.head(head),
        later=later_of(list(known.values())),
        runs=runs,
        limits=_limits(largest),
        rows=labels[known[stage].rows],
        columns=labels[known[stage].columns],
        block=block,
    )


def picture_of_runs(
    model: "Model", runs: Sequence[Trace], *, place: str, head: int, stage: StageName
) -> HeadPicture:
    """`head_picture` of a layer of a run and, where there is a second one, of the unchanged run."""
    from model.analysis.stream.around_heads import AroundHeads  # imports torch, as pages do late

    layers = [run.find(place) for run in runs]
    trace, attention = runs[0], layers[0]
    return head_picture(
        attention,
        layers[1] if len(layers) > 1 else None,
        head=head,
        stage=stage,
        queries=[token.text for token in trace.queries_of(attention)],
        keys=[token.text for token in trace.keys_of(attention)],
        around=[AroundHeads(model, run, layer) for run, layer in zip(runs, layers, strict=True)],
    )


def _around_heads(
    parts: Sequence[AroundStage], attention: Attention, head: int, queries: Sequence[str]
) -> HeadPicture:
    """A stage around the heads: before and after its step, or baseline, changed and difference. parts: of the
    run and, where it is compared, of the unchanged one."""
    part, *unchanged = parts
    shown = part.after(head)
    runs = {UNCHANGED: shown}
    if unchanged:
        old = unchanged[0].after(head)
        runs = {BASELINE: old, CHANGED: shown, DIFFERENCE: read_only(shown - old)}
    elif part.before is not None:
        runs = {BEFORE: part.before(head), AFTER: shown}
    return HeadPicture(
        stage=part.stage,
        name=attention.place.head(head),
        later=(),
        runs=runs,
        limits=_limits({name: _extent(values) for name, values in runs.items()}),
        rows=tuple(numbered_labels(queries)),
        columns=tuple(map(str, range(shown.shape[1]))),
        formula=part.formula,
    )


def _limits(largest: dict[str, float]) -> dict[str, float]:
    """Where the colours of each run end: those of the baseline and of the changed run at one number."""
    both = max(largest.get(run, 0.0) for run in (BASELINE, CHANGED))
    return {run: both if run in (BASELINE, CHANGED) else end for run, end in largest.items()}


def stage_matrix(attention: Attention, head: int, stage: StageName, *, sink: bool = False) -> Array:
    """(row, column): one stage of one head, NaN where the mask leaves no number. sink: with the sink's
    weights in one more column."""
    values, hidden = _stage(attention, head, stage, sink)
    return read_only(np.where(hidden, np.float32("nan"), values))


def difference_matrix(
    attention: Attention, baseline: Attention, head: int, stage: StageName, *, sink: bool = False
) -> Array:
    """(row, column): changed - baseline. A weight that only one run allows counts as 0 in the other;
    a masked score that only one of them has leaves no difference."""
    before, one = _stage(baseline, head, stage, sink)
    after, other = _stage(attention, head, stage, sink)
    apart = np.where(other, np.float32(0), after) - np.where(one, np.float32(0), before)
    gone = one | other if stage == "masked" else one & other
    return read_only(np.where(gone, np.float32("nan"), apart))


def _stage(
    attention: Attention, head: int, stage: StageName, sink: bool
) -> tuple[Array, BoolArray]:
    """(row, column): the numbers of one stage, and where the mask leaves none to show."""
    found = getattr(attention, stage)
    values: Array = found(head) if callable(found) else found[head]
    mask = attention.mask_of(head)
    if sink:
        values = np.column_stack([values, attention.sink_weights(head)])
        mask = None if mask is None else np.column_stack([mask, np.ones(len(mask), bool)])
    leaks = stage == "weights" and np.isfinite(
        attention.mask_value
    )  # a finite mask value leaves a weight
    if mask is None or leaks or stage not in ("masked", "weights"):
        return values, np.zeros(values.shape, bool)
    return values, ~mask


def _extent(values: Array) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0))


def picture_csv(picture: HeadPicture) -> str:
    """The numbers of a picture; read again they are exactly the same float32. Raises ValueError where they
    are drawn in blocks."""
    corner = f"{picture.stage.rows} \\ {picture.stage.columns}"
    return matrix_csv(picture.runs, rows=picture.rows, columns=picture.columns, corner=corner)


def picture_figures(picture: HeadPicture) -> dict[str, go.Figure]:
    """One heatmap for each run, by its caption."""
    return {
        picture.captions[run]: heatmap(
            values,
            rows=_axis(picture.stage.rows, picture.rows),
            columns=_axis(picture.stage.columns, picture.columns),
            quantity="difference" if run == DIFFERENCE else picture.stage.quantity,
            blocked=np.isnan(values),
            limit=picture.limits[run] or 1.0,
            block=picture.block,
            square=picture.stage.rows == "query" and picture.stage.columns == "key",
        )
        for run, values in picture.runs.items()
    }


def _axis(name: str, labels: Sequence[str]) -> Axis:
    short = [label if len(label) <= _LABEL else label[: _LABEL - 1] + "…" for label in labels]
    return Axis(name, short, tokens=False)


def standalone(title: str, body: str, figures: Mapping[str, go.Figure]) -> bytes:
    """A page in one file: text, then pictures, each with buttons for PNG and SVG.

    title and the figures' captions are plain text; body is HTML whose text is escaped already. The
    page asks for nothing: Plotly stands in it where there are pictures, and its own policy forbids every
    request.
    """
    drawn = "".join(
        f'<figure><figcaption>{html.escape(caption)}</figcaption><div class="picture"></div>'
        f'<script type="application/json">{_data(figure)}</script></figure>'
        for caption, figure in figures.items()
    )
    parts = {
        "title": html.escape(title),
        "body": body,
        "figures": drawn,
        "plotly": get_plotlyjs() if figures else "",
        "katex": _katex(),
    }
    page = _TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, after = page.split(f"<!--{name}-->")
        page = before + part + after
    return page.encode("utf-8", "replace")


def _data(figure: go.Figure) -> str:
    """A figure as JSON that cannot end the script it stands in."""
    data = to_json(on_white(figure), validate=False, pretty=False)
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@lru_cache(maxsize=1)
def _katex() -> str:
    """KaTeX's script, which writes MathML; nothing where the file is missing."""
    file = Path(__file__).parents[2] / "static" / "katex" / "katex.min.js"
    return file.read_text(encoding="utf-8") if file.exists() else ""


@dataclass(frozen=True, eq=False)
class ReportSubject:
    """What a report is about: a run, the unchanged run where it is changed, a place, a link."""

    title: str  # the model's
    trace: Trace
    baseline: Trace | None
    attention: Attention
    link: str
    look_for: str = ""


def report(subject: ReportSubject, picture: HeadPicture) -> bytes:
    said = html.escape(subject.look_for)
    own, whole = (difference(part.check()) for part in (subject.attention, subject.trace))
    body = [
        f"<p><strong>What to look for.</strong> {said}</p>" if said else "",
        _settings(subject),
        _formula(subject.attention, picture),
        _effect(subject),
        f"<p>Check: weights · V of {html.escape(subject.attention.name)}, recomputed from the recorded "
        f"Q, K and V, differ from the model's own output by at most {own}; over the whole run, norms "
        f"too, the largest difference is {whole}. Row = query, column = key; a row of weights sums to "
        "1; grey cells are masked.</p>",
    ]
    return standalone(picture.title, "".join(body), picture_figures(picture))


def _settings(subject: ReportSubject) -> str:
    trace = subject.trace
    labels = tuple(token_label(token.text) for token in trace.tokens)
    changed = [part.words for part in parts(trace.intervention, labels)]
    rows = {
        "Model": html.escape(subject.title),
        "Sentence": html.escape(trace.text),
        "Tokens": _tokens(labels),
        "Target": _tokens([token_label(token.text) for token in trace.target_tokens]),
        "Layer": html.escape(f"{subject.attention.name}, {subject.attention.heads} heads"),
        "Scores times": f"{subject.attention.scale:.6g}",
        "Ran on": html.escape(trace.device),
        "Changed": html.escape("; ".join(changed) or "nothing"),
        "Link": f"<code>{html.escape(subject.link)}</code>",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    return f"<dl>{listed}</dl>{f'<p>{COUNTERFACTUAL}</p>' if changed else ''}"


def _tokens(labels: Sequence[str]) -> str:
    return " ".join(f'<span class="token">{html.escape(label)}</span>' for label in labels)


def _formula(attention: Attention, picture: HeadPicture) -> str:
    formula = picture.formula
    if formula is None:
        formula = formulas_of(attention, picture.later)[picture.stage.name]
    inks: dict[str, str] = {name: quantity.ink[0] for name, quantity in QUANTITIES.items()}
    inked = _INK.sub(lambda found: inks.get(found[1], BLACK), formula.general)
    return (
        f'<div class="formula" data-latex="{html.escape(inked)}">{html.escape(formula.plain)}</div>'
        f"<p>{html.escape(picture.stage.look)}</p>"
    )


def _effect(subject: ReportSubject) -> str:
    """What the intervention did, in a table; nothing without an intervention."""
    before, after = subject.baseline, subject.trace
    if before is None:
        return ""
    layers = (before.find(subject.attention.name), subject.attention)
    found = [row_statistics(layer) for layer in layers]
    rows = {
        say("entropy_row_nats"): [f"{run.entropy.mean():.4f}" for run in found],
        say("largest_weight_row"): [f"{run.largest.mean():.4f}" for run in found],
    }
    said = say("largest_difference_any", largest_difference=largest_difference(before, after))
    if before.prediction is not None and after.prediction is not None:
        error = max(rounding(before), rounding(after))
        if len(losses(before)):
            rows[say("loss_sentence_nats")] = [
                nats(losses(run).mean(), error) for run in (before, after)
            ]
        apart = float(divergences(before, after)[-1])
        moved = nats(apart, divergence_rounding(apart, 2 * error))
        said += say("kl_divergence_next", moved=moved)
    lines = "".join(
        f"<tr><td>{name}</td><td>{old}</td><td>{new}</td></tr>" for name, (old, new) in rows.items()
    )
    head = "<tr><th></th><th>unchanged</th><th>changed</th></tr>"
    return f"<table>{head}{lines}</table><p>{said}</p>"
