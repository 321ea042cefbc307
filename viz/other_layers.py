"""The layers of a run by an address, so that the explorer opens another one without drawing the page anew.

An address holds a name that cannot be guessed, so only who was shown the run knows it. It lives as long as
the run's trace is kept, and nothing is computed for it: where the trace has made room for others there is
nothing at the address, and the explorer asks for the layer through the page.
"""

import secrets
import threading
from typing import TypedDict
from urllib.parse import urlencode
from weakref import WeakKeyDictionary, WeakValueDictionary

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from model.trace import Attention, Trace
from viz.explorer import Selection, payload
from viz.explorer.packing import packed

ADDRESS = "layers"
_NAME_BYTES = 16
_names: WeakKeyDictionary[Trace, str] = WeakKeyDictionary()
_traces: WeakValueDictionary[str, Trace] = WeakValueDictionary()
_guard = threading.Lock()


class Layer(TypedDict):
    """One attention layer of a run, and of the unchanged run where there is one, as the explorer takes it."""

    attention: Attention
    queries: list[str]
    keys: list[str]
    check: float
    baseline: Attention | None


def layer_of(trace: Trace, baseline: Trace | None, name: str) -> Layer:
    """The layer of this name. Raises ValueError where the run has none."""
    attention = trace.find(name)
    return {
        "attention": attention,
        "queries": [token.text for token in trace.queries_of(attention)],
        "keys": [token.text for token in trace.keys_of(attention)],
        "check": trace.check(),
        "baseline": None if baseline is None else baseline.find(name),
    }


def address(trace: Trace, baseline: Trace | None) -> str:
    """Where the browser finds the layers of these runs, relative to the app's address."""
    runs = {"run": trace, "before": baseline}
    return (
        f"{ADDRESS}?{urlencode({key: _name(run) for key, run in runs.items() if run is not None})}"
    )


def answer(request: Request) -> Response:
    """The message that draws one layer, packed; 404 where there is no such run or layer any more."""
    asked = request.query_params
    trace, baseline = _kept(asked.get("run")), _kept(asked.get("before"))
    if trace is None or (baseline is None and "before" in asked):
        return _nothing()
    try:
        layer = layer_of(trace, baseline, asked.get("layer", ""))
        head = int(asked.get("head", "0"))
    except ValueError:
        return _nothing()
    chosen = Selection(head=head, stage=asked.get("stage", "")).clamped(
        heads=layer["attention"].heads, queries=1, keys=1
    )
    message = packed(payload(**layer, head=chosen.head, stage=chosen.stage))
    return Response(message, media_type="application/octet-stream", headers=_PRIVATE)


_PRIVATE = {"cache-control": "no-store"}


def _nothing() -> Response:
    return PlainTextResponse("There is nothing here.", status_code=404)


def _name(trace: Trace) -> str:
    with _guard:
        name = _names.setdefault(trace, secrets.token_urlsafe(_NAME_BYTES))
        _traces[name] = trace
        return name


def _kept(name: str | None) -> Trace | None:
    with _guard:
        return _traces.get(name or "")
