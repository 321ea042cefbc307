"""The outputs of all heads side by side, and what they become through W_O: one colour a head."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import BARE, LABEL, MONOSPACED, chart, titled
from viz.figures.head_marks import hue_of
from viz.figures.token_rows import ColourEnd, colour_end, frame_row
from viz.notation.labels import dimension_ticks, plotly_words, token_label
from viz.notation.theme import QUANTITIES, vector_scale

Vectors = NDArray[np.floating]
_TICKS = 6  # numbers along the dimensions
_FEW, _MANY = 22, 15  # pixels of a row, where rows are few and where they are many
_BESIDE = 112  # pixels of the lengths
_THICK = 2  # rows of the picture that one token's outputs take


def merging(
    outputs: Vectors,
    written: Vectors,
    sums: dict[str, Vectors],
    *,
    groups: int,
    chosen: int,
) -> go.Figure:
    """One token: the outputs (head, d_v) side by side; below them what each head writes (head, d_model);
    then sums by their names, (d_model,) each.

    The length of each vector stands at its right, that of the longest head in bold.

    groups: heads of keys and values. chosen: the head that is framed.
    """
    heads, width = written.shape
    drawn = {"outputs": outputs, "heads": written, "sums": np.array(list(sums.values()))}
    end = {name: colour_end(values) for name, values in drawn.items()}
    first = _THICK + 1  # the row of the first head
    after = first + heads + 1
    traces = [
        *_strips(outputs[:, None], width, groups, end["outputs"], height=_THICK),
        *(
            _rows(
                row[None], hue_of(head, heads, groups), end["heads"], first + head, f"head {head}"
            )
            for head, row in enumerate(written)
        ),
        *(
            _rows(row[None], QUANTITIES["stream"].hue, end["sums"], after + number, name)
            for number, (name, row) in enumerate(sums.items())
        ),
    ]
    labels = ["side by side", "", "", *(f"head {head}" for head in range(heads)), "", *sums]
    figure = _drawn(traces, labels, width, end.values())
    _write_lengths(
        figure,
        [*written, *sums.values()],
        [*range(first, first + heads), *range(after, after + len(sums))],
        heads,
    )
    frame_row(figure, first + chosen, width)
    return figure


def merging_of_tokens(
    outputs: Vectors, total: Vectors, *, tokens: Sequence[str], groups: int
) -> go.Figure:
    """The whole sentence: the outputs (head, token, d_v) side by side; below them what the sub-layer writes,
    total (token, d_model)."""
    count, width = total.shape
    end = {"outputs": colour_end(outputs), "sums": colour_end(total)}
    traces = [
        *_strips(outputs, width, groups, end["outputs"], height=1),
        _rows(total, QUANTITIES["stream"].hue, end["sums"], count + 1, "sum"),
    ]
    names = [token_label(token, LABEL) for token in tokens]
    return _drawn(traces, [*names, "", *names], width, end.values())


def _write_lengths(
    figure: go.Figure, rows: Sequence[Vectors], places: Sequence[int], heads: int
) -> None:
    """The length of each row at its right; the longest of the heads, which come first, is marked."""
    lengths = [float(np.linalg.norm(row)) for row in rows]
    longest = max(lengths[:heads])
    words = [f"{length:.2f}" for length in lengths]
    words = [
        f"<b>{word} longest</b>" if at < heads and length == longest else word
        for at, (word, length) in enumerate(zip(words, lengths, strict=True))
    ]
    for word, place in [("length", min(places) - 1), *zip(words, places, strict=True)]:
        figure.add_annotation(
            text=word, x=1, xref="paper", xanchor="left", y=place, showarrow=False, font=MONOSPACED
        )
    figure.update_layout(margin={"r": _BESIDE})


def _strips(
    outputs: Vectors, width: int, groups: int, end: ColourEnd, *, height: int
) -> Iterator[go.Heatmap]:
    """Each head's outputs (token, d_v), side by side over so many columns, from the first row down."""
    heads, _, own = outputs.shape
    share = width / (heads * own)  # 1, unless heads are wider or narrower than the stream together
    for head, rows in enumerate(outputs):
        start = (head * own + 0.5) * share - 0.5
        strip = _rows(rows, hue_of(head, heads, groups), end, 0, f"output of head {head}")
        yield strip.update(x0=start, dx=share, y0=(height - 1) / 2, dy=height)


def _rows(rows: Vectors, hue: str, end: ColourEnd, at: int, name: str) -> go.Heatmap:
    """Rows of a vector's numbers, the first one at a row of the picture."""
    return go.Heatmap(
        z=rows.astype(np.float32),
        y0=at,
        dy=1,
        zmin=-end.value,
        zmax=end.value,
        colorscale=vector_scale(hue),
        showscale=False,
        hovertemplate=f"{name}<br>%{{z:.4f}}<br>{end.short}<extra></extra>",
    )


def _drawn(
    traces: Sequence[go.Heatmap],
    labels: Sequence[str],
    width: int,
    ends: Iterable[ColourEnd],
) -> go.Figure:
    """labels: one a row, "" for a gap. ends: of all colours."""
    ticks = dimension_ticks(width, _TICKS)
    said = f"dimension (each block has its own scale){ColourEnd.several(ends)}"
    across = titled(said, range=[-0.5, width - 0.5], **_ticks(ticks, ticks)) | BARE
    places = [place for place, label in enumerate(labels) if label]
    down = _ticks(places, [plotly_words(labels[place]) for place in places]) | BARE
    row = _FEW if len(labels) <= _FEW else _MANY
    height = row * len(labels) + 74
    return chart(list(traces), across, down | {"range": [len(labels) - 0.5, -0.5]}, height=height)


def _ticks(places: Sequence[int], words: Sequence[object]) -> dict[str, object]:
    return {
        "tickvals": places,
        "ticktext": list(map(str, words)),
        "tickfont": MONOSPACED,
        "tickangle": 0,
    }
