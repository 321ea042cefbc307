"""Attention of anybody's own modules: one pass is watched, and what it computed becomes a Trace."""

from model.capture.capture import CaptureWarning, capture

__all__ = ["CaptureWarning", "capture"]
