"""A page for the owner: which models are loaded where, and how busy they are. No visitor's text is on it."""

import asyncio
import html
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from model.serving.engine import Load, known
from model.system.settings import MEGABYTE
from viz.state.engine import engine

COLUMNS = (
    "model",
    "machine",
    "process",
    "runs for",
    "waiting",
    "under way",
    "passes",
    "refused",
    "failed",
    "weights, MB",
    "traces",
    "traces, MB",
    "rests for",
)
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<title>Models of the attention visualizer</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color-scheme: light dark; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #8884; }}
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) {{ text-align: left; }}
</style>
<h1>Models</h1>
<p>{said}</p>
<table>
<thead><tr>{columns}</tr></thead>
<tbody>{rows}</tbody>
</table>
</html>
"""


async def owner(_: Request) -> Response:
    """The page. It loads itself again every five seconds."""
    return HTMLResponse(await asyncio.to_thread(_page))


def _page() -> str:
    try:
        loads, refusal = engine().loads(), ""
    except ValueError as error:
        loads, refusal = [], str(error)
    waiting = sum(one.waiting for one in loads)
    said = refusal or (
        f"{len(loads)} {'model is' if len(loads) == 1 else 'models are'} loaded; {waiting} "
        f"{'pass waits' if waiting == 1 else 'passes wait'}."
    )
    return _PAGE.format(
        said=html.escape(said),
        columns="".join(f"<th scope=col>{name}</th>" for name in COLUMNS),
        rows="".join(f"<tr>{''.join(_cells(one))}</tr>" for one in loads),
    )


def _cells(one: Load) -> Iterator[str]:
    for cell in (
        known(one.model),
        one.machine,
        one.process,
        _span(one.runs),
        one.waiting,
        one.under_way,
        one.passes,
        one.refused,
        one.failed,
        f"{one.model_bytes / MEGABYTE:,.0f}",
        one.traces,
        f"{one.trace_bytes / MEGABYTE:,.1f}",
        _span(one.idle),
    ):
        yield f"<td>{html.escape(str(cell))}</td>"


def _span(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
