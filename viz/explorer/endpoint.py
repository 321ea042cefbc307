"""The layers of a run by an address, so that the explorer opens another one without drawing the page anew.

An address holds a name that cannot be guessed, so only who was shown the run knows it. It lives as long as
the run's trace is kept, and no pass is run for it: where the trace has made room for others there is
nothing at the address, and the explorer asks for the layer through the page. The check of a long run, too,
is worked out here, once, when the explorer asks for it.
"""

import math
import secrets
import threading
from typing import TypedDict
from urllib.parse import urlencode
from weakref import WeakKeyDictionary, WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from model.trace.records import Attention
from model.trace.trace import Trace
from viz.explorer import Selection, payload
from viz.explorer.packing import packed

ADDRESS = "layers"
AT_ONCE = 2**23  # attention weights of a run that is checked before its picture is sent: 0.1 s
_NAME_BYTES = 16
MADE_AT_ONCE = 4  # layers; other answers have threads of their own
_PRIVATE = {"cache-control": "no-store"}


class Names:
    """A name for each trace that is kept somewhere; both are forgotten with it."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[Trace, str] = WeakKeyDictionary()
        self._traces: WeakValueDictionary[str, Trace] = WeakValueDictionary()
        self._guard = threading.Lock()

    def name(self, trace: Trace) -> str:
        """The trace's name, always the same."""
        with self._guard:
            name = self._names.setdefault(trace, secrets.token_urlsafe(_NAME_BYTES))
            self._traces[name] = trace
            return name

    def trace(self, name: str) -> Trace | None:
        """The trace of a name; None if there is none any more."""
        with self._guard:
            return self._traces.get(name)


_kept = Names()


class Layer(TypedDict):
    """One attention layer of a run, and of the unchanged run where there is one, as the explorer takes it."""

    attention: Attention
    queries: list[str]
    keys: list[str]
    check: float | None
    baseline: Attention | None


def labels_of(trace: Trace, attention: Attention) -> tuple[list[str], list[str]]:
    """The texts of the tokens that look in a layer, and of those looked at."""
    return (
        [token.text for token in trace.queries_of(attention)],
        [token.text for token in trace.keys_of(attention)],
    )


def layer_of(trace: Trace, baseline: Trace | None, name: str, *, stays: bool = True) -> Layer:
    """The layer of this name. A long run that is not checked yet has no check: the browser asks for it once
    it shows the picture. stays: whether the trace is kept until then.
    Raises ValueError where the run has no such layer."""
    checks_now = trace.is_checked or not stays or _cells(trace) <= AT_ONCE
    attention = trace.find(name)
    queries, keys = labels_of(trace, attention)
    return {
        "attention": attention,
        "queries": queries,
        "keys": keys,
        "check": trace.check() if checks_now else None,
        "baseline": None if baseline is None else baseline.find(name),
    }


def address(trace: Trace, baseline: Trace | None) -> str:
    """Where the browser finds the layers of these runs, relative to the app's address."""
    runs = {"run": trace, "before": baseline}
    names = {key: _kept.name(run) for key, run in runs.items() if run is not None}
    return f"{ADDRESS}?{urlencode(names)}"


_making = CapacityLimiter(MADE_AT_ONCE)


async def offer(request: Request) -> Response:
    """`answer` in a thread, few at once."""
    return await to_thread.run_sync(answer, request, limiter=_making)


def answer(request: Request) -> Response:
    """The message that draws one layer, packed, or where `check` is asked for the check of the run; 404
    where there is no such run or layer any more."""
    asked = request.query_params
    trace, baseline = (_kept.trace(asked.get(run, "")) for run in ("run", "before"))
    if trace is None or (baseline is None and "before" in asked):
        return _nothing()
    if "check" in asked:
        check = trace.check()
        return JSONResponse(check if math.isfinite(check) else None, headers=_PRIVATE)
    try:
        layer = layer_of(trace, baseline, asked.get("layer", ""))
        wanted = Selection(head=int(asked.get("head", "0")), stage=asked.get("stage", ""))
        chosen = wanted.clamped(heads=layer["attention"].heads, queries=1, keys=1)
        message = packed(payload(**layer, head=chosen.head, stage=chosen.stage))
    except ValueError:  # no such layer, or two runs that do not belong together
        return _nothing()
    return Response(message, media_type="application/octet-stream", headers=_PRIVATE)


def _cells(trace: Trace) -> int:
    """Attention weights of all heads of a run."""
    return sum(one.heads * one.query.shape[1] * one.key.shape[1] for one in trace.attention)


def _nothing() -> Response:
    return PlainTextResponse("There is nothing here.", status_code=404)
