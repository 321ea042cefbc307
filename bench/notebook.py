"""What the widget sends to a notebook, beside BertViz' pages of the same weights: bytes at three lengths."""

import json
import subprocess
from pathlib import Path

import numpy as np

from bench import gpt2_size
from bench.recording import OTHERS
from deploy.wheel import build_wheel
from model import load_model
from model.trace.trace import Trace
from viz.notebook import show
from viz.notebook.library import library
from viz.notebook.widget import AttentionExplorer

LENGTHS = (32, 128, 512)
LARGEST_PAGE = 2**24  # weights that BertViz writes into a page: at 512 tokens it would have 1 GB


def measure(scratch: Path, short: bool) -> dict[str, object]:
    model = load_model(str(gpt2_size.save(scratch)), device="cpu")
    rows = []
    for tokens in LENGTHS[:1] if short else LENGTHS:
        trace = model.trace(gpt2_size.text_of(tokens).strip())
        rows.append({"tokens": tokens} | _sent(trace) | _bertviz(trace, scratch))
        print(rows[-1], flush=True)
    wheel = scratch / build_wheel(str(scratch))
    return {
        "rows": rows,
        "library": _bytes(library().get_state()),
        "wheel": wheel.stat().st_size,
    }


def _sent(trace: Trace) -> dict[str, object]:
    """Bytes of the state at first, of another layer, and of all layers one after the other."""
    widget = show(trace)
    first = _bytes(widget.get_state())
    places = [attention.name for attention in trace.attention]
    layers = [_of_layer(widget, place) for place in places[1:]]
    return {"first": first, "layer": layers[0], "layers": first + sum(layers)}


def _of_layer(widget: AttentionExplorer, place: str) -> int:
    widget.place = place
    return _bytes(widget.get_state(["_layer", "place", "head", "stage", "query", "key"]))


def _bytes(state: dict[str, object]) -> int:
    """As they travel: binary as it is, the rest as JSON."""
    binary = [value for value in state.values() if isinstance(value, bytes | memoryview)]
    text = {name: one for name, one in state.items() if not isinstance(one, bytes | memoryview)}
    return sum(len(one) for one in binary) + len(json.dumps(text, default=str))


def _bertviz(trace: Trace, scratch: Path) -> dict[str, object]:
    """Bytes of head_view's HTML: of one layer, and of all where that page is not too large."""
    weights = np.array(
        [[one.weights(head) for head in range(one.heads)] for one in trace.attention]
    )
    return {
        "bertviz_layer": _page(weights[:1], scratch),
        "bertviz": _page(weights, scratch) if weights.size <= LARGEST_PAGE else None,
    }


def _page(weights: np.ndarray, scratch: Path) -> int:
    np.save(scratch / "weights.npy", weights)
    script = Path(__file__).with_name("bertviz_pages.py")
    command = [OTHERS, "-P", script, scratch / "weights.npy", scratch, "head_view"]
    subprocess.run(command, check=True)
    return (scratch / "head_view.html").stat().st_size
