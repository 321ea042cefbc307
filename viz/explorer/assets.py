"""Plotly and KaTeX for the browser, served by the app itself.

KaTeX is in the folder `static`, which Streamlit serves. Plotly's script (4.8 MB) is part of the plotly
package, from where `viz.server` serves it. Under another server the browser finds no Plotly, and the
explorer draws on its own canvas.
"""

from functools import cache, lru_cache
from pathlib import Path

import plotly

STATIC = Path(__file__).parents[2] / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_ADDRESS = "app/static/plotly.min.js"
_KATEX = ("katex/katex.min.js", "katex/katex.min.css")


@cache
def addresses(static: Path = STATIC, plotly_script: Path = PLOTLY) -> dict[str, str]:
    """Where the browser finds the files, relative to the app's address; empty for a missing one.

    The size after "?" changes with the file, so that a browser never takes an old one from its cache.
    """
    katex, style = (static_address(name, static) for name in _KATEX)
    return {
        "plotly": _address(plotly_script, PLOTLY_ADDRESS),
        "katex": katex,
        "katexStyle": style,
    }


@lru_cache(maxsize=16)
def static_address(name: str, static: Path = STATIC) -> str:
    """Where the browser finds a file of the folder `static`, as `addresses` says it."""
    return _address(static / name, f"app/static/{name}")


def _address(file: Path, address: str) -> str:
    return f"{address}?{file.stat().st_size}" if file.exists() else ""
