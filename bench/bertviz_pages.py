"""BertViz's pages of recorded weights, written as files. Run by the environment that has BertViz:
`python bertviz_pages.py WEIGHTS.npy FOLDER [VIEW …]` with weights (layer, head, query, key)."""

import sys
from pathlib import Path

import numpy as np
import torch
from bertviz import head_view, model_view

VIEWS = {"model_view": model_view, "head_view": head_view}


def main(weights: Path, folder: Path, *wanted: str) -> None:
    recorded = np.load(weights)
    attention = [torch.from_numpy(layer)[None] for layer in recorded]  # (1, head, query, key) each
    tokens = [str(position) for position in range(recorded.shape[-1])]
    for name in wanted or VIEWS:
        page = VIEWS[name](attention, tokens, html_action="return").data
        (folder / f"{name}.html").write_text(f"<!doctype html><html><body>{page}</body></html>")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
