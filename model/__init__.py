"""Everything computed: models that run, and the traces they leave behind.

The names below are the public ones. Those that need torch are imported at first use, so that a
page can be drawn before torch has started.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from model.loading.registry import load_model, models
from model.nn.intervention import Intervention
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from model.trace.trace_file import load_trace

if TYPE_CHECKING:
    from model.run.model import Model
    from model.run.protocols import TextTooLongError

__all__ = [
    "Attention",
    "Intervention",
    "Model",
    "TextTooLongError",
    "Token",
    "Trace",
    "load_model",
    "load_trace",
    "models",
]


_LATER = {"Model": "model.run.model", "TextTooLongError": "model.run.protocols"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
