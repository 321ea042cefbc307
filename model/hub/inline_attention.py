"""Leads attention that a module computes itself, softmax(QKᵀ)V line by line, through our `attend`; and what a
few families need that no general rule gives.

Such a module calls no attention function (GPT-Neo, GPT-J, MPNet). One watched pass tells which of its
operations are the product of queries and keys, the softmax, and the product with the values. In every later
pass the first of them gives zeros, so what reaches the softmax is what the module's own code adds to its
scores: biases and masks. The last one is replaced by `attend`, with the queries, keys and values that the two
products read. So no family is described here, and the module's own masks are used.

Axes: B batch, H heads, T queries, S keys, D width of a head.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from model.capture.lineage import (
    PRODUCTS,
    SOFTMAX,
    Letters,
    Node,
    Product,
    TensorOrigin,
    UnreadableError,
    arranged,
    nodes_in,
    product_of,
)
from model.capture.record import recorded
from model.capture.stages import OWN_FACTORS, WEIGHED, WrittenByHand, written_by_hand
from model.capture.watch import Graph, Watch, name_of
from model.hub.attention import hub_attention
from model.nn.positions import PositionKind
from model.nn.recorder import current

_COUNTED = PRODUCTS | SOFTMAX
# Old code adds -10,000 to a hidden score (bfloat16: -9,984); ALiBi less than 8,192 at the longest distance.
_HIDES = -9_900.0


@dataclass(frozen=True)
class AttentionOperations:
    """Which operations of one run of a module are its attention. They are numbered among its products and
    softmaxes."""

    scores: int
    softmax: int
    output: int
    key_side: int  # which operand of the scores the keys are
    weight_side: int  # which operand of the output the weights are
    heads: int
    scale: float
    cap: float | None
    factors: tuple[float, float]  # in the queries and the keys already; `scale` includes them
    bias_heads: int  # how many heads have biases of their own: 0 without any, 1 where all share one
    bias_in_rows: bool  # whether it differs from query to query; ALiBi's needs no rows


class InlineForward:
    """The forward of a module whose attention goes through `attend`. Where an intervention removes positions,
    every token has position 0: so a module that rotates its own queries and keys does not turn them."""

    def __init__(self, module: nn.Module, steps: AttentionOperations) -> None:
        self._module, self.steps = module, steps

    def __call__(self, *given: Any, **named: Any) -> Any:
        positions = named.get("position_ids")
        if isinstance(positions, Tensor) and not current().intervention.positions:
            named["position_ids"] = torch.zeros_like(positions)
        with _InlineRun(self._module, self.steps):
            return type(self._module).forward(self._module, *given, **named)


def lead_inline(
    body: nn.Module, run: Callable[[], object], inputs: list[Tensor], known: Iterable[nn.Module]
) -> str:
    """Leads the attention of every module that computes it itself through `attend`. Returns why some
    attention of the pass cannot be led, or "".

    Args:
        run: one pass of the body.
        inputs: the ids of the pass.
        known: modules that call the attention function.
    """
    search = _Search(body, inputs, known)
    with search.numbering(body), torch.inference_mode(), search:
        run()
    for module, steps in search.steps.items():
        if len(steps) == 1 and "forward" not in vars(module):
            module.forward = InlineForward(module, *steps)
    several = [type(module).__name__ for module, steps in search.steps.items() if len(steps) > 1]
    if several:
        return f"its layers ({several[0]}) attend in several steps of which each is another softmax"
    return search.reason


def is_inline(module: nn.Module) -> bool:
    """Whether the attention of a module was led through `attend`."""
    return isinstance(vars(module).get("forward"), InlineForward)


def adds_to_scores(module: nn.Module) -> bool:
    """Whether such a module adds more to its scores than a mask."""
    return is_inline(module) and bool(vars(module)["forward"].steps.bias_heads)


class _Running:
    """One run of a module, and how many of the counted operations it has taken."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.count = module, 0


OperationNumbers = dict[_Running, int]  # of an operation in each module that runs


class _Search(Watch):
    """Finds the attention that modules compute themselves."""

    def __init__(self, body: nn.Module, inputs: list[Tensor], known: Iterable[nn.Module]) -> None:
        super().__init__(body, inputs, 0)
        self.steps: dict[nn.Module, set[AttentionOperations]] = {}
        self.reason = ""
        self._known = set(known)
        self._running: list[_Running] = []
        self._numbers: dict[
            int, OperationNumbers
        ] = {}  # by the serial number of what an operation gave
        self._now: OperationNumbers = {}

    @contextmanager
    def numbering(self, body: nn.Module) -> Iterator[None]:
        """Counts the operations of every run of every module."""

        def enter(module: nn.Module, read: object) -> None:
            self._running.append(_Running(module))

        def leave(module: nn.Module, read: object, gave: object) -> None:
            self._running.pop()

        with ExitStack() as stack:
            for module in body.modules():
                stack.enter_context(module.register_forward_pre_hook(enter))
                stack.enter_context(module.register_forward_hook(leave))
            yield

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if name_of(function) not in _COUNTED:
            return super().__torch_function__(function, types, args, kwargs)
        self._now = numbers = {one: one.count for one in self._running}
        for running in self._running:
            running.count += 1
        result = super().__torch_function__(function, types, args, kwargs)
        self._numbers[self._graph.node(result).serial] = numbers
        return result

    def _look_at(self, node: Node, call: TensorOrigin) -> None:
        try:
            found = None if call.name not in PRODUCTS else written_by_hand(node)
            if found is not None:
                self._note(found)
                self._graph.forget(node.tensor)
        except UnreadableError as error:
            self.reason = (
                self.reason or f"the attention of {self._module()} cannot be read: {error}"
            )

    def _note(self, found: WrittenByHand) -> None:
        scores = self._numbers[found.scores.node.serial]
        softmax = self._numbers.get(found.weights[0].serial)
        if softmax is None:
            raise UnreadableError("its softmax is written out")
        owner = next(one for one in reversed(scores) if one in softmax and one in self._now)
        if owner.module in self._known:
            return
        seen = found.seen()
        if seen.sinks is not None or {OWN_FACTORS, WEIGHED} & {*seen.doubts}:
            raise UnreadableError(
                "its scores are changed in a way that belongs to none of the stages"
            )
        record, _gap = recorded(seen)
        if record.own_mask is not None and record.own_mask.ndim > 2:
            raise UnreadableError("its heads have different masks")
        if any(len(one) > 4 for one in (found.scores.letters, found.product.letters)):
            raise UnreadableError("it reads the text in pieces")
        self.steps.setdefault(owner.module, set()).add(
            AttentionOperations(
                scores=scores[owner],
                softmax=softmax[owner],
                output=self._now[owner],
                key_side=found.key_side,
                weight_side=found.side,
                heads=len(seen.query),
                scale=seen.scale,
                cap=seen.cap,
                factors=found.factors,
                bias_heads=0 if record.bias is None else len(record.bias),
                bias_in_rows=record.bias is not None and record.bias.shape[1] > 1,
            )
        )


class _InlineRun(TorchFunctionMode):
    """One run of a module: its own operations, with `attend` in place of softmax(QKᵀ)V."""

    def __init__(self, module: nn.Module, steps: AttentionOperations) -> None:
        super().__init__()
        self._module, self._steps = module, steps
        self._count = 0
        self._vectors: tuple[Tensor, Tensor] | None = None
        self._added: Tensor | None = None

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        name = name_of(function)
        if name not in _COUNTED:
            return function(*args, **named)
        number, self._count = self._count, self._count + 1
        if number == self._steps.softmax and name in SOFTMAX:
            self._added = args[0] if args else named["input"]
            return self._added.new_zeros(()).expand(self._added.shape)
        if number not in (self._steps.scores, self._steps.output):
            return function(*args, **named)
        call = Graph((), ()).call(name, function, args, named)
        product = product_of(Node(next(nodes_in(call.arguments)).tensor, call))
        if product is None:
            raise ValueError("its attention takes other steps than when it was checked")
        return self._no_scores(product) if number == self._steps.scores else self._attended(product)

    def _no_scores(self, product: Product) -> Tensor:
        """Zeros in the place of queries · keys. The vectors are kept, (B, H, T, D)."""
        side = self._steps.key_side
        lead = _leading(product.letters, product.only(0) + product.only(1))
        query, key = (
            self._by_head(product, at, (*lead, product.only(at)[-1], *product.summed()))
            for at in (1 - side, side)
        )
        self._vectors = query / self._steps.factors[0], key / self._steps.factors[1]
        sizes = _sizes(product)
        zeros = product.operands[0].tensor.new_zeros([sizes[one] for one in product.letters])
        return zeros if product.added is None else zeros + product.added

    def _attended(self, product: Product) -> Tensor:
        """What `attend` makes of the vectors, laid out as the product with the values is."""
        if self._vectors is None or self._added is None:
            raise ValueError("its attention takes other steps than when it was checked")
        side = 1 - self._steps.weight_side
        token, width = product.only(1 - side)[-1], product.only(side)[-1]
        lead = _leading(product.letters, (token, width))
        value = self._by_head(product, side, (*lead, *product.summed(), width))
        query, key = self._vectors
        heads = self._steps.heads
        added = self._added if self._added.ndim == 4 else self._added.unflatten(0, (-1, heads))
        allowed, bias = added[:, :1] > _HIDES, None
        if self._steps.bias_heads:
            bias = added[:, : self._steps.bias_heads].masked_fill(~allowed, -torch.inf)
            if not self._steps.bias_in_rows:
                bias = bias.amax(-2, keepdim=True)  # of the queries that may look at a key
            bias = bias.masked_fill(bias == -torch.inf, 0.0)
        output, _none = hub_attention(
            self._module,
            query,
            key,
            value.to(query.dtype),
            allowed,
            self._steps.scale,
            is_causal=False,
            position_bias=bias,
            softcap=self._steps.cap,
        )
        output = output.transpose(1, 2).to(value.dtype)
        if len(lead) == 1:
            output = output.flatten(0, 1)
        return arranged(output, (*lead, token, width), product.letters)

    def _by_head(self, product: Product, side: int, wanted: Letters) -> Tensor:
        """(B, H, T, D): an operand with its axes in this order."""
        tensor = arranged(product.operands[side].tensor, product.axes[side], wanted)
        return tensor if tensor.ndim == 4 else tensor.unflatten(0, (-1, self._steps.heads))


def _leading(letters: Letters, own: Letters) -> Letters:
    """The axes of a product that number texts and heads: all but its rows and columns."""
    return tuple(one for one in letters if one not in own)


def _sizes(product: Product) -> dict[str, int]:
    """The size of every axis of a product."""
    sizes: dict[str, int] = {}
    for operand, axes in zip(product.operands, product.axes, strict=True):
        for letter, size in zip(axes, operand.tensor.shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return sizes


# What a few families need that no general rule gives.
# Falcon with ALiBi is the one whose eager attention, which every model is held against, is not its own fused
# one: the biases are added twice. So its attention is replaced, at load and in the loaded model alone, by the
# same steps with our function in the middle. Axes: B batch, T tokens, S keys, H heads, D width of a head, C
# width of the model.

Gave = tuple[Tensor, None]


def adapt(body: nn.Module) -> None:
    """Replaces the forward of every module that has an adapter. One that somebody else has replaced stays: it
    does not go through our `attend`, so its model is refused."""
    for module in body.modules():
        forward = _ADAPTERS.get(_class_of(module))
        if forward is not None and "forward" not in vars(module):
            module.forward = MethodType(forward, module)


@contextmanager
def unadapted(body: nn.Module) -> Iterator[None]:
    """The library's own forward of every module, for the library's own run."""
    found = {
        module: vars(module).pop("forward")
        for module in body.modules()
        if is_inline(module)
        or getattr(vars(module).get("forward"), "__func__", None) in _ADAPTERS.values()
    }
    try:
        yield
    finally:
        for module, forward in found.items():
            module.forward = forward


@contextmanager
def reference_mended(body: nn.Module) -> Iterator[None]:
    """Corrects the library's eager run where it differs from its own fused one: eager Falcon adds its ALiBi
    biases twice, once in the attention and once in the mask."""
    with ExitStack() as stack:
        for module in body.modules():
            if _class_of(module) == "falcon.FalconAttention":
                hook = module.register_forward_pre_hook(_without_alibi, with_kwargs=True)
                stack.callback(hook.remove)
        yield


def position_kind(attention: nn.Module) -> PositionKind | None:
    """How an attention module puts positions into its scores; None where it does not."""
    if isinstance(getattr(attention, "relative_attention_num_buckets", None), int):
        return "buckets"
    match _class_of(attention):
        case "bloom.BloomAttention" | "mpt.MptAttention":
            return "alibi"
        case "falcon.FalconAttention":
            return "alibi" if getattr(attention.config, "alibi", False) else None
        case "deberta_v2.DisentangledSelfAttention":
            return "disentangled" if attention.relative_attention else None
    return None


def _class_of(module: nn.Module) -> str:
    """The folder and the name of a class of the library: bloom.BloomAttention."""
    return f"{type(module).__module__.split('.')[-2:][0]}.{type(module).__name__}"


def _without_alibi(
    module: nn.Module, read: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    mask = named["attention_mask"]
    if named["alibi"] is None or mask is None:
        return read, named
    hides = mask == torch.finfo(mask.dtype).min
    return read, {**named, "attention_mask": mask.masked_fill(~hides, 0.0)}


def _falcon(
    self: Any,
    hidden_states: Tensor,
    alibi: Tensor | None,
    attention_mask: Tensor | None,
    layer_past: Any = None,
    position_embeddings: tuple[Tensor, Tensor] | None = None,
    **_: object,
) -> Gave:
    """Rotary positions, or ALiBi: there the scores are divided by √D after the bias is added."""
    fused = self.query_key_value(hidden_states)
    if self.new_decoder_architecture:  # each head of keys stands behind the queries that share it
        grouped = fused.unflatten(-1, (self.num_kv_heads, -1, self.head_dim))
        query, key, value = (
            grouped[..., :-2, :].flatten(2, 3),
            grouped[..., -2, :],
            grouped[..., -1, :],
        )
    else:
        query, key, value = self._split_heads(fused)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if alibi is None and position_embeddings is not None:
        turn = sys.modules[type(self).__module__].apply_rotary_pos_emb
        query, key = turn(query, key, *position_embeddings)
    if layer_past is not None:
        key, value = layer_past.update(key, value, self.layer_idx)
    mask, bias = attention_mask, None
    if alibi is not None:
        bias = alibi.reshape(-1, self.num_heads, 1, alibi.shape[-1]) * self.inv_norm_factor
        if mask is not None and mask.dtype.is_floating_point:  # the biases are in it already
            mask = mask > torch.finfo(mask.dtype).min
    context, _none = hub_attention(
        self, query, key, value, mask, self.inv_norm_factor, position_bias=bias
    )
    return self.dense(context.flatten(2)), None


def _falcon_feed_forward(self: Any, x: Tensor) -> Tensor:
    """A copy: its layer adds attention's output to it in place, and what its last map gave is recorded."""
    gave: Tensor = self.dense_4h_to_h(self.act(self.dense_h_to_4h(x)))
    return gave.clone()


_ADAPTERS: dict[str, Callable[..., Gave | Tensor]] = {
    "falcon.FalconAttention": _falcon,
    "falcon.FalconMLP": _falcon_feed_forward,
}
