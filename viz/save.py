"""“Save”: the current view as a link, a picture, its numbers, the whole trace, and a report.

Files are made when they are asked for, not before.
"""

import html
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import streamlit as st

from model.export import trace_file
from model.registry import models
from viz.export import HeadPicture, head_picture, picture_csv, picture_figures, standalone
from viz.formulas import StageName
from viz.laboratory.presets import preset_of
from viz.menu import PAGES
from viz.report import Subject, report
from viz.session import current
from viz.view import short_link

if TYPE_CHECKING:
    from viz.shell import Look


def save_view(seen: "Look") -> None:
    """A small box of files under the picture of a head."""
    with st.popover("Save", icon=":material/download:"):
        st.caption("PNG and SVG of the picture alone stand beside the picture.")
        # What is saved is what was drawn: a file is made later, outside of the session.
        subject = _subject(seen)
        make = partial(_picture, subject, seen.labels, current().stage, seen.head)
        name = f"attention-L{seen.attention.layer}H{seen.head}-{current().stage}"
        _file("Picture as a page (HTML)", f"{name}.html", "text/html", lambda: _page(make()))
        _file("Its numbers (CSV)", f"{name}.csv", "text/csv", lambda: picture_csv(make()).encode())
        _file("Report (HTML)", "report.html", "text/html", lambda: report(subject, make()))
        _file(
            "The whole trace (safetensors)",
            "trace.safetensors",
            "application/octet-stream",
            lambda: trace_file(subject.trace),
        )
        st.caption("This view as a link:")
        st.code(subject.link, language=None, wrap_lines=True)


def save_figure(figure: go.Figure, key: str) -> None:
    """A small button under any other picture: the picture as a page, which has PNG and SVG in it."""
    view = current()
    title = ": ".join(filter(None, (_page_title(), view.show)))
    said = f"<p>{html.escape(view.text)}</p><p>{html.escape(models[view.model].title)}</p>"
    link = f"<p><code>{html.escape(_link())}</code></p>"
    st.download_button(
        "Save picture",
        lambda: standalone(title, said + link, {title: figure}),
        file_name=f"{key}.html",
        mime="text/html",
        key=f"save-{key}",
        help="A page that opens offline, with buttons for PNG and SVG",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def _page_title() -> str:
    """The title of the page that is open, from its address."""
    stem = urlsplit(st.context.url or "").path.rpartition("/")[2]
    titles = {PurePath(page.file).stem: page.title for page in PAGES}
    return titles.get(stem, "Attention visualizer")


def _file(label: str, name: str, kind: str, make: Callable[[], bytes]) -> None:
    """A button that makes a file when it is pressed."""
    st.download_button(
        label, make, file_name=name, mime=kind, key=f"save-{kind}-{label}", on_click="ignore"
    )


def _picture(
    subject: Subject, labels: tuple[list[str], list[str]], stage: str, head: int
) -> HeadPicture:
    baseline, (queries, keys) = subject.baseline, labels
    return head_picture(
        subject.attention,
        None if baseline is None else baseline.find(subject.attention.name),
        head=head,
        stage=cast(StageName, stage),
        queries=queries,
        keys=keys,
    )


def _page(picture: HeadPicture) -> bytes:
    return standalone(picture.title, "", picture_figures(picture))


def _subject(seen: "Look") -> Subject:
    preset = preset_of(current())
    return Subject(
        title=models[seen.model.name].title,
        trace=seen.trace,
        baseline=seen.baseline,
        attention=seen.attention,
        link=_link(),
        look_for=preset.look_for if preset else current().look_for or "",
    )


def _link() -> str:
    """The address of this page with the whole view in it."""
    address = (st.context.url or "").partition("?")[0]
    parameters = urlencode(short_link(current())[0])
    return f"{address}?{parameters}" if parameters else address
