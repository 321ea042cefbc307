"""The component as the strings that Streamlit takes: one script, one style sheet, one skeleton.

The script is written as small ES modules. Streamlit takes a component's script as one string, so the
modules are joined, each in a scope of its own, with its imports and exports turned into constants. Served
as separate files they would need static serving for the explorer to run at all; joined, the script also
runs without it and draws on its own canvas.
"""

import re
from pathlib import Path

from viz.explorer.component import component_style

_FOLDER = Path(__file__).parent
_MODULES = (  # each one after those it imports
    "numbers",
    "message",
    "derive",
    "derived_heads",
    "held",
    "colours",
    "geometry",
    "paint",
    "libraries",
    "python",
    "plotly",
    "save",
    "elements",
    "overlay",
    "table",
    "check",
    "equality",
    "equations",
    "terms",
    "panel",
    "sentence",
    "view",
    "controls",
    "picture",
    "drawing",
    "main",
)
_STYLES = ("frame", "controls", "picture", "panel", "sentence", "check", "compared", "widths")
_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"\./(\w+)\.js\";$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def script() -> str:
    """The modules of `js/`, joined; the last one's default export is the component."""
    *inner, last = ((name, _read(f"js/{name}.js")) for name in _MODULES)
    return "\n".join([*(_scoped(name, source) for name, source in inner), _bound(last[1])])


def style() -> str:
    """The style sheets of `css/`, joined: what a later one says of an element counts."""
    return component_style() + "\n".join(_read(f"css/{name}.css") for name in _STYLES)


def skeleton() -> str:
    """The empty elements the script fills."""
    return _read("explorer.html")


def _scoped(name: str, source: str) -> str:
    """A module as a constant that holds what it exports."""
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _bound(source))
    return f"const {name}_js = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _bound(source: str) -> str:
    return _IMPORT.sub(r"const \1 = \2_js;", source)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
