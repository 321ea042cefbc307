"""Everything computed: models that run, and the traces they leave behind."""

from model.intervention import Intervention
from model.live import Model, TextTooLongError
from model.registry import load_model, models
from model.trace import Attention, Token, Trace

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
