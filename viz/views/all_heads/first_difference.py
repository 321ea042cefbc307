"""Where two runs part: this one, and a copy with one fault or the file of another program."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from model.exchange import read
from model.nn.places import Place, head_label
from model.system.settings import settings
from model.trace.records import Token
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
from viz.figures.chart import Axis, frame
from viz.figures.heatmap import NARROW, Matrix, headed, heatmap
from viz.notation.markdown import bold_token, plain
from viz.notation.names import ADDED_BY, part_name
from viz.notation.numbers import difference
from viz.notation.theme import INK, QuantityName
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Columns, Panel, Table
from viz.shell.pictures import TABLED, of_all_pairs
from viz.state.engine import engine
from viz.state.look import Look

if TYPE_CHECKING:
    from model.analysis.difference_causes import ComparedStage
    from model.analysis.differences import FirstDifference
    from model.analysis.stage_comparison import StageComparison

say = sentences_of("all_heads.first_difference")

FILE_MEGABYTES = 50
WINDOW = 24  # dimensions of a vector that are drawn, around the one that differs
CELLS: tuple["ComparedStage", ...] = ("scores", "scaled", "capped", "biased", "mask", "weights")
WORDS: Mapping["ComparedStage", str] = {
    "embedding": "token vectors", "query": "queries", "key": "keys", "value": "values",
    "rotary": say('queries_keys_positions'), "scaled": "scaled scores",
    "capped": "capped scores", "biased": say('scores_biases'), "output": "outputs",
    "stream": say('residual_stream_after'), "feed-forward": "neurons",
}  # fmt: skip
QUANTITIES: Mapping["ComparedStage", QuantityName] = {
    "query": "query", "key": "key", "rotary": "query", "value": "value", "scores": "score",
    "scaled": "score", "capped": "score", "biased": "score", "mask": "weight", "weights": "weight",
    "output": "output",
}  # fmt: skip


@of_all_pairs
def first_difference_of(look: Look) -> Panel:
    """The unchanged run and the changed one at the first stage that differs, and their difference, around the
    cell."""
    runs = look.baseline or look.trace, look.trace
    return _compared(*runs, look, ("the unchanged run", "the changed run"))


@of_all_pairs
def difference_from_a_file(look: Look) -> Panel:
    """The same of this run and the file of another program."""
    if not settings().trace_files:
        raise NotShownError("Nothing is changed, and files are not opened here.")
    try:
        other = _file()
        if other is None:
            return Panel("first-difference", picture=partial(st.markdown, HOW))
        return _compared(look.trace, other, look, ("this run", "the file"))
    except ValueError as refusal:
        raise NotShownError(*refusal.args) from refusal


def _compared(trace: Trace, other: Trace, look: Look, names: tuple[str, str]) -> Panel:
    from model.analysis.differences import first_difference  # imports torch: pages are drawn first

    with engine().turn():
        model = look.model if look.model.runs else None
        parting = first_difference(trace, other, model=model)
    return _panel(trace, other, parting, names)


HOW = say("drop_file_see_run")


def _file() -> Trace | None:
    """The run of a file. Raises ValueError, in a sentence, where it holds none of these tokens."""
    file: UploadedFile | None = st.file_uploader(
        say("file_same_text"),
        ["npz", "safetensors"],
        key="first-difference-file",
        max_upload_size=min(FILE_MEGABYTES, settings().trace_megabytes),
    )
    if file is None:
        return None
    return engine().run_in(f"upload:{file.file_id}", partial(read, file))


def _panel(
    trace: Trace, other: Trace, parting: "FirstDifference | None", names: tuple[str, str]
) -> Panel:
    from model.analysis.differences import precision_by_layer  # imports torch

    first, second = names
    table = _table(trace, other)
    panel = Panel("first-difference", below=[Caption(_BOUND)])
    at = None if parting is None else parting.comparison
    lacks = ", ".join(parting.not_compared) if parting is not None else ""
    if parting is None or at is None:
        largest = float(precision_by_layer(trace, other)["share"].max())
        words = (
            say("number_differs_beyond", second=second)
            + (say("among_compared_not", lacks=lacks) if lacks else ", to the end. ")
            + say("largest_difference_largest", largest=largest)
        )
        return replace(panel, table=table, picture=partial(st.markdown, words))
    kind = Place.named(at.place).kind
    place = part_name(at.place) if kind in ADDED_BY else f"the {kind}"
    if at.head is not None:
        place = head_label((at.place, at.head))
    stage, why = parting.stage or at.stage, say("cause_not_known")
    among = say("among_compared") if parting.may_begin_earlier else "The"
    if parting.cause is not None:
        why = f"Cause: **{plain(parting.cause)}**."
    *runs, apart = _pictures(trace, at, names)
    return replace(
        panel,
        look_for=(
            say(
                "runs_part_first",
                among=among,
                get=WORDS.get(stage, stage),
                place=place,
                cell=_cell(trace, at),
                first=at.first,
                first_2=first,
                second=at.second,
                second_2=second,
                rounding=at.rounding,
                why=why,
            )
            + (f" Not compared: {lacks}." if lacks else "")
        ),
        picture=apart,
        table=table,
        below=[
            Columns([Panel(f"first-difference-{n}", picture=run) for n, run in enumerate(runs)]),
            *panel.below,
        ],
    )


_BOUND = say("stages_both_runs")


def _table(trace: Trace, other: Trace) -> Table | None:
    if max(one.sizes[1] for one in trace.attention) > TABLED:
        return None
    from model.analysis.differences import precision_by_layer  # imports torch

    table = precision_by_layer(trace, other)
    written: Callable[[float], str] = difference
    return Table(
        {
            "place": table["place"],
            "stage": table["stage"],
            "largest difference": table["difference"].map(written),
            say("share_largest_number"): table["share"].map(written),
            "differs": np.where(table["beyond"], "beyond rounding", "by rounding"),
        }
    )


def _tokens(trace: Trace, parting: "StageComparison") -> tuple[Sequence[Token], Sequence[Token]]:
    """The tokens of the rows, and of the columns where those are keys."""
    attention = next((one for one in trace.attention if one.name == parting.place), None)
    if attention is None:
        return trace.tokens_of(Place.named(parting.place).stack), ()
    queries, keys = trace.queries_of(attention), trace.keys_of(attention)
    if parting.stage in CELLS:
        return queries, keys
    return (keys if parting.stage in ("key", "value") else queries), ()


def _cell(trace: Trace, parting: "StageComparison") -> str:
    """Where the number stands, in Markdown."""
    rows, keys = _tokens(trace, parting)
    row, column = parting.cell
    if keys:
        return say(
            "query_key",
            text=bold_token(rows[row].text, row),
            bold_token_text=bold_token(keys[column].text, column),
        )
    return f"dimension {column} of token {bold_token(rows[row].text, row)}"


def _pictures(
    trace: Trace, parting: "StageComparison", names: tuple[str, str]
) -> Sequence[go.Figure]:
    """This run, the other one and the difference, on one scale, with a frame around the cell."""
    tokens, keys = _tokens(trace, parting)
    pair = parting.pair
    first, second = (
        each if each.ndim == 2 else each[parting.head] for each in (pair.first, pair.second)
    )
    row, column = parting.cell
    start = 0
    if keys:
        columns = Axis("key", [token.text for token in keys])
    else:
        count = first.shape[1]
        start = max(0, min(column - WINDOW // 2, count - WINDOW))
        first, second = (each[:, start : start + WINDOW] for each in (first, second))
        shown = [str(at) for at in range(start, start + first.shape[1])]
        columns = Axis("dimension", shown, tokens=False)
    rows = Axis("query" if keys else "token", [token.text for token in tokens])
    quantity = QUANTITIES.get(parting.stage, "stream")
    limit = float(max(np.abs(first).max(), np.abs(second).max())) or 1.0
    apart = second.astype(np.float64) - first
    parts: tuple[tuple[Matrix, QuantityName, str, float | None], ...] = (
        (first, quantity, names[0], limit),
        (second, quantity, names[1], limit),
        (apart, "difference", f"{names[1]} − {names[0]}", None),
    )
    words = () if len(columns.labels) > NARROW else None
    figures = []
    for values, colours, title, end in parts:
        figure = heatmap(
            values,
            rows=rows,
            columns=columns,
            quantity=colours,
            limit=end,
            words=words,
            square=bool(keys),
        )
        at = column - start
        frame(figure, (at - 0.5, at + 0.5, row - 0.5, row + 0.5), INK)
        figures.append(headed(figure, title))
    return figures
