"""The lines of code beside each formula, in several styles, and as scripts that run alone.

Nothing here runs the lines: the tests do.
"""

from model.snippets.script import Code, code_of, filled, lone_script, script
from model.snippets.snippet import LATER, STYLES, Later, Line, Origin, Snippet, Stage, Style, Vector

__all__ = [
    "LATER",
    "STYLES",
    "Code",
    "Later",
    "Line",
    "Origin",
    "Snippet",
    "Stage",
    "Style",
    "Vector",
    "code_of",
    "filled",
    "lone_script",
    "script",
]
