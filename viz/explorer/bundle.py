"""The component as the strings that Streamlit takes: one script, one style sheet, one skeleton.

`make bundle` makes script and style sheet of the modules in js/ and css/. They are strings, so the explorer
also runs where nothing serves static files. Streamlit takes a string of one line for a path, so the bundler
breaks lines.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
BUNDLED = FOLDER / "bundled"


def script() -> str:
    """The modules of js/ in one file. The default export of main.js is the component."""
    return (BUNDLED / "explorer.js").read_text(encoding="utf-8")


def style() -> str:
    """The style sheets of css/ in one file, in their order."""
    return (BUNDLED / "explorer.css").read_text(encoding="utf-8")


def skeleton() -> str:
    """The empty elements that the script fills."""
    return (FOLDER / "explorer.html").read_text(encoding="utf-8")
