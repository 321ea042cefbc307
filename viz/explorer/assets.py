"""Plotly and KaTeX for the browser, as files that Streamlit serves from the folder `static`.

KaTeX lies there. Plotly's script is 4.8 MB and comes with the plotly package, so it is copied from there
when it is missing or of another version, and is not kept in the repository.
"""

import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

STATIC = Path(__file__).parents[2] / "static"
_PLOTLY = "plotly.min.js"
_KATEX = ("katex/katex.min.js", "katex/katex.min.css")


def ensure_plotly(static: Path = STATIC) -> Path:
    """Puts the installed package's plotly.min.js into `static` and returns its path there.

    Nothing is written when a file of the same size is there. The copy appears at once and whole, so
    several processes may do this at the same time. Raises OSError if the folder cannot be written.
    """
    target = static / _PLOTLY
    with files("plotly").joinpath("package_data", _PLOTLY).open("rb") as source:
        size = os.fstat(source.fileno()).st_size
        if target.exists() and target.stat().st_size == size:
            return target
        static.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=static, prefix=".plotly-") as folder:
            copy = Path(folder) / _PLOTLY
            with copy.open("wb") as whole:
                shutil.copyfileobj(source, whole)
            copy.replace(target)
    return target


def addresses(static: Path = STATIC) -> dict[str, str]:
    """Where the browser finds the files, relative to the app's address; empty for one that is missing.

    The size after "?" changes with the file, so that a browser's cache never hands out an old one.
    """
    names = {"plotly": _PLOTLY, "katex": _KATEX[0], "katexStyle": _KATEX[1]}
    return {key: _address(static, name) for key, name in names.items()}


def _address(static: Path, name: str) -> str:
    file = static / name
    return f"app/static/{name}?{file.stat().st_size}" if file.exists() else ""
