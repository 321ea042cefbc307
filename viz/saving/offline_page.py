"""The picture of one head as files: its matrices, CSV, and a page that opens without a network. Pure.

Token text is data in every file: escaped in HTML, in JSON that no `</script>` can end, and sheltered in
CSV from spreadsheets that would take it for a formula.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from model.trace.arrays import Array, read_only
from model.trace.matrix_csv import matrix_csv
from model.trace.records import Attention
from viz.explorer.message import stages_of
from viz.explorer.stages import Axis as AxisName
from viz.explorer.stages import Stage
from viz.figures.heatmap import Axis, heatmap
from viz.notation.formulas import StageName
from viz.notation.labels import token_label
from viz.notation.theme import printed

UNCHANGED, BASELINE, CHANGED, DIFFERENCE = "unchanged", "baseline", "changed", "difference"
CAPTIONS = {
    BASELINE: "baseline: unchanged run",
    CHANGED: "changed run",
    DIFFERENCE: "changed − baseline",
}
_TEMPLATE = Path(__file__).with_name("offline_page.html")
_LABEL = 18  # characters beside a picture
_HIDING: tuple[StageName, ...] = ("masked", "weights")  # stages whose masked cells are no numbers


@dataclass(frozen=True, eq=False)
class HeadPicture:
    """One stage of one head, alone or beside the unchanged run. Cells not allowed are NaN."""

    stage: Stage
    name: str  # L1H3
    has_mask: bool  # whether a masked stage comes before the weights
    runs: Mapping[str, Array]  # (row, column) each
    limits: Mapping[str, float]  # end of each run's colours, the same for all heads of the layer
    rows: tuple[str, ...]  # labels, each with its position: "3 ·cat"
    columns: tuple[str, ...]

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
) -> HeadPicture:
    """What the explorer draws, in numbers: one run, or baseline, changed and difference.

    queries, keys: the texts of the tokens. Scores and vectors have one scale for all heads of both
    runs, differences one for all heads.
    """
    known = {each.name: each for each in stages_of(attention, baseline)}
    stage = stage if stage in known else "weights"
    words = known[stage]
    labels = {"query": _labels(queries), "key": _labels(keys)}
    shown = stage_matrix(attention, head, stage)
    runs = {UNCHANGED: shown}
    if baseline is not None:
        before = stage_matrix(baseline, head, stage)
        apart = difference_matrix(attention, baseline, head, stage)
        runs = {BASELINE: before, CHANGED: shown, DIFFERENCE: apart}
    dimensions = tuple(str(number) for number in range(shown.shape[1]))

    def names(axis: AxisName) -> tuple[str, ...]:
        return dimensions if axis == "dimension" else labels[axis]

    return HeadPicture(
        stage=words,
        name=f"L{attention.layer}H{head}",
        has_mask="masked" in known,
        runs=runs,
        limits=_limits(attention, baseline, stage),
        rows=names(words.rows),
        columns=names(words.columns),
    )


def stage_matrix(attention: Attention, head: int, stage: StageName) -> Array:
    """(row, column): one stage of one head, NaN where the mask leaves no number."""
    values = _values(attention, head, stage)
    hidden = _hidden(attention, head, stage)
    return values if hidden is None else read_only(np.where(hidden, np.float32("nan"), values))


def difference_matrix(
    attention: Attention, baseline: Attention, head: int, stage: StageName
) -> Array:
    """(row, column): changed - baseline. A weight that only one run allows counts as 0 in the other;
    a masked score that only one of them has leaves no difference."""
    hidden = [_hidden(run, head, stage) for run in (baseline, attention)]
    filled = [
        _values(run, head, stage) if mask is None else np.where(mask, 0, _values(run, head, stage))
        for run, mask in zip((baseline, attention), hidden, strict=True)
    ]
    apart = filled[1] - filled[0]
    masks = [np.zeros(apart.shape, bool) if mask is None else mask for mask in hidden]
    either, both = masks[0] | masks[1], masks[0] & masks[1]
    gone = either if stage == "masked" else both
    return read_only(np.where(gone, np.float32("nan"), apart))


def _values(attention: Attention, head: int, stage: StageName) -> Array:
    match stage:
        case "query" | "key" | "value" | "output":
            vectors: Array = getattr(attention, stage)[head]
            return vectors
        case "scores" | "scaled" | "masked" | "weights":
            matrix: Array = getattr(attention, stage)(head)
            return matrix


def _hidden(attention: Attention, head: int, stage: StageName) -> np.ndarray | None:
    """(query, key): True where the mask leaves no number to show."""
    mask = attention.mask
    if mask is None or stage not in _HIDING:
        return None
    if stage == "weights" and np.isfinite(attention.fill):
        return None  # a finite fill leaves a weight
    return ~(mask if mask.ndim == 2 else mask[head])


def _limits(attention: Attention, baseline: Attention | None, stage: StageName) -> dict[str, float]:
    heads = range(attention.heads)
    both = [attention] if baseline is None else [baseline, attention]
    largest = max(_extent(stage_matrix(run, head, stage)) for run in both for head in heads)
    limits = {UNCHANGED: largest, BASELINE: largest, CHANGED: largest}
    if baseline is not None:
        limits[DIFFERENCE] = max(
            _extent(difference_matrix(attention, baseline, head, stage)) for head in heads
        )
    return limits


def _extent(values: Array) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0))


def _labels(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{at} {token_label(text)}" for at, text in enumerate(tokens))


def picture_csv(picture: HeadPicture) -> str:
    """The numbers of a picture; read again they are exactly the same float32."""
    corner = f"{picture.stage.rows} \\ {picture.stage.columns}"
    return matrix_csv(picture.runs, rows=picture.rows, columns=picture.columns, corner=corner)


def picture_figures(picture: HeadPicture) -> dict[str, go.Figure]:
    """One heatmap a run, by its caption."""
    return {
        _caption(picture, run): heatmap(
            values,
            rows=_axis(picture.stage.rows, picture.rows),
            columns=_axis(picture.stage.columns, picture.columns),
            quantity="difference" if run == DIFFERENCE else picture.stage.quantity,
            blocked=np.isnan(values),
            limit=picture.limits[run] or 1.0,
        )
        for run, values in picture.runs.items()
    }


def _axis(name: str, labels: Sequence[str]) -> Axis:
    short = [label if len(label) <= _LABEL else label[: _LABEL - 1] + "…" for label in labels]
    return Axis(name, short, tokens=False)


def _caption(picture: HeadPicture, run: str) -> str:
    return CAPTIONS[run] if len(picture.runs) > 1 else picture.title


def standalone(title: str, body: str, figures: Mapping[str, go.Figure]) -> bytes:
    """A page in one file: text, then pictures, each with buttons for PNG and SVG.

    title and the figures' captions are plain text; body is HTML whose text is escaped already. The
    page asks for nothing: Plotly stands in it, and its own policy forbids every request.
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
        "plotly": get_plotlyjs(),
        "katex": _katex(),
    }
    page = _TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, after = page.split(f"<!--{name}-->")
        page = before + part + after
    return page.encode("utf-8", "replace")


def _data(figure: go.Figure) -> str:
    """A figure as JSON that cannot end the script it stands in."""
    on_white = go.Figure(figure).update_layout(template="plotly_white")
    data = printed(to_json(on_white, validate=False, pretty=False))
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@lru_cache(maxsize=1)
def _katex() -> str:
    """KaTeX's script, which writes MathML; nothing where the file is missing."""
    file = Path(__file__).parents[2] / "static" / "katex" / "katex.min.js"
    return file.read_text(encoding="utf-8") if file.exists() else ""
