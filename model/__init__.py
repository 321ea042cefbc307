"""Everything computed: models that run, and the traces they leave behind.

The names below are the public ones. Each is imported at first use, so that a page can be drawn before torch
has started.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.loading.registry import load_model, models
    from model.nn.intervention import Intervention
    from model.run.model import Model
    from model.run.protocols import TextTooLongError
    from model.trace.records import Attention, Token
    from model.trace.trace import Trace
    from model.trace.trace_file import load_trace

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


_LATER = {
    "Attention": "model.trace.records",
    "Intervention": "model.nn.intervention",
    "Model": "model.run.model",
    "TextTooLongError": "model.run.protocols",
    "Token": "model.trace.records",
    "Trace": "model.trace.trace",
    "load_model": "model.loading.registry",
    "load_trace": "model.trace.trace_file",
    "models": "model.loading.registry",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
