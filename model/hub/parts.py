"""The parts of a Hugging Face model that are shown, each with its name and its module: stacks, layers, norms,
experts, the matrix that makes logits, and parameters that do not follow from the sizes of a config.

Axes: B batch, T tokens, C width of the model, H heads, D width of a head.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import is_map, weight_and_bias
from model.hub.probe import CLOSE, FeedForwardParts, PartCall, Probe
from model.nn.config import Reasons, Shape, Stack, TransformerConfig
from model.nn.norms import NORMS, NormKind, NormPlace
from model.nn.places import Place


@dataclass(frozen=True, eq=False)
class NormPart:
    """A norm: x to (x - mean)/deviation · gamma + beta."""

    name: str  # decoder.3.self.norm
    module: nn.Module
    kind: NormKind | None  # None: neither of ours
    epsilon: float
    offset: float  # added to the module's weight to make gamma: 1 where the module keeps gamma - 1


@dataclass(frozen=True, eq=False)
class AttentionPart:
    """An attention sub-layer: the module that calls the attention function, and W_O."""

    place: Place
    module: nn.Module
    output: nn.Module | None  # W_O, (B, T, H·D) to (B, T, C); None where it reads something else
    writes: nn.Module | None  # the part whose output, (B, T, C), goes to the stream: W_O or another
    heads: int
    key_heads: int
    head_width: int
    norm: NormPart | None  # what it reads, or its sum with the stream, goes through it
    after: NormPart | None = None  # what it writes goes through it, before the sum
    window: int | None = None  # keys that a query reads at most


@dataclass(frozen=True, eq=False)
class FeedForwardPart:
    """A feed-forward sub-layer."""

    name: str  # decoder.3.feed_forward
    parts: FeedForwardParts | None  # None where its neurons are not told, as those of experts
    entry: nn.Module  # the first of its parts to read the stream
    whole: nn.Module | None = None  # what it writes, where its neurons are not told
    router: nn.Module | None = None  # chooses the experts of each token
    norm: NormPart | None = None
    after: NormPart | None = None


@dataclass(frozen=True, eq=False)
class BlockPart:
    """One layer: its sub-layers in order."""

    module: nn.Module
    attentions: tuple[AttentionPart, ...]
    feed_forward: FeedForwardPart | None
    turn: int = 0  # which of the runs of its module in a pass this is
    turns: int = 1


@dataclass(frozen=True, eq=False)
class StackPart:
    """One stack: its embeddings, its layers, and the norms before and after them."""

    stack: Stack
    tokens: nn.Module | None  # None where what is added up before the first layer is not known
    token_factor: float  # what the rows of the token table are multiplied by
    positions: nn.Module | None
    first_position: int  # the row of position 0 in a table of positions
    segments: nn.Module | None
    embedding_norm: NormPart | None
    starts_normed: bool  # whether the first layer reads what that norm gives, as it is
    blocks: tuple[BlockPart, ...]
    final_norm: NormPart | None
    norm_place: NormPlace | None  # None where the stream is not known
    parallel: bool  # attention and feed-forward read the same state, and both are added


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The parts of a model in order of execution, and why others are not known."""

    shape: Shape
    width: int
    stacks: tuple[StackPart, ...]
    rotary: tuple[nn.Module, ...]
    unproven: Reasons

    def attentions(self) -> tuple[AttentionPart, ...]:
        return tuple(
            part for stack in self.stacks for block in stack.blocks for part in block.attentions
        )


PYTORCHS = 1e-5


def norm_part(call: PartCall, name: str) -> NormPart:
    """The kind of norm, and the offset of γ, that reproduce this norm's output; no kind where none does."""
    module, read = call.module, call.read
    unknown = NormPart(name, module, None, _epsilon(module), 0.0)
    if read is None or gamma_of(unknown, read).shape != read.shape[-1:]:
        return unknown
    differences = {
        part: _difference(part, read, call.gave)
        for kind in NORMS
        for offset in (0.0, 1.0)
        for part in [replace(unknown, kind=kind, offset=offset)]
    }
    nearest = min(differences, key=differences.__getitem__)
    return nearest if differences[nearest] <= CLOSE else unknown


def gamma_of(part: NormPart, read: Tensor) -> Tensor:
    """(C,): γ of a norm of such tensors; ones where it has none."""
    weight = getattr(part.module, "weight", None)
    if not isinstance(weight, Tensor):
        return torch.ones(read.shape[-1], dtype=read.dtype, device=read.device)
    return weight if part.offset == 0 else weight + part.offset


def beta_of(part: NormPart) -> Tensor | None:
    """(C,), or None."""
    beta = getattr(part.module, "bias", None)
    return beta if isinstance(beta, Tensor) else None


def _epsilon(norm: nn.Module) -> float:
    """The ε of a norm, under the name that its library gives it; without one PyTorch's own."""
    found = [getattr(norm, name, None) for name in ("eps", "variance_epsilon", "epsilon")]
    return next((float(value) for value in found if isinstance(value, float | int)), PYTORCHS)


def _difference(norm: NormPart, read: Tensor, gave: Tensor) -> float:
    """How far a norm's output is from the described one's, relative to its largest number."""
    if norm.kind is None:
        return math.inf
    x, beta = read.double(), beta_of(norm)
    learned = gamma_of(norm, x).double(), None if beta is None else beta.double()
    made, _, _ = NORMS[norm.kind].apply(x, *learned, norm.epsilon)
    return float((made - gave).abs().max()) / max(float(gave.abs().max()), 1e-6)


_LATENTS = {  # of our config, as the library names them on an attention
    "query_latent": "q_lora_rank",
    "key_latent": "kv_lora_rank",
    "turned_key": "qk_rope_head_dim",
    "value_size": "v_head_dim",
}
UNKNOWN = "its feed-forward layers are made of experts in a layout that this app does not know"


def latent_sizes(attention: nn.Module) -> dict[str, Any]:
    """Of queries, keys and values that are made of latent vectors (DeepSeek-V2, 2024); nothing of others."""
    if not isinstance(getattr(attention, "kv_lora_rank", None), int):
        return {}
    return {ours: getattr(attention, theirs, None) or 0 for ours, theirs in _LATENTS.items()}


def expert_sizes(anatomy: Anatomy, found: Probe) -> dict[str, Any]:
    """Of the feed-forward layers that choose experts; nothing of a model without. Raises ValueError where
    layers differ, or are not of gated experts alone behind layers without any."""
    feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
    routed = [part is not None and part.router is not None for part in feeds]
    if not any(routed):
        return {}
    dense = routed.index(True)
    kinds = [_layer(part, anatomy.width, found) for part in feeds[dense:] if part is not None]
    if not all(routed[dense:]) or any(kind != kinds[0] for kind in kinds):
        raise ValueError(UNKNOWN)
    return kinds[0] | {"dense_layers": dense}


def _layer(part: FeedForwardPart, width: int, found: Probe) -> dict[str, Any]:
    """The sizes of one layer of experts."""
    router, whole = part.router, part.whole
    gave = (call.whole for call in found.calls if call.module is router)
    chosen = [given[2] for given in gave if isinstance(given, tuple)]
    weight = getattr(router, "weight", None)
    if whole is None or not chosen or not isinstance(weight, Tensor):
        raise ValueError(UNKNOWN)
    known = {id(one) for one in (router.parameters() if router is not None else ())}
    inner = [one for one in whole.parameters() if id(one) not in known]
    stacked = [one for one in inner if one.ndim == 3]
    count, hidden = len(weight), min((one.numel() for one in stacked), default=0) // width
    hidden //= count
    maps = [one for one in whole.modules() if is_map(one) and one is not router]
    shared = sum(weight_and_bias(one)[0].numel() for one in maps)
    biases = sum(one.numel() for one in inner if one.ndim == 2 and len(one) == count)
    sizes = {
        "experts_read": chosen[0].shape[-1],
        "d_expert": hidden,
        "d_shared": shared // (3 * width),
        "expert_bias": biases > 0,
        "router_bias": getattr(router, "bias", None) is not None,
    }
    numbers = 3 * width * (count * hidden + sizes["d_shared"]) + biases
    fits = sum(one.numel() for one in inner) == numbers
    if not fits or biases not in (0, count * (2 * hidden + width)):
        raise ValueError(UNKNOWN)
    return sizes


IN_SCORES = ("rel_embeddings", "pos_key_proj", "pos_query_proj", "encoder.LayerNorm.")  # DeBERTa
ROWS_TO_SPARE = "Positions without a token"  # rows in front of the first one, or past the context


def extra_parameters(body: Any, anatomy: Anatomy, config: TransformerConfig) -> dict[str, int]:
    """By part: the number of parameters that `parameter_parts` does not count from the config."""
    found: Counter[str] = Counter()
    known: set[int] = set()

    def take(weights: Iterable[nn.Parameter], part: str = "") -> None:
        for weight in weights:
            if id(weight) not in known:
                known.add(id(weight))
                found[part] += weight.numel()

    first, *others = anatomy.stacks
    tables: set[str] = set()
    for name, weight in body.named_parameters():
        if "relative_attention_bias" in name:
            stack_name = name.split(".")[0]
            later = "Biases of distances of later layers"
            if not config.buckets:  # beside learned positions (MPNet)
                take([weight], "Biases of distances")
            take([weight], later if stack_name in tables else "")  # the config counts one a stack
            tables.add(stack_name)
        elif any(word in name for word in IN_SCORES):
            take([weight], "Positions in the scores")
    for stack in anatomy.stacks:
        take(weight for block in stack.blocks for weight in block.module.parameters())
    for part in (first.tokens, first.segments, _norm(first)):
        take(_of(part))
    if not config.norms_sum:
        for stack in anatomy.stacks:
            take(_of(stack.final_norm.module if stack.final_norm else None))
    output = body.get_output_embeddings()
    if output is not None:
        take(weight for name, weight in output.named_parameters() if name == "weight")
        take(_of(output), "Bias of the output")
    for stack in anatomy.stacks:
        found.update(_positions(stack, stack is first, config, known))
    for stack in others:
        take(_of(stack.tokens), f"Token embedding of the {stack.stack}")
        take(_of(stack.segments), f"Segment embedding of the {stack.stack}")
        take(_of(_norm(stack)), f"Norm after the embedding of the {stack.stack}")
    for name, weight in body.named_parameters():
        take([weight], f"{name.rpartition('.')[0]}, not used here")
    del found[""]
    return dict(found)


def _positions(
    stack: StackPart, is_first: bool, config: TransformerConfig, known: set[int]
) -> dict[str, int]:
    """Parameters of a stack's position table that do not follow from the sizes."""
    found = {}
    for table in _of(stack.positions):
        if id(table) in known:
            continue
        known.add(id(table))
        rows, width = table.shape
        used = min(config.n_ctx, rows)
        learned = config.has_position_table
        if not (is_first and learned):
            kind = "Position embedding" if learned else "Table of sines"
            found[f"{kind} of the {stack.stack}"] = used * width
        if rows > used:
            found[ROWS_TO_SPARE] = (rows - used) * width
    return found


def _norm(stack: StackPart) -> nn.Module | None:
    return None if stack.embedding_norm is None else stack.embedding_norm.module


def _of(part: nn.Module | None) -> Iterable[nn.Parameter]:
    return () if part is None else part.parameters()


# What the library does after the layers: the model's own code for its logits, run on given states.
# So a factor, a bias or a cap on the logits is computed by the library itself.


def headless(body: Any) -> str:
    """Why a model without an output matrix has no logits."""
    return (
        f"it runs as {type(body).__name__}, which has no matrix that makes logits of tokens "
        "(AutoModelForCausalLM, for instance, has one)"
    )


def writes_logits(body: Any) -> bool:
    """Whether a model of the library has an output matrix."""
    return body.get_output_embeddings() is not None


def run(
    body: Any, shape: Shape, source: Tensor, target: Tensor | None, **options: bool | int | Tensor
) -> tuple[Any, Tensor]:
    """A pass of the library's model: all that it hands out, and its logits, or the last states of an encoder
    and of a model without an output matrix.

    Args:
        source: (B, S) ids.
        target: (B, T) ids of a second stack; None: there is none.
        options: further arguments of the library's `forward`.
    """
    fed = {} if target is None else {"decoder_input_ids": target}
    cache = {} if shape == "encoder" else {"use_cache": False}
    made = body(input_ids=source, **fed, **cache, **options)
    has_logits = shape != "encoder" and writes_logits(body)
    return made, made.logits if has_logits else made.last_hidden_state


def head_of(body: nn.Module, stacks: Sequence[StackPart]) -> Callable[[Tensor], Tensor]:
    """The function from final states (1, T, C) to logits (1, T, V). Raises the library's own error where its
    code needs more than the states."""

    def logits(states: Tensor) -> Tensor:
        layers = {id(block.module) for stack in stacks for block in stack.blocks}
        head = copy(body)  # its parts are shared, the list of them is its own
        head._modules = {
            name: _Given(states) if _holds(part, layers) else part
            for name, part in body._modules.items()
        }
        ids = torch.zeros(states.shape[:2], dtype=torch.long, device=states.device)
        fed = {"decoder_input_ids": ids} if len(stacks) > 1 else {}
        made: Tensor = head(input_ids=ids, use_cache=False, **fed).logits
        return made

    return logits


def _holds(part: nn.Module | None, layers: set[int]) -> bool:
    return part is not None and any(id(inner) in layers for inner in part.modules())


class _Given(nn.Module):
    """Takes the place of the layers and of the parts that hold them: whatever it is called with, it returns
    the given states."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self._states = states

    def forward(self, *read: object, **named: object) -> "_Output":
        return _Output(self._states)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return self


class _Output:
    """The output of a stack: its states. Any other attribute is None."""

    def __init__(self, states: Tensor) -> None:
        self.last_hidden_state = states

    def __getitem__(self, number: int) -> Tensor | None:
        return self.last_hidden_state if number == 0 else None

    def __getattr__(self, name: str) -> None:
        return None
