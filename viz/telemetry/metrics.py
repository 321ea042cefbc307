"""What the server counts, in Prometheus's format at `/metrics`. No visitor's text or address is in it."""

from collections.abc import Iterator

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.serving.engine import CacheLookup, Engine, Event, Loaded, Passed, known

MOMENTS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
# Parts of the server; the rest are pages.
DOORS = ("_stcore", "app", "metrics", "readyz", "static")

disable_created_metrics()  # when a counter began is told by the process's start
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
_requests = Counter(
    "attention_requests", "HTTP requests answered", ["door", "status"], registry=REGISTRY
)
_sessions = Gauge("attention_sessions", "Open websockets", registry=REGISTRY)
_runs = Counter(
    "attention_page_runs",
    "Times a whole page was drawn, not only the part in which something was clicked",
    ["page"],
    registry=REGISTRY,
)
_asked = Counter(
    "attention_traces",
    "Requests for a trace. All that one run of a page, or of a part of it, reads of a trace counts "
    "as one request. kept: whether the trace was in the cache; otherwise a pass was made",
    ["kept"],
    registry=REGISTRY,
)
_unused = Counter(
    "attention_unused_messages",
    "Messages on websockets that this app does not use and therefore ignored",
    registry=REGISTRY,
)
_refused = Counter("attention_refusals", "Refused requests by kind", ["kind"], registry=REGISTRY)
_loads = Counter("attention_model_loads", "Models loaded", ["model"], registry=REGISTRY)
_waits = Histogram(
    "attention_wait_seconds",
    "Time in the queue for a pass that made a trace",
    buckets=MOMENTS,
    registry=REGISTRY,
)
_passes = Histogram(
    "attention_pass_seconds",
    "Time of a pass that made a trace, including the writing where a decoder writes its own target",
    ["model"],
    buckets=MOMENTS,
    registry=REGISTRY,
)


_line, _trace_bytes, _traces, _model_bytes, _models = (
    Gauge(f"attention_{name}", meaning, registry=REGISTRY)
    for name, meaning in (
        ("line_length", "Passes waiting in the queue"),
        ("cache_bytes", "Bytes of the traces in memory: in the cache, or still read by a page"),
        ("cache_traces", "Traces in the cache"),
        ("model_bytes", "Bytes of the models in memory: kept, or still read by a page"),
        ("models_loaded", "Models in memory: kept, or still read by a page"),
    )
)


class _Loads(Collector):
    """How busy each loaded model is, here or on a cluster."""

    engine: Engine | None = None

    def collect(self) -> Iterator[Metric]:
        try:
            loads = [] if self.engine is None else self.engine.loads()
        except ValueError:  # the cluster cannot be reached
            loads = []
        for field, meaning in _OF_ACTORS.items():
            family = GaugeMetricFamily(
                f"attention_actor_{field}", meaning, labels=["model", "machine", "process"]
            )
            for one in loads:
                labels = [known(one.model), one.machine, str(one.process)]
                family.add_metric(labels, getattr(one, field))
            yield family


_OF_ACTORS = {
    "waiting": "Passes that wait for this model",
    "under_way": "What was asked of it and is not answered yet",
    "passes": "Passes that it has made",
    "refused": "Requests that it has refused",
    "failed": "Requests that a fault has ended",
    "model_bytes": "Bytes of its weights",
    "trace_bytes": "Bytes of the traces that it keeps",
}


_of_each = _Loads()
REGISTRY.register(_of_each)


def watch(engine: Engine) -> None:
    """From now on `/metrics` tells what this engine keeps."""
    _of_each.engine = engine
    _line.set_function(lambda: engine.holdings.waiting)
    _trace_bytes.set_function(lambda: engine.holdings.trace_bytes)
    _traces.set_function(lambda: engine.holdings.traces)
    _model_bytes.set_function(lambda: engine.holdings.model_bytes)
    _models.set_function(lambda: engine.holdings.models_in_memory)


def count(event: Event) -> None:
    """Counts an event of the engine."""
    if isinstance(event, CacheLookup):
        _asked.labels("yes" if event.hit else "no").inc()
    elif isinstance(event, Loaded):
        _loads.labels(known(event.model)).inc()
    elif isinstance(event, Passed):
        _waits.observe(event.waited)
        _passes.labels(known(event.model)).observe(event.seconds)
    else:
        _refused.labels(event.kind).inc()


def count_unused_message() -> None:
    """Counts a message that was dropped."""
    _unused.inc()


def count_page(file: str) -> None:
    """Counts one run of a page. `file`: its file, one of the menu's."""
    _runs.labels(file).inc()


async def metrics(_: Request) -> Response:
    """The numbers, as Prometheus reads them."""
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


class Counting:
    """Counts requests, and the websockets that are open: one for each open page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = False

        async def counted(message: Message) -> None:
            nonlocal accepted
            if message["type"] == "http.response.start":
                _requests.labels(_door(scope["path"]), str(message["status"])).inc()
            elif message["type"] == "websocket.accept":
                accepted = True
                _sessions.inc()
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            if accepted:
                _sessions.dec()


def _door(path: str) -> str:
    first = path.strip("/").partition("/")[0]
    return first if first in DOORS else "page"
