"""Every picture says in words what it draws, and the numbers it says are those that are drawn."""

import re

import numpy as np
import plotly.graph_objects as go

from viz.figures.alignment import alignment
from viz.figures.heatmap import Axis, heatmap
from viz.figures.in_words import in_words


def weights_of(values: np.ndarray, tokens: list[str], **more: object) -> go.Figure:
    axes = {"rows": Axis("query", tokens), "columns": Axis("key", tokens)}
    return heatmap(values, **axes, quantity="weight", square=True, **more)  # type: ignore[arg-type]


def test_a_heatmap_tells_where_its_largest_number_stands() -> None:
    values = np.array([[0.25, 0.0], [0.1, 0.75]])
    blocked = np.array([[False, True], [False, False]])
    words = ["the", "<b>&"]
    said = in_words(weights_of(values, words, blocked=blocked))
    assert "2 × 2 cells: rows query, columns key" in said
    assert "Largest 0.75 at query <b>&, key <b>&; smallest 0.1." in said
    assert "1 cell is masked" in said


def test_bars_tell_the_largest_and_whose_it_is() -> None:
    trace = go.Bar(x=[1.0, 3.0, None], y=[0, 1, 2], orientation="h")
    figure = go.Figure(trace)
    figure.update_xaxes(title={"text": "probability<br>colours end somewhere"})
    figure.update_yaxes(tickvals=[0, 1, 2], ticktext=["a", "&lt;b&gt;", "c"])
    assert in_words(figure) == "Bars. probability: 2 bars, the largest is 3 at <b>."


def test_lines_tell_where_they_start_and_end_and_how_far_they_go() -> None:
    figure = go.Figure(go.Scatter(y=[1.0, 5.0, 2.0, float("nan")], name="loss"))
    figure.update_layout(xaxis={"title": {"text": "step"}}, yaxis={"title": {"text": "nats"}})
    said = in_words(figure)
    assert said == "Lines, nats over step. loss: 3 points from 1 to 2, between 1 and 5."


def test_an_alignment_tells_what_each_word_reads_most() -> None:
    weights = np.array([[0.9, 0.1], [0.2, 0.8]])
    said = in_words(alignment(weights, source=["black", "cat"], target=["chat", "noir"]))
    assert "chat attends to black (0.90); noir attends to cat (0.80)" in said


def test_a_picture_without_a_number_is_still_a_sentence() -> None:
    empty = weights_of(np.full((1, 1), np.nan), ["a"])
    for figure in (go.Figure(), go.Figure(go.Bar()), empty):
        assert re.fullmatch(r".+\.", in_words(figure))
        assert "nan" not in in_words(figure)
