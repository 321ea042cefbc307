"""What patches would do, estimated from one gradient instead of a pass for each.

Source: Nanda 2023, "Attribution Patching". Axes as in patching.py.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.patching import SITES, PatchedRuns, answer_in
from model.analysis.heads.ablations import texts_in_rows
from model.nn.patches import Site, SiteKind, for_each_head
from model.nn.recorder import Recorder, recording
from model.trace.arrays import Wide
from model.trace.collect import doubled

FEWEST = 3  # cells of which a correlation says anything


def estimated_map(runs: PatchedRuns, answer: tuple[int, int]) -> Wide:
    """The map of `patch_map` to first order, as if the answer were linear in each part: what run B has
    there minus what run A has, times the gradient of A's answer. One pass and one gradient for all cells."""
    start, end = runs.answers(answer)
    found = np.full(runs.shape, np.nan)
    effects = _effects(runs, answer)
    for at, row in enumerate(runs.grid):
        for column, spot in enumerate(row):
            cells = [effects[kind, spot.name] for kind in SITES[runs.what]]  # (H or 1, T) each
            head = slice(None) if spot.head is None else spot.head
            token = slice(None) if spot.token is None else spot.token
            found[at, column] = sum(float(one[head, token].sum()) for one in cells)
    estimate: Wide = found / (end - start)
    return estimate


def _effects(runs: PatchedRuns, answer: tuple[int, int]) -> dict[Site, Wide]:
    """(H, T) by site, or (1, T) where heads play no part: difference times gradient, over the whole width."""
    added: dict[Site, Tensor] = {}
    apart: dict[Site, Tensor] = {}

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        if kind in ("key", "value") and ("key", name) in runs.kept:
            x = for_each_head(x, runs.kept["query", name].shape[1])
        if (kind, name) not in runs.kept:
            return x
        theirs = runs.kept[kind, name].clone()
        with torch.no_grad():
            apart[kind, name] = for_each_head(theirs, x.shape[1]) - x if x.ndim > 3 else theirs - x
        added[kind, name] = torch.zeros_like(x, requires_grad=True)
        return x + added[kind, name]

    model, trace = runs.model, runs.trace
    recorder = Recorder(
        trace.intervention, source=model.config.source, deferred=True, through=through
    )
    with torch.inference_mode(False), torch.enable_grad(), recording(recorder):
        ended = model.module(*texts_in_rows(model, trace, 1))
        gradients = torch.autograd.grad(answer_in(model, ended, answer)[0], list(added.values()))
    return {
        site: _by_head_and_token(apart[site] * gradient)
        for site, gradient in zip(added, gradients, strict=True)
    }


def _by_head_and_token(effect: Tensor) -> Wide:
    if effect.ndim < 4:  # OPT leaves the batch axis out of some
        effect = effect.reshape(1, 1, -1, effect.shape[-1])
    summed: Wide = doubled(effect).sum(-1)[0].cpu().numpy()
    return summed


@dataclass(frozen=True)
class Agreement:
    """How well an estimate goes with the exact map, over the cells that both have."""

    cells: int
    correlation: float | None  # Pearson's; None where there is nothing to correlate
    largest: float  # |estimate − exact|
    mean: float


def agreement(exact: Wide, estimate: Wide) -> Agreement:
    """The correlation of an estimate with the exact map, and its errors."""
    both = np.isfinite(exact) & np.isfinite(estimate)
    ours, theirs = exact[both], estimate[both]
    if not len(ours):
        return Agreement(0, None, 0.0, 0.0)
    varies = len(ours) >= FEWEST and min(np.ptp(ours), np.ptp(theirs)) > 0
    apart = np.abs(theirs - ours)
    return Agreement(
        len(ours),
        float(np.corrcoef(ours, theirs)[0, 1]) if varies else None,
        float(apart.max()),
        float(apart.mean()),
    )
