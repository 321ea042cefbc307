"""What must hold for whatever is typed: numbers whose identities hold, and text that stays text."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model import Model, Trace
from model.run.tokenizers import GPT2Subset, clean
from model.trace.trace_file import read_trace, trace_file
from tests.csv_reading import read_matrix_csv
from tests.hostile.attacks import FORMULAS, hidden_in
from viz.explorer.message import payload
from viz.explorer.packing import packed
from viz.figures.bars import WrittenStep, next_tokens, written_steps
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import LONGEST, plotly_label, token_label
from viz.notation.markdown import plain
from viz.saving.offline_page import (
    HeadPicture,
    ReportSubject,
    head_picture,
    picture_csv,
    picture_figures,
    report,
)

UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*[!-/:-@\[-`{-~]")
REPLACED = re.compile(
    r":[^\s\u2060]|https?:/|www\.|\w@\w|(?:^|\s)(?:<->|->|<-|--|>=|<=|~=)(?:\s|$)", re.I
)
TAGS = re.compile(r"</?(?:b|i|br|sub|sup|extra)/?>")  # of our own pictures
NEAR = 1e-3


def numbers_hold(model: Model, trace: Trace) -> None:
    """Rows sum to 1, or to 0 where nothing may be looked at; all is finite; the check is small."""
    size = 1.0
    for attention in trace.attention:
        size = max(size, float(np.abs(attention.output).max(initial=0)))
        sums = attention.weights(0).sum(-1)
        assert np.all((np.abs(sums - 1) < NEAR) | (sums == 0)), sums
    for states in trace.residual.values():
        assert all(np.isfinite(state).all() for state in states)
    assert trace.logits is None or np.isfinite(trace.logits).all()
    assert trace.check() < NEAR * size, trace.check()
    if isinstance(model.tokenizer, GPT2Subset) and model.config.shape != "encoder-decoder":
        raw = b"".join(token.raw for token in trace.tokens)
        assert raw.decode("utf-8", "replace") == clean(trace.text)


def label_is_text(text: str) -> None:
    """A label can be seen, is short, and holds no markup; so does the same text in Markdown."""
    label, drawn, written = token_label(text), plotly_label(text), plain(text)
    for said in (label, html.unescape(drawn), written):
        said.encode()
        assert not hidden_in(said), said[:80]
    assert label.strip()
    assert len(label) <= LONGEST
    assert "<" not in drawn
    assert ">" not in drawn
    assert not UNESCAPED.search(re.sub(r"\\.", "", written)), written[:80]
    assert not REPLACED.search(re.sub(r"\\(.)", r"\1", written)), written[:80]


def figure_is_text(figure: go.Figure) -> None:
    """No string of a picture holds a tag but ours, or anything hidden."""
    for text in strings(json.loads(figure.to_json())):
        bare = re.sub(r"<0\.0+1\b", "", TAGS.sub("", text))  # a small probability
        assert "<" not in bare, bare[:80]
        assert hidden_in(text) <= {"\n"}, text[:80]


def strings(value: Any) -> Iterator[str]:
    """Every string in a figure's JSON, but for packed numbers and the template."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("bdata", "template"):
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def pictures_are_text(trace: Trace, place: str, head: int, which: int) -> None:
    """One of the pictures of a head, and what the explorer is sent."""
    attention = trace.find(place)
    queries = [token.text for token in trace.queries_of(attention)]
    keys = [token.text for token in trace.keys_of(attention)]
    weights = attention.weights(head)
    match which % 3:
        case 0:
            axes = {"rows": Axis("query", queries), "columns": Axis("key", keys)}
            blocked = None if attention.mask is None else ~attention.mask
            figure_is_text(heatmap(weights, **axes, quantity="weight", blocked=blocked))
        case 1:
            steps = [
                WrittenStep([key], [float(share)])
                for key, share in zip(keys, weights[-1], strict=True)
            ]
            figure_is_text(written_steps(steps, chosen=0))
        case 2:
            shown = [token_label(text) for text in keys[:8]]
            figure_is_text(next_tokens(shown, weights[-1, :8].tolist(), None))
    message = payload(attention, queries=queries, keys=keys, head=head, check=trace.check())
    packed(message)
    for text in strings(message):
        assert not hidden_in(text), text[:80]


def picture_of(trace: Trace, place: str, head: int) -> HeadPicture:
    attention = trace.find(place)
    return head_picture(
        attention,
        None,
        head=head,
        stage="weights",
        queries=[token.text for token in trace.queries_of(attention)],
        keys=[token.text for token in trace.keys_of(attention)],
    )


def tables_are_text(picture: HeadPicture) -> None:
    """The CSV holds no formula and no line more than it should, and comes back as it was."""
    written = picture_csv(picture)
    lines = list(csv.reader(io.StringIO(written)))
    assert len(lines) == 1 + len(picture.rows) * len(picture.runs)
    assert not any(cell.startswith(FORMULAS) for line in lines for cell in line)
    (read,) = read_matrix_csv(written).values()
    assert (tuple(read.index), tuple(read.columns)) == (picture.rows, picture.columns)
    np.testing.assert_array_equal(read.values, next(iter(picture.runs.values())))


def files_are_text(trace: Trace, place: str, picture: HeadPicture) -> None:
    """The report holds the tags that every report holds, and the trace comes back bit by bit."""
    for figure in picture_figures(picture).values():
        figure_is_text(figure)
    attention = trace.find(place)
    subject = ReportSubject("Title", trace, None, attention, "http://here/?text=%3Cb%3E")
    tags = Tags(report(subject, picture).decode()).tags
    assert tags <= ALLOWED, tags - ALLOWED
    again = read_trace(trace_file(trace))
    assert (again.text, again.tokens) == (trace.text, trace.tokens)
    np.testing.assert_array_equal(again.attention[0].query, trace.attention[0].query)


ALLOWED = {
    *("html", "head", "meta", "title", "style", "script", "body", "h1", "p", "strong", "dl", "dt"),
    *("dd", "span", "code", "div", "table", "tr", "th", "td", "figure", "figcaption"),
}


class Tags(HTMLParser):
    """The names of a page's tags; an attribute that acts counts as a tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.tags |= {name for name, _ in attrs if name.startswith("on") or name in ("href", "src")}


def is_sentence(refusal: ValueError) -> bool:
    """Whether a refusal can be shown: words, one line, a full stop."""
    said = str(refusal)
    return (
        said.endswith((".", "?", "…", "”"))
        and "\n" not in said
        and len(said.split()) > 3
        and "Traceback" not in said
    )
