"""Everything computed: models that run, and the traces they leave behind.

The names below are the public ones. Those that need torch are imported at first use, so that a
page can be drawn before torch has started.
"""

from typing import TYPE_CHECKING

from model.loading.registry import load_model, models
from model.nn.intervention import Intervention
from model.system.later import later
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

__getattr__, __dir__ = later(__name__, {"Model": "run.model", "TextTooLongError": "run.protocols"})
