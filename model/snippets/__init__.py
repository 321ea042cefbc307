"""The lines of code beside each formula, in several styles, and as scripts that run alone.

Nothing here runs the lines: the tests do.
"""

from model.snippets.script import LayerCode, code_of, filled, lone_script, script
from model.snippets.snippet import (
    LATER,
    STYLES,
    CodeStage,
    LaterStage,
    Origin,
    Snippet,
    SnippetLine,
    Style,
    Vector,
)

__all__ = [
    "LATER",
    "STYLES",
    "CodeStage",
    "LaterStage",
    "LayerCode",
    "Origin",
    "Snippet",
    "SnippetLine",
    "Style",
    "Vector",
    "code_of",
    "filled",
    "lone_script",
    "script",
]
