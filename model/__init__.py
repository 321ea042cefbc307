"""Everything computed: models that run, and the traces they leave behind.

The names below are the public ones. Each is imported at first use, so that a page can be drawn before torch
has started.
"""

from typing import TYPE_CHECKING

from model.system.later import later

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

__getattr__, __dir__ = later(
    __name__,
    {
        "Attention": "trace.records",
        "Intervention": "nn.intervention",
        "Model": "run.model",
        "TextTooLongError": "run.protocols",
        "Token": "trace.records",
        "Trace": "trace.trace",
        "load_model": "loading.registry",
        "load_trace": "trace.trace_file",
        "models": "loading.registry",
    },
)
