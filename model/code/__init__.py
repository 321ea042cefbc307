"""The running model as PyTorch that a reader can take away, written from its config, and checked."""

from model.code.check import checked_difference, largest_difference
from model.code.listing import lines, listing
from model.code.script import model_script
from model.snippets import script

__all__ = ["checked_difference", "largest_difference", "lines", "listing", "model_script", "script"]
