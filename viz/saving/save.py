"""“Save”: the current view as a link, a picture, its numbers, the whole trace, and a report.

Files are made when they are asked for, not before.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import streamlit as st

from model.loading.registry import models
from model.serving.engine import Request
from model.trace.trace_file import trace_file
from viz.explorer.endpoint import labels_of
from viz.notation.formulas import StageName
from viz.saving.offline_page import (
    HeadPicture,
    head_picture,
    picture_csv,
    picture_figures,
    standalone,
)
from viz.saving.report import Subject, report
from viz.state.held import traced
from viz.state.menu import PAGES
from viz.state.presets import preset_of
from viz.state.session import current
from viz.state.view import short_link

if TYPE_CHECKING:
    from viz.state.look import Look


@dataclass(frozen=True)
class _Drawn:
    """The picture of a head as it was drawn. An open page keeps it, so it holds requests, no traces."""

    requests: tuple[Request, ...]  # the run, and the unchanged run where it is changed
    place: str
    head: int
    stage: str
    link: str
    look_for: str

    def page(self) -> bytes:
        picture = self._picture(self._subject())
        return standalone(picture.title, "", picture_figures(picture))

    def numbers(self) -> bytes:
        return picture_csv(self._picture(self._subject())).encode()

    def report(self) -> bytes:
        subject = self._subject()
        return report(subject, self._picture(subject))

    def trace(self) -> bytes:
        return trace_file(traced(self.requests[0]))

    def _subject(self) -> Subject:
        trace, *before = map(traced, self.requests)
        return Subject(
            title=models[self.requests[0].model].title,
            trace=trace,
            baseline=before[0] if before else None,
            attention=trace.find(self.place),
            link=self.link,
            look_for=self.look_for,
        )

    def _picture(self, subject: Subject) -> HeadPicture:
        queries, keys = labels_of(subject.trace, subject.attention)
        return head_picture(
            subject.attention,
            None if subject.baseline is None else subject.baseline.find(self.place),
            head=self.head,
            stage=cast(StageName, self.stage),
            queries=queries,
            keys=keys,
        )


def save_view(seen: "Look") -> None:
    """A small box of files under the picture of a head."""
    with st.popover("Save", icon=":material/download:"):
        st.caption("PNG and SVG of the picture alone stand beside the picture.")
        # What is saved is what was drawn: a file is made later, outside of the session.
        drawn = _drawn(seen)
        name = f"attention-L{seen.attention.layer}H{drawn.head}-{drawn.stage}"
        _file("Picture as a page (HTML)", f"{name}.html", "text/html", drawn.page)
        _file("Its numbers (CSV)", f"{name}.csv", "text/csv", drawn.numbers)
        _file("Report (HTML)", "report.html", "text/html", drawn.report)
        _file(
            "The whole trace (safetensors)",
            "trace.safetensors",
            "application/octet-stream",
            drawn.trace,
        )
        st.caption("This view as a link:")
        st.code(drawn.link, language=None, wrap_lines=True)


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


def _drawn(seen: "Look") -> _Drawn:
    return _Drawn(
        requests=seen.requests,
        place=seen.place,
        head=seen.head,
        stage=current().stage,
        link=_link(),
        look_for=_look_for(seen),
    )


def _look_for(seen: "Look") -> str:
    """What a preset or an example says of exactly the run that is drawn; "" where neither does."""
    preset = preset_of(current())
    if preset is not None:
        return preset.look_for
    changed = seen.request.intervention.changes
    return "" if changed else current().look_for or ""


def _link() -> str:
    """The address of this page with the whole view in it."""
    address = (st.context.url or "").partition("?")[0]
    parameters = urlencode(short_link(current())[0])
    return f"{address}?{parameters}" if parameters else address
