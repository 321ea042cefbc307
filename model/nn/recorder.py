"""What a pass leaves behind while it runs.

Layers write into the recorder of the current context, and keep nothing where there is none. A
context variable keeps threads and sessions apart: hooks on a shared module would serve everybody.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.nn.activations import Activation
from model.nn.config import Stack
from model.nn.intervention import MASKS, UNCHANGED, Intervention
from model.nn.key_value_cache import KeyValueCache
from model.nn.norms import NormKind
from model.nn.patches import HookKind, Hooks
from model.nn.places import Place
from model.nn.stages import STAGES
from model.system import deadline
from model.system.threads import threads

Level = Literal["nothing", "attention", "full"]


@dataclass(frozen=True, kw_only=True)
class AttentionCall:
    """What one attention sub-layer computes from: vectors (B, H, T, D), mask (…, T, S)."""

    place: Place
    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    mask: Tensor | None
    cap: float | None  # on the scaled scores
    bias: Tensor | None  # added to them: 4 axes, broadcasts to (B, H, T, S)
    sinks: Tensor | None  # (H,): logits of the softmax's one more column
    window: int | None  # keys that the model's own sliding window lets a query read
    look_ahead: bool = (
        False  # whether the kernel makes the look-ahead mask itself; `mask` is None then
    )
    mask_value: float = -math.inf

    @property
    def groups(self) -> int:
        """Heads of queries that share one head of keys and values."""
        return self.query.shape[1] // self.key.shape[1]

    @property
    def is_masked(self) -> bool:
        return self.look_ahead or self.mask is not None

    @property
    def needs_steps(self) -> bool:
        """Whether it has what PyTorch's kernel cannot compute."""
        filled = self.is_masked and math.isfinite(self.mask_value)
        return filled or any(one.is_in(self) and not one.by_kernel for one in STAGES)


@dataclass(frozen=True, kw_only=True)
class AttentionTensors(AttentionCall):
    """The same with what it gave."""

    output: Tensor  # (B, H, T, D)
    steps: dict[str, Tensor]  # explicit passes only: "scores", "masked", "weights", "dropped" …
    rerun: "Rerun | None" = None  # gives the vectors and the output, of which only sizes are left


@dataclass(frozen=True, eq=False)
class Rerun:
    """A sub-layer of a pass, to be run once more on what it read there: the same code with the same numbers
    gives the same bits, on as many threads."""

    run: Callable[[], object]
    modules: tuple[nn.Module, ...]  # that it runs
    intervention: Intervention
    source: Stack
    longest: tuple[Tensor, Tensor]  # (head,), (key head,): the lengths of the longest vectors
    threads: int = field(default_factory=torch.get_num_threads)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """Those that it reads, where they are now."""
        return tuple(weight for one in self.modules for weight in one.parameters())

    def __call__(self) -> AttentionTensors:
        """All that it computed from, and what it gave."""
        recorder = Recorder(self.intervention, "attention", source=self.source)
        with threads(self.threads), recording(recorder), torch.inference_mode():
            self.run()
        return recorder.attention[0]


@dataclass(frozen=True)
class NormTensors:
    """One norm as it ran: (B, T, width) input, (B, T, 1) statistics."""

    name: str
    kind: NormKind
    input: Tensor
    mean: Tensor
    inverse_deviation: Tensor
    epsilon: float
    gamma: Tensor
    beta: Tensor | None
    output: Tensor | None  # kept at level "full"


@dataclass(frozen=True)
class FeedForwardTensors:
    """The hidden layer of one feed-forward as it ran: (B, T, M)."""

    name: str
    before: Tensor  # before the activation
    hidden: Tensor | None  # after it; None where it can be recomputed from `before`
    activation: Activation | None = None


@dataclass(frozen=True)
class ExpertTensors:
    """Which experts read each token of one feed-forward (Shazeer et al. 2017): (B·T, …) each."""

    name: str
    logits: Tensor  # (B·T, expert): of the router
    weights: Tensor  # (B·T, k): of the experts chosen, as their outputs are weighed
    chosen: Tensor  # (B·T, k): their numbers


@dataclass(frozen=True)
class TableRows:
    """A summand of the embedding: rows of a table (V, C), times a factor."""

    table: Tensor
    ids: Tensor | None = None  # (B, T): which rows; None: all of them
    factor: float = 1.0

    def made(self) -> Tensor:
        """(B, T, C); (T, C) where every text has the same."""
        rows = self.table if self.ids is None else F.embedding(self.ids, self.table)
        return rows if self.factor == 1.0 else rows * self.factor


@dataclass
class Recorder:
    """Collects the tensors of one pass, and carries the intervention that the pass runs with.

    `hooks`: one after another they change what passes the points of a pass. `cache`: what the decoder keeps
    of the tokens before; the pass reads the new ones only.
    """

    intervention: Intervention = UNCHANGED
    level: Level = "nothing"
    explicit: bool = False
    source: Stack = "decoder"  # the stack that reads the text
    deferred: bool = False  # logits and embedding are recomputed from the model's tables when asked
    reruns: bool = False  # attention sub-layers are run once more when their vectors are asked for
    hooks: Sequence[Hooks] = ()
    patched: bool = (
        False  # whether hooks put in the parts of another run that the intervention names
    )
    cache: KeyValueCache | None = None
    attention: list[AttentionTensors] = field(default_factory=list)
    norms: list[NormTensors] = field(default_factory=list)
    streams: dict[Stack, list[Tensor]] = field(default_factory=dict)
    feed_forward: list[FeedForwardTensors] = field(default_factory=list)
    experts: list[ExpertTensors] = field(default_factory=list)
    written: dict[str, Tensor] = field(default_factory=dict)  # by sub-layers without known maps
    calls: dict[object, int] = field(default_factory=dict)  # how often a part was called
    summands: dict[Stack, dict[str, Tensor]] = field(default_factory=dict)
    tables: dict[Stack, dict[str, TableRows]] = field(default_factory=dict)  # of a deferred pass
    unfinished: dict[str, Tensor] = field(default_factory=dict)  # of a sub-layer still running
    normed: tuple[Tensor, Callable[[], Tensor]] | None = None  # what a norm gave, and gives again
    refusals: list[tuple[Tensor, str]] = field(default_factory=list)  # why, where it turns out true

    @property
    def keeps(self) -> bool:
        return self.level != "nothing"

    @property
    def keeps_all(self) -> bool:
        return self.level == "full"

    def through(self, kind: HookKind, name: str, x: Tensor) -> Tensor:
        """What goes on from a point that x passes."""
        for hooks in self.hooks:
            if (hook := hooks.get((kind, name))) is not None:
                changed = hook(x)
                x = x if changed is None else changed
        return x

    def drop_for_rerun(self, run: Callable[[], object], *modules: nn.Module) -> None:
        """Keeps of the attention sub-layer that has just run no more than its sizes and its mask, where it is
        run again when the vectors are asked for. run: does so, and holds nothing that is not kept anyway.
        modules: those that it runs."""
        call = self.attention[-1] if self.reruns and self.attention else None
        if call is None or call.steps:
            return
        sizes = {
            name: getattr(call, name).to("meta") for name in ("query", "key", "value", "output")
        }
        queries, keys = (one[0].float().norm(dim=-1).amax(-1) for one in (call.query, call.key))
        rerun = Rerun(run, modules, self.intervention, self.source, (queries, keys))
        self.attention[-1] = replace(call, **sizes, rerun=rerun)

    def intervention_at(self, place: Place, window: int | None = None) -> Intervention:
        """What the intervention changes in one attention sub-layer. window: the sub-layer's own.

        Hidden positions are those of the text. Only a causal mask and a window can be lifted, and
        cross-attention becomes causal only where `only` names it.
        """
        intervention = self.intervention
        if intervention == UNCHANGED or not intervention.applies(place.name):
            return UNCHANGED
        crosses = place.kind == "cross"
        if MASKS[intervention.mask].removes_model_mask:
            masks = place.kind == "causal" or (place.kind == "self" and window is not None)
        else:
            masks = not crosses or intervention.only is not None
        reads_text = crosses or place.stack == self.source
        return replace(
            intervention,
            mask=intervention.mask if masks else "model",
            window=intervention.window if not crosses or intervention.only is not None else None,
            hidden=intervention.hidden if reads_text else frozenset(),
        )

    def call_index(self, part: object, calls_per_pass: int) -> int:
        """Which of a part's calls in a pass this is, counted from 0."""
        count = self.calls.get(part, 0)
        self.calls[part] = count + 1
        return count % calls_per_pass

    def refuse(self, wrong: Tensor, why: str) -> None:
        """Refuses the pass where this turns out true, once it is over: to ask a GPU now is to wait for it."""
        self.refusals.append((wrong, why))

    def stream(self, stack: Stack, state: Tensor) -> Tensor:
        """Keeps one state of the residual stream and returns it. Raises where the pass is over its
        limits."""
        deadline.look()
        if self.keeps:
            self.streams.setdefault(stack, []).append(state)
        return state

    def entering(self, name: str, stack: Stack, state: Tensor) -> Tensor:
        """What a layer reads: the state of the stream before it, or what was put in its place, with the
        numbers that were set by hand. The kept states hold it too.

        Args:
            name: of the layer's first attention sub-layer.
            state: (B, T, C).
        """
        read, steering = self.through("stream", name, state), self.intervention.steering
        if steering is not None and steering.place == name:
            for hook in steering.hooks(read.device).values():
                read = read if (changed := hook(read)) is None else changed
        read = _with_numbers(read, self.intervention.stream_in(name))
        states = self.streams.get(stack)
        if read is not state and states:
            last = states[-1]
            if last.data_ptr() == state.data_ptr():
                states[-1] = read
            elif last.shape == state.shape:  # DeBERTa multiplies its embedding by the mask
                states[-1] = torch.where((last == state).all(), read, last)
        return read


def _with_numbers(state: Tensor, numbers: tuple[tuple[int, int, float], ...]) -> Tensor:
    """(…, token, d_model): a state with these numbers, (token, dimension, value), in each row of a batch."""
    if not numbers:
        return state
    changed = state.clone()
    for token, dimension, value in numbers:
        changed[..., token, dimension] = value
    return changed


_SILENT = Recorder()
_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def current() -> Recorder:
    """The recorder of this context; outside `recording` one that keeps and changes nothing."""
    return _current.get() or _SILENT


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Runs the body with this recorder, in this thread or task only. Raises ValueError where nobody puts in
    the parts of another run that its intervention asks for, and at the end for what the pass has refused."""
    if recorder.intervention.patch is not None and not recorder.patched:
        raise ValueError("Parts of another sentence are put in by `Model.trace` alone.")
    token = _current.set(recorder)
    try:
        yield recorder
    finally:
        _current.reset(token)
    for wrong, why in recorder.refusals:
        if wrong:
            raise ValueError(why)
    recorder.refusals.clear()
