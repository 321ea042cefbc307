"""Everything computed: models that run, and the traces they leave behind.

The names below are the public ones. Those that need torch are imported at first use, so that a
page can be drawn before torch has started.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from model.intervention import Intervention
from model.registry import load_model, models
from model.trace import Attention, Token, Trace

if TYPE_CHECKING:
    from model.live import Model, TextTooLongError

__all__ = [
    "Attention",
    "Intervention",
    "Model",
    "TextTooLongError",
    "Token",
    "Trace",
    "load_model",
    "models",
]


def __getattr__(name: str) -> object:
    if name in ("Model", "TextTooLongError"):
        return getattr(import_module("model.live"), name)
    raise AttributeError(f"module 'model' has no attribute {name!r}")
