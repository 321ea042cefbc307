"""What an answer owes to each part of another run: parts of run B put into run A, one at a time.

Sources: Vig et al. 2020, "Causal Mediation Analysis"; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT". Axes: R rows of a batch, one patch each; T tokens, C d_model, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import block_around, path_of, private_copy
from model.analysis.attribution.stream_parts import check_model
from model.analysis.heads.ablations import rows_at_once, texts_in_rows
from model.analysis.stream.stream import contributions
from model.nn.places import Place
from model.nn.recorder import Recorder, recording
from model.run.refusals import check_id
from model.trace.arrays import Wide
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

What = Literal["head", "stream", "feed_forward"]
Patch = tuple[str, int]  # a site's name, and the head or the token there
Turn = Callable[[], AbstractContextManager[None]]


def patch_map(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    what: What = "head",
    *,
    answer: tuple[int, int],
) -> Wide:
    """How far each part of run B, put into run A alone, moves the answer from A's to B's.

    The answer is the difference of two logits at the last position, those of `answer`: (id of A's token,
    id of B's). 0: it stays as in A; 1: it becomes as in B. "head": (sub-layer, head), sub-layers in order
    of execution; a head's output at all tokens. "stream": (layer, token), the residual stream before that
    layer. "feed_forward": (layer, token), what it writes. Layers and tokens are those of the stack that
    reads the text. The rest of the pass is A's, its intervention too. Raises ValueError for runs that
    cannot be laid over each other, and where both answer alike.
    """
    *_, last = patch_maps(model, trace_a, trace_b, what, answer=answer)
    return last


def patch_maps(
    model: "Model",
    trace_a: Trace,
    trace_b: Trace,
    what: What = "head",
    *,
    answer: tuple[int, int],
    turn: Turn = nullcontext,
) -> Iterator[Wide]:
    """The same map after each batch, NaN where it is still to come. Whoever stops asking stops the work.
    turn: makes a context in which one batch runs."""
    _check(model, trace_a, trace_b, answer)
    with turn():
        runs = PatchedRuns(model, trace_a, trace_b, what)
        start, end = (_answer(model, one, answer)[0] for one in (runs.run([()]), runs.theirs))
    if not abs(end - start) > 1e-6 * max(abs(start), abs(end), 1.0):
        raise ValueError("Both runs give the same answer, so there is no difference to measure.")
    shares = np.full((len(runs.sites), runs.across), np.nan)
    rows = rows_at_once(trace_a, model.config.d_vocab * (model.module.output_matrix is None))
    for first in range(0, len(runs.all), rows):
        batch = runs.all[first : first + rows]
        with turn():
            moved = _answer(model, runs.run([(patch,) for patch in batch]), answer)
        places = [(list(runs.sites).index(site), index) for site, index in batch]
        shares[tuple(np.transpose(places))] = (moved - start) / (end - start)
        yield shares.copy()


@dataclass(frozen=True, eq=False)
class Site:
    """Where a patch is put: what a part reads, or what it writes."""

    module: nn.Module
    reads: bool
    heads: int  # that lie side by side there; 0: tokens are patched


class PatchedRuns:
    """Passes over the tokens of run A with parts of run B in their place. They run in a copy of the
    module with hooks of its own, which shares the weights."""

    def __init__(self, model: "Model", trace_a: Trace, trace_b: Trace, what: What) -> None:
        self._model, self._trace = model, trace_a
        self._module = private_copy(model)
        self.sites: Mapping[str, Site] = _sites(model, trace_a, self._module, what)
        self._kept: dict[str, Tensor] = {}
        self._rows: Sequence[Sequence[Patch]] | None = None  # None: what passes is kept
        for name, site in self.sites.items():
            _hook(site, partial(self._at, name))
        self.theirs = self._pass(trace_b, 1)  # what run B ends with

    @property
    def across(self) -> int:
        """Heads, or tokens."""
        heads = max(site.heads for site in self.sites.values())
        return heads or len(self._trace.tokens)

    @property
    def all(self) -> list[Patch]:
        """Every single patch."""
        return [
            (name, index)
            for name, site in self.sites.items()
            for index in range(site.heads or self.across)
        ]

    def run(self, rows: Sequence[Sequence[Patch]]) -> Tensor:
        """(R, T, C): the last states where the model has an output matrix of its own, else its logits
        (R, T, V); each row with its patches."""
        self._rows = rows
        return self._pass(self._trace, len(rows))

    def _pass(self, trace: Trace, rows: int) -> Tensor:
        source = self._model.config.source
        recorder = Recorder(trace.intervention, source=source, deferred=True)
        with recording(recorder), torch.inference_mode():
            result: Tensor = self._module(*texts_in_rows(self._model, trace, rows))
        return result

    def _at(self, name: str, x: Tensor) -> Tensor:
        """What passes a site, with the patches that are for it."""
        if self._rows is None:
            self._kept[name] = x
            return x
        given = self._kept[name]
        # OPT leaves the batch axis out.
        patched = x.clone().reshape(len(self._rows), -1, x.shape[-1])
        theirs = given.reshape(-1, given.shape[-1])
        heads = self.sites[name].heads
        for row, patches in enumerate(self._rows):
            for site, index in patches:
                if site == name and heads:
                    width = x.shape[-1] // heads
                    columns = slice(index * width, (index + 1) * width)
                    patched[row, :, columns] = theirs[:, columns]
                elif site == name:
                    patched[row, index] = theirs[index]
        return patched.view(x.shape)


def _sites(model: "Model", trace: Trace, module: nn.Module, what: What) -> dict[str, Site]:
    """Where patches of a kind can be put, in order of execution."""
    outputs = {layer.place.name: layer for layer in model.module.attentions()}
    if what == "head":
        return {
            name: Site(
                module.get_submodule(path_of(module, layer.output.weight)), True, layer.heads
            )
            for name, layer in outputs.items()
        }
    stack = trace.source
    names = [part.name for part in contributions(trace, stack, model.config.norm_place)]
    if what == "stream":
        return {
            name: Site(block_around(module, path_of(module, outputs[name].output.weight)), True, 0)
            for name in names
            if Place.named(name).kind == "self"
        }
    sites = {
        name: Site(module.get_submodule(path_of(module, model.module.w_out(name).weight)), False, 0)
        for name in names
        if Place.named(name).kind == "feed_forward"
    }
    if not sites:
        raise ValueError(f"{model.name} has no feed-forward layers.")
    return sites


def _hook(site: Site, through: Callable[[Tensor], Tensor]) -> None:
    """Sends what a site reads or writes through a function."""

    def before(module: nn.Module, read: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if read:
            return (through(read[0]), *read[1:]), named
        first = next(name for name, value in named.items() if isinstance(value, Tensor))
        return read, {**named, first: through(named[first])}

    if site.reads:
        site.module.register_forward_pre_hook(before, with_kwargs=True, prepend=True)
    else:
        site.module.register_forward_hook(lambda module, read, gave: through(gave), prepend=True)


def _answer(model: "Model", ended: Tensor, answer: tuple[int, int]) -> Wide:
    """(R,): how far the second token's logit lies above the first's at the last position."""
    matrix, last = model.module.output_matrix, ended[:, -1]
    with torch.inference_mode():
        logits = last[:, list(answer)] if matrix is None else last @ matrix[list(answer)].T
    first, second = logits.double().cpu().numpy().T
    difference: Wide = second - first
    return difference


def _check(model: "Model", trace_a: Trace, trace_b: Trace, answer: tuple[int, int]) -> None:
    for trace in (trace_a, trace_b):
        check_model(model, trace)
    trace_a.require_prediction()
    for one, other in (
        (trace_a.tokens, trace_b.tokens),
        (trace_a.target_tokens, trace_b.target_tokens),
    ):
        if len(one) != len(other):
            raise ValueError(
                f"One text has {len(one)} tokens and the other {len(other)}: each part is copied "
                "to the same position, so both texts need the same number of tokens."
            )
    for token in answer:
        check_id(token, model.config.d_vocab, model.name)
