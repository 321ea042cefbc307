"""The map of patches, its words, and how good the estimate of it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.analysis.attribution.growing_map import Kind, PatchMap
from model.analysis.attribution.patch_estimates import agreement
from model.analysis.attribution.patching import Spot
from model.nn.patches import PatchPart
from model.nn.places import Place, head_label, layer_label
from model.trace.arrays import Wide
from model.trace.records import Token
from model.trace.trace import Trace
from viz.elements.one_of import one_of
from viz.elements.plot import plot
from viz.figures.head_tiles import patch_map_figure
from viz.figures.heatmap import Axis
from viz.notation.labels import plotly_words, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import signed
from viz.saving.save import save_figure
from viz.shell.pictures import look_for, table
from viz.state.session import current
from viz.views.laboratory.patch_runs import Asked

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
