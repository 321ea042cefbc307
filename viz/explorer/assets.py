"""Plotly and KaTeX for the browser, as files of the app's own address.

KaTeX lies in the folder `static`, which Streamlit serves. Plotly's script is 4.8 MB and comes with the
plotly package; `viz.server` serves it from there, so nothing is written beside the code. Where another
server runs the pages, the browser finds no Plotly and the explorer draws on its own canvas.
"""

from pathlib import Path

import plotly

STATIC = Path(__file__).parents[2] / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_ADDRESS = "app/static/plotly.min.js"
_KATEX = ("katex/katex.min.js", "katex/katex.min.css")


def addresses(static: Path = STATIC, plotly_script: Path = PLOTLY) -> dict[str, str]:
    """Where the browser finds the files, relative to the app's address; empty for one that is missing.

    The size after "?" changes with the file, so that a browser's cache never hands out an old one.
    """
    katex, style = (_address(static / name, f"app/static/{name}") for name in _KATEX)
    return {
        "plotly": _address(plotly_script, PLOTLY_ADDRESS),
        "katex": katex,
        "katexStyle": style,
    }


def _address(file: Path, address: str) -> str:
    return f"{address}?{file.stat().st_size}" if file.exists() else ""
