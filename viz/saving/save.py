"""“Save”: the current view as a link, a picture, its numbers, the whole trace, and a report.

A file is made when it is asked for.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin, urlsplit

import plotly.graph_objects as go
import segno
import streamlit as st

from model.loading.registry import models
from model.nn.places import head_label
from model.serving.engine import Request
from model.system.files import bytes_text
from model.system.settings import MEGABYTE, settings
from model.trace.blocks import block_of
from model.trace.trace import Trace
from model.trace.trace_file import trace_file
from viz.notation.formulas import StageName
from viz.notation.words import sentences_of
from viz.saving.certificate import run_facts
from viz.saving.offline_page import (
    HeadPicture,
    ReportSubject,
    picture_csv,
    picture_figures,
    picture_of_runs,
    report,
    standalone,
)
from viz.state.embedded import frame_line
from viz.state.link import address, short_link
from viz.state.look import loaded, traced
from viz.state.navigation import PAGES
from viz.state.presets import example_claim, preset_of
from viz.state.session import current

if TYPE_CHECKING:
    from model.run.model import Model
    from viz.state.look import Look

say = sentences_of("saving.save")

_BYTES = "application/octet-stream"
_CSV, _TRACE = "Its numbers (CSV)", say("whole_trace_safetensors")
_SCAN, _SCANS = "save-scan", "saves-code-to-scan"  # the switch; what stays when its box is closed
_LARGEST = 256 * MEGABYTE  # of a trace that is made into a file while a visitor waits


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
        picture = self._picture()
        return standalone(picture.title, "", picture_figures(picture))

    def numbers(self) -> bytes:
        return picture_csv(self._picture()).encode("utf-8-sig")  # spreadsheets need the mark

    def report(self) -> bytes:
        trace, baseline = self._runs()
        title = models[self.requests[0].model].title
        attention = trace.find(self.place)
        subject = ReportSubject(title, trace, baseline, attention, self.link, self.look_for)
        return report(subject, self._picture())

    def trace(self) -> bytes:
        return trace_file(self._runs()[0])

    def _runs(self) -> tuple[Trace, Trace | None]:
        trace, *before = map(traced, self.requests)
        return trace, before[0] if before else None

    def _picture(self) -> HeadPicture:
        runs = [run for run in self._runs() if run is not None]
        stage = cast(StageName, self.stage)
        model = loaded(self.requests[0].model)
        return picture_of_runs(model, runs, place=self.place, head=self.head, stage=stage)


def save_view(seen: "Look") -> None:
    """A small box of files under the picture of a head. It is filled when it is opened."""
    box = st.popover("Save", icon=":material/download:", key="save", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(say("buttons_beside_picture"))
        st.toggle(
            say("code_scan_opens"),
            value=st.session_state.get(_SCANS, False),
            key=_SCAN,
            on_change=_keep_scanned,
        )
        # What is saved is what was drawn: a file is made later, outside of the session.
        stage, link, said = current().stage, link_of_view(), _look_for(seen)
        drawn = _Drawn(seen.requests, seen.place, seen.head, stage, link, said)
        head = head_label((drawn.place, drawn.head)).replace(" ", "-")
        name = f"attention-{head}-{drawn.stage}"
        too_large = _too_large(seen)
        for label, file, kind, make in (
            (say("picture_page_html"), f"{name}.html", "text/html", drawn.page),
            (_CSV, f"{name}.csv", "text/csv", drawn.numbers),
            ("Report (HTML)", "report.html", "text/html", drawn.report),
            (_TRACE, "trace.safetensors", _BYTES, drawn.trace),
        ):
            if label in too_large:
                st.caption(too_large[label])
                continue
            key = f"save-{kind}-{label}"
            st.download_button(label, make, file_name=file, mime=kind, key=key, on_click="ignore")
        st.caption(say("view_link"))
        st.code(drawn.link, language=None, wrap_lines=True)
        if settings().frame_ancestors:
            st.caption(say("view_frame_another"))
            line = frame_line(page_address(), short_link(current())[0], _title())
            st.code(line, language="html", wrap_lines=True)


def picture_facts(request: Request, model: "Model") -> dict[str, object] | None:
    """What a saved picture says of its run (`run_facts`), and the code to scan under it, where one is
    asked for."""
    facts = run_facts(request, model)
    if facts is None or not st.session_state.get(_SCANS):
        return facts
    return facts | {"scan": code_to_scan(link_of_view())}


def code_to_scan(link: str) -> list[str] | None:
    """The rows of a QR code (ISO 18004), "1" for a dark cell. None for a link that is too long for one."""
    try:
        made = segno.make(link, error="m", micro=False)
    except segno.DataOverflowError:
        return None
    return ["".join(map(str, row)) for row in made.matrix]


def _keep_scanned() -> None:
    st.session_state[_SCANS] = st.session_state[_SCAN]


def _too_large(seen: "Look") -> dict[str, str]:
    """The files that are not offered, each with the reason."""
    _, queries, keys = seen.attention.sizes
    reasons = {}
    if block_of(queries, keys) != (1, 1):
        reasons[_CSV] = say("csv_picture_cells", queries=queries, keys=keys)
    if seen.trace.nbytes > _LARGEST:
        reasons[_TRACE] = say(
            "trace_file_run_files",
            bytes_text=bytes_text(seen.trace.nbytes),
            largest_bytes_text=bytes_text(_LARGEST),
        )
    return reasons


def save_figure(make: Callable[[], go.Figure], key: str) -> None:
    """A small button under any other picture: the picture as a page, which has PNG and SVG in it.

    make: is called when the file is asked for. An open page keeps it, so it holds no trace.
    """
    view = current()
    title = ": ".join(filter(None, (_title(), view.show)))
    said = f"<p>{html.escape(view.text)}</p><p>{html.escape(models[view.model].title)}</p>"
    link = f"<p><code>{html.escape(link_of_view())}</code></p>"
    st.download_button(
        "Save picture",
        lambda: standalone(title, said + link, {title: make()}),
        file_name=f"{key}.html",
        mime="text/html",
        key=f"save-{key}",
        help=say("page_works_offline"),
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def _look_for(seen: "Look") -> str:
    """What a preset or an example says of exactly the run that is drawn; "" where neither does."""
    if seen.request.continued:
        return ""  # they speak of the text before tokens were written
    preset = preset_of(current())
    if preset is not None:
        return preset.look_for
    changed = seen.request.intervention.changes
    return "" if changed else example_claim(current()) or ""


def link_of_view() -> str:
    """The open page with the view of the session, as far as a server takes it."""
    return address(page_address(), short_link(current())[0])


def _title() -> str:
    """Of the open page."""
    stem = PurePath(urlsplit(st.context.url or "").path).name
    titles = {PurePath(page.file).stem: page.title for page in PAGES}
    return titles.get(stem, "Attention visualizer")


def page_address(page: str | None = None) -> str:
    """Where a page of this app is found, by its name; the open one without a name."""
    opened = (st.context.url or "").partition("?")[0]
    return opened if page is None else urljoin(opened, page)
