"""The server's log: one JSON object in each line of standard error, and never what a visitor typed.

An error's message may quote the visitor, so only its class and traceback are written. Of a library's messages
only the fixed part is, or the place in its code.
"""

import json
import logging
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from types import TracebackType

from streamlit import logger as streamlit_logger

from model import __name__ as MODEL
from model.serving.engine import CacheLookup, Event, facts
from model.system.clicks import click
from viz import __name__ as VIZ

OWN = "attention"  # the logger whose lines are events; its messages hold no visitor's text
SECONDS_BETWEEN = 60.0  # between two lines from one place
_logger = logging.getLogger(OWN)
_LIBRARIES = ("streamlit", "uvicorn", "websockets", "asyncio", "transformers", "huggingface_hub")


def event(name: str, **told: object) -> None:
    """Writes one event. The facts must hold no visitor's text."""
    of = {"click": click()} if click() else {}
    _logger.info(name, extra={"facts": told | of})


def note(happened: Event) -> None:
    """Writes an event of the engine, except for traces that were found."""
    if isinstance(happened, CacheLookup):
        return
    event(type(happened).__name__.lower(), **facts(happened))


def kept_back() -> int:
    """Repeated lines that no later line has counted yet."""
    return _repeats.count()


def set_up() -> None:
    """Gives every logger of this process one handler, which writes JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(_repeats)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    _logger.setLevel(logging.INFO)
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in _LIBRARIES:
            _take_over(logging.getLogger(name))
    streamlit_logger.setup_formatter = _take_over  # of the loggers that it makes from now on
    threading.excepthook = _thread_broke
    sys.excepthook = _broke


def _take_over(logger: logging.Logger) -> None:
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


class Repeats(logging.Filter):
    """Of the lines that one place in the code repeats, lets through one in `SECONDS_BETWEEN`, with the count
    of those before it that were not written. The app's own events all pass."""

    def __init__(self) -> None:
        super().__init__()
        # When a place wrote its last line, and how many were kept back since.
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}
        self._guard = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == OWN:
            return True
        error = record.exc_info[1] if record.exc_info else None
        place = (record.pathname, record.lineno, record.levelno, type(error), _origin(error))
        now = time.monotonic()
        with self._guard:
            written, kept = self._seen.get(place, (-SECONDS_BETWEEN, 0))
            if now - written < SECONDS_BETWEEN:
                self._seen[place] = (written, kept + 1)
                return False
            self._seen[place] = (now, 0)
        record.kept_back = kept
        return True

    def count(self) -> int:
        """Lines that were not written, and that no later line has counted yet."""
        with self._guard:
            return sum(kept for _, kept in self._seen.values())


_repeats = Repeats()


def _origin(error: BaseException | None) -> tuple[str, int | None] | None:
    """The line of code that raised an error."""
    steps = traceback.extract_tb(error.__traceback__, -1) if error is not None else ()
    return (steps[0].filename, steps[0].lineno) if steps else None


class JsonLines(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        if record.name == OWN:
            line |= {"event": record.getMessage(), **getattr(record, "facts", {})}
        else:
            place = f"{record.pathname}:{record.lineno} {record.funcName}"
            line |= {"event": "message", "logger": record.name, "at": place}
            if isinstance(record.msg, str) and (record.args or _is_ours(record)):
                line["says"] = record.msg  # without what is filled in
        if getattr(record, "kept_back", 0):
            line["kept_back"] = record.kept_back  # type: ignore[attr-defined]
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line |= {"error": type(error).__name__, "traceback": frames(error)}
        return json.dumps(line, default=lambda value: type(value).__name__)


def frames(error: BaseException) -> list[str]:
    """An error's traceback without values, outermost call first; the traceback of its cause before it."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = [] if cause is None else [*frames(cause), f"{type(cause).__name__}, and then"]
    steps = traceback.extract_tb(error.__traceback__)
    return before + [f"{step.filename}:{step.lineno} {step.name}" for step in steps]


def _is_ours(record: logging.LogRecord) -> bool:
    """Our own messages are fixed sentences; a library's may contain anything."""
    return record.name.startswith((f"{MODEL}.", f"{VIZ}."))


def _broke(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, where)
        return
    _logger.error("broke", exc_info=(kind, error, where))


def _thread_broke(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        _logger.error(
            "thread broke",
            exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
            extra={"facts": {"thread": args.thread.name.partition(" ")[0] if args.thread else ""}},
        )
