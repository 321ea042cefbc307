"""The layouts in which other programs keep attention: where each number of a sub-layer stands, and back.

TransformerLens names every number (`blocks.3.attn.hook_q`); nnsight has module paths and whatever was saved
there; Hugging Face's library gives weights alone; serving engines have queries and keys as (token, head, d).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.exchange.files import GivenArrays
from model.exchange.layers import GivenLayer, gives_weights, one_text, precision_of, vectors_by_head
from model.nn.config import Stack
from model.nn.places import Place
from model.trace.arrays import Array, read_only
from model.trace.precision import SINGLE
from model.trace.trace import Trace
from model.trace.unproven import proven, proven_states

FormatName = Literal["transformer_lens", "nnsight", "huggingface", "vllm", "headvis", "trace"]


@dataclass(frozen=True, eq=False)
class GivenRun:
    """What a program kept of a pass: its sub-layers, and what it kept beside them."""

    layers: Sequence[GivenLayer]
    summands: Mapping[str, Array]  # (token, d_model): "tokens", "positions"
    states: tuple[Array, ...] = ()  # (token, d_model) each, from the first to the last
    hidden: Mapping[int, tuple[Array, Array]] | None = (
        None  # by layer: before and after the activation
    )
    written: Mapping[str, Array] | None = None
    logits: Array | None = None
    precision: float = SINGLE


@dataclass(frozen=True)
class ExchangeFormat:
    """One layout.

    Args:
        title: in a sentence.
        fits: whether arrays by name are of it.
        reads: the run that they hold, of one text of a batch; with the factor on the scores and the number of
            heads, if known.
        writes: the arrays of a trace.
    """

    title: str
    fits: Callable[[GivenArrays], bool]
    reads: Callable[[GivenArrays, int, float | None, int | None], GivenRun]
    writes: Callable[[Trace], Mapping[str, NDArray[Any]]]


# TransformerLens: `run_with_cache`, of its own models and, from version 3 on, of bridges to others, which
# name some numbers otherwise. Axes: batch, pos, head_index, d_head.

_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)", re.ASCII)
VECTOR_HOOKS = {"query": ("attn.hook_rot_q", "attn.hook_q"), "key": ("attn.hook_rot_k", "attn.hook_k"),
                 "value": ("attn.hook_v",), "output": ("attn.hook_z",)}  # fmt: skip
CELL_HOOKS = {"scores": "attn.hook_attn_scores", "weights": "attn.hook_pattern"}
# What a bridge calls the same number; of two names for one, the first that was kept.
OF_BRIDGES = {
    "attn.q.hook_out": "attn.hook_q", "attn.k.hook_out": "attn.hook_k",
    "attn.v.hook_out": "attn.hook_v", "attn.o.hook_in": "attn.hook_z", "hook_in": "hook_resid_pre",
    "hook_out": "hook_resid_post", "ln1_post.hook_out": "hook_attn_out", "attn.hook_out": "hook_attn_out",
    "ln2_post.hook_out": "hook_mlp_out", "mlp.hook_out": "hook_mlp_out",
    "mlp.gate.hook_out": "mlp.hook_pre", "mlp.in.hook_out": "mlp.hook_pre",
    "mlp.out.hook_in": "mlp.hook_post",
}  # fmt: skip
MIDDLE = ("hook_resid_mid", "ln2.hook_in")  # the state after attention, where the model has one
SUMMANDS = {"tokens": "hook_embed", "positions": "hook_pos_embed"}
FEED_FORWARD = ("mlp.hook_pre", "mlp.hook_post")
_TURNING = ("rotary_emb.", ".attn.hook_cos", ".attn.hook_rot_q")  # what rotary models alone keep
_ROUNDINGS = 32  # of a sum of two states, as shares of the largest number of either
_HEADS = 4  # axes of vectors that are split into heads


def _of_transformer_lens(
    arrays: GivenArrays, batch: int, scale: float | None, heads: int | None
) -> GivenRun:
    blocks: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        if (matched := _BLOCK.fullmatch(name)) and array is not None:
            blocks.setdefault(int(matched[1]), {})[matched[2]] = array
    for hooks in blocks.values():
        for name, usual in OF_BRIDGES.items():
            of_heads = usual.startswith("attn.hook")
            split = not of_heads or getattr(hooks.get(name), "ndim", 0) == _HEADS
            if name in hooks and usual not in hooks and split:
                hooks[usual] = hooks[name]
    layers = []
    turned = any(part in name for name in arrays for part in _TURNING)
    for number, hooks in sorted(blocks.items()):
        kept: dict[str, Any] = {}
        for field, names in VECTOR_HOOKS.items():
            used = names[:1] if turned else names  # the other ones are from before their positions
            for name in [one for one in used if one in hooks][:1]:
                kept[field] = _heads_first(hooks[name], f"blocks.{number}.{name}", batch)
        for field, name in CELL_HOOKS.items():
            if name in hooks:
                scores = field == "scores"
                cells = one_text(hooks[name], f"blocks.{number}.{name}", 3, batch, lowered=scores)
                if scores and _are_weights(
                    cells
                ):  # as bridges call them, to models that keep no scores
                    field = "weights"
                kept[field] = cells
        if kept.keys() & {"query", "key", "scores", "weights"}:
            module = f"blocks.{number}.attn"
            precision = precision_of(*hooks.values())
            layers.append(GivenLayer(number, module, **kept, scale=scale, precision=precision))

    def plain(name: str) -> Array:
        matched = _BLOCK.fullmatch(name)
        given = arrays[name] if matched is None else blocks[int(matched[1])][matched[2]]
        return read_only(one_text(given, name, 2, batch, lowered=name == "logits"))

    if turned and blocks and not layers:
        raise ValueError(
            "Its queries and keys are from before their positions, so no weights follow from them: keep "
            "hook_pattern too."
        )
    before, after = FEED_FORWARD
    return GivenRun(
        layers,
        {field: plain(name) for field, name in SUMMANDS.items() if name in arrays},
        _states(blocks, plain, precision_of(*arrays.values())),
        {
            number: (plain(f"blocks.{number}.{before}"), plain(f"blocks.{number}.{after}"))
            for number, hooks in blocks.items()
            if before in hooks and after in hooks
        },
        {
            Place("decoder", number, "feed_forward").name: plain(f"blocks.{number}.hook_mlp_out")
            for number, hooks in blocks.items()
            if "hook_mlp_out" in hooks
        },
        plain("logits") if "logits" in arrays else None,  # unembed.hook_out is from before a cap
        precision_of(*arrays.values()),
    )


def _are_weights(cells: Array) -> bool:
    """Whether numbers called scores are weights: none below 0, and rows that sum to 1."""
    return bool((cells >= 0).all() and np.allclose(cells.sum(-1), 1, atol=0.02))


def _states(
    blocks: Mapping[int, Mapping[str, Any]], plain: Callable[[str], Array], precision: float
) -> tuple[Array, ...]:
    """The states of the stream in order, where all of them were kept; those after attention only where the
    model has them: there, what attention or the feed-forward wrote is the step from one state to the next."""
    ends = ["blocks.0.hook_resid_pre"] + [f"blocks.{n}.hook_resid_post" for n in sorted(blocks)]
    kept = {f"blocks.{number}.{name}" for number, hooks in blocks.items() for name in hooks}
    if [*sorted(blocks)] != [*range(len(blocks))] or not kept.issuperset(ends):
        return ()
    states = [plain(ends[0])]
    for number, end in enumerate(ends[1:]):
        middle = next((name for name in MIDDLE if name in blocks[number]), None)
        after = plain(end)
        if middle is not None:
            between = plain(f"blocks.{number}.{middle}")
            steps = (("hook_attn_out", states[-1], between), ("hook_mlp_out", between, after))
            fits = [
                bool(np.abs(first + plain(f"blocks.{number}.{name}") - second).max() <= allowed)
                for name, first, second in steps
                if name in blocks[number]
                for allowed in [
                    _ROUNDINGS * precision * max(np.abs(first).max(), np.abs(second).max())
                ]
            ]
            if all(fits) and (fits or middle == MIDDLE[0]):
                states.append(between)
        states.append(after)
    whole = len(states) in (len(ends), 2 * len(ends) - 1)
    return tuple(states) if whole else tuple(plain(name) for name in ends)


def _to_transformer_lens(trace: Trace) -> Mapping[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for one, known in vectors_by_head(_of_one_stack(trace)):
        block = f"blocks.{one.layer}"
        turned = one.projection.turned
        hooks = {name: names[0 if turned else -1] for name, names in VECTOR_HOOKS.items()}
        for name, array in known.items():
            if name in hooks:
                arrays[f"{block}.{hooks[name]}"] = array.transpose(1, 0, 2)[None]
            else:
                arrays[f"{block}.{CELL_HOOKS[name]}"] = array[None]
    (stack,) = trace.stacks
    summands = proven_states(trace.summands).get(stack, {})
    for name, hook in SUMMANDS.items():
        if name in summands:
            arrays[hook] = summands[name][None]
    states = proven_states(trace.residual).get(stack, ())
    layers = len(trace.attention)
    if states and len(states) - 1 in (layers, 2 * layers):
        middle = ("mid",) if len(states) - 1 == 2 * layers else ()
        names = [
            f"blocks.{n}.hook_resid_{part}" for n in range(layers) for part in (*middle, "post")
        ]
        names = ["blocks.0.hook_resid_pre", *names]
        arrays |= {name: state[None] for name, state in zip(names, states, strict=True)}
    for feed in proven(trace.feed_forward):
        block = f"blocks.{Place.named(feed.name).layer}"
        for name, array in zip(FEED_FORWARD, (feed.before, feed.hidden), strict=True):
            arrays[f"{block}.{name}"] = array[None]
    return arrays


# nnsight: module paths, and what was saved there: a tensor, a tuple of outputs and weights, or an entry of
# `tracer.cache()` with an `output`. Axes of weights: batch, head, query, key; of maps: batch, token, width.

_PATH = re.compile(
    r"(?P<module>(?:.*\.)?(?P<layer>\d+)\.(?:[\w]*\.)*?(?:attn|self_attn|attention|self|self_attention))"
    r"(?:\.(?P<part>.+))?",
    re.ASCII,
)
PARTS = {"q_proj": "query", "query": "query", "k_proj": "key", "key": "key", "v_proj": "value",
          "value": "value"}  # fmt: skip
_PROJECTIONS = ("q_proj", "k_proj", "v_proj")
FUSED = (
    "c_attn",
    "qkv",
    "qkv_proj",
    "Wqkv",
    "query_key_value",
)  # queries, keys and values in one map


def _of_nnsight(
    arrays: GivenArrays, batch: int, scale: float | None, heads: int | None
) -> GivenRun:
    modules: dict[tuple[int, str], dict[str, Any]] = {}
    for path, saved in arrays.items():
        matched = _path(path)
        if matched is None:
            continue
        saved = getattr(saved, "output", saved)
        kept = modules.setdefault((int(matched["layer"]), matched["module"]), {})
        part = (matched["part"] or "").removesuffix(".output").rpartition(".")[2]
        for one in saved if isinstance(saved, tuple | list) else (saved,):
            if getattr(one, "ndim", 0) == 4:
                kept["weights"] = one
            elif part in (*PARTS, *FUSED) and getattr(one, "ndim", 0) in (2, 3):
                kept[part] = one
    layers = []
    for (number, module), kept in sorted(modules.items()):
        cells = kept.pop("weights", None)
        if cells is None and "c_attn" not in kept:
            continue
        weights = None
        if cells is not None:
            weights = one_text(cells, f"the weights of {module}", 3, batch)
            heads = len(weights)
        elif heads is None:
            raise ValueError(
                f"Of {module} its map alone was kept, which does not tell how many heads read it: give heads."
            )
        maps = {name: one_text(one, f"{module}.{name}", 2, batch) for name, one in kept.items()}
        precision = precision_of(cells, *kept.values())
        certain = not {*maps} & {*FUSED[1:]}  # GPT-2's are side by side
        for vectors in _projected(maps, module, heads):
            layer = GivenLayer(
                number, module, weights=weights, **vectors, scale=scale, precision=precision
            )
            if certain or not vectors or gives_weights(layer):
                break
        layers.append(layer)
    if modules and not layers:
        raise ValueError(
            "Neither attention weights nor c_attn was kept. Other maps (q_proj, qkv_proj …) do not give the "
            "weights, as positions are turned into queries and keys after them: save the output of the "
            'attention too, of a model with attn_implementation="eager".'
        )
    return GivenRun(layers, {}, precision=precision_of(*arrays.values()))


def _projected(maps: dict[str, Array], module: str, heads: int) -> Iterator[Mapping[str, Any]]:
    """Queries, keys and values from the outputs of their maps, whose widths are those of all heads; of a map
    of all three as they may lie in it, and none at last."""
    fused = next((maps[name] for name in FUSED if name in maps), None)
    names = ("query", "key", "value")
    if fused is None:
        yield dict(_by_heads(maps, module, heads))
    elif fused.shape[1] % (3 * heads) == 0:
        yield dict(_by_heads(dict(zip(names, np.split(fused, 3, -1), strict=True)), module, heads))
        of_heads = fused.reshape(len(fused), heads, 3, -1).transpose(2, 1, 0, 3)
        yield dict(zip(names, map(np.ascontiguousarray, of_heads), strict=True))
    yield {}


def _by_heads(maps: Mapping[str, Array], module: str, heads: int) -> Iterator[tuple[str, Array]]:
    named = {PARTS[name]: one for name, one in maps.items()}
    if "query" not in named:
        return
    width = named["query"].shape[1] // heads
    for name, one in named.items():
        if not width or one.shape[1] % width:
            raise ValueError(
                f"The {name} of {module} has the width {one.shape[1]}, which is no number of heads as wide "
                f"as those of the queries, {width}."
            )
        yield name, one.reshape(len(one), -1, width).transpose(1, 0, 2)


def _to_nnsight(trace: Trace) -> Mapping[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for one, known in vectors_by_head(_of_one_stack(trace)):
        path = f"model.layers.{one.layer}.self_attn"
        for name, part in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
            if name in known:
                flat = known[name].transpose(1, 0, 2)
                arrays[f"{path}.{part}"] = flat.reshape(1, len(flat), -1)
        if "weights" in known:
            arrays[f"{path}.source.attention_interface_0.output"] = known["weights"][None]
    return arrays


# Hugging Face's library: `output_attentions=True`. Axes: batch, head, query, key.

ATTENTIONS: Mapping[str, tuple[Stack | None, bool]] = {
    "attentions": (None, False),
    "encoder_attentions": ("encoder", False),
    "decoder_attentions": ("decoder", False),
    "cross_attentions": ("decoder", True),
}
_NUMBERED = re.compile(r"((?:encoder_|decoder_|cross_)?attentions)\.(\d+)", re.ASCII)


def _of_huggingface(
    arrays: GivenArrays, batch: int, scale: float | None, heads: int | None
) -> GivenRun:
    layers = []
    for name, given in arrays.items():
        numbered = _NUMBERED.fullmatch(name)
        kind = numbered[1] if numbered else name
        if kind not in ATTENTIONS or given is None:
            continue
        stack, crosses = ATTENTIONS[kind]
        listed = {int(numbered[2]): given} if numbered else dict(enumerate(given))
        for number, one in listed.items():
            if one is None:
                raise ValueError(
                    f"{kind} of layer {number} is None: the model ran with attention that keeps no weights. "
                    'Load it with attn_implementation="eager".'
                )
            weights = one_text(one, f"{kind} of layer {number}", 3, batch)
            module, precision = f"{kind}.{number}", precision_of(one)
            given_layer = GivenLayer(number, module, weights=weights, stack=stack, crosses=crosses)
            layers.append(replace(given_layer, precision=precision))
    if not layers:
        raise ValueError(
            "The attentions are empty: the model ran with attention that keeps no weights. Load it with "
            'attn_implementation="eager".'
        )
    order = {"encoder": 0, None: 1, "decoder": 1}
    layers.sort(key=lambda one: (order[one.stack], one.number, one.crosses))
    logits = arrays.get("logits")
    return GivenRun(
        layers,
        {},
        logits=None
        if logits is None
        else read_only(one_text(logits, "logits", 2, batch, lowered=True)),
        precision=max(one.precision for one in layers),
    )


def _to_huggingface(trace: Trace) -> Mapping[str, NDArray[Any]]:
    named = {(None, False): "attentions"} | {of: name for name, of in ATTENTIONS.items() if of[0]}
    several = len(trace.stacks) > 1
    return {
        f"{named[one.stack if several else None, one.kind == 'cross']}.{one.layer}": one.weights()[
            None
        ]
        for one in trace.attention
    }


# A serving engine: queries as (token, head, d), keys and values as (token, key head, d); no batch, because
# the tokens of all requests stand one behind the other.

_DUMPED = re.compile(r"(?:.*\.)?(\d+)\.(?:.*\.)?(q|k|v|out|query|key|value|output)", re.ASCII)
DUMPS = {"q": "query", "k": "key", "v": "value", "out": "output"}


def _of_vllm(arrays: GivenArrays, batch: int, scale: float | None, heads: int | None) -> GivenRun:
    layers: dict[int, dict[str, Any]] = {}
    for name, given in arrays.items():
        matched = _DUMPED.fullmatch(name)
        if matched is not None:
            field = DUMPS.get(matched[2], matched[2])
            layers.setdefault(int(matched[1]), {})[field] = _heads_first(given, name, batch)
    precision = precision_of(*arrays.values())
    given = [
        GivenLayer(number, f"layers.{number}", **kept, scale=scale, precision=precision)
        for number, kept in sorted(layers.items())
    ]
    return GivenRun(given, {}, precision=precision)


def _to_vllm(trace: Trace) -> Mapping[str, NDArray[Any]]:
    if any(one.kind != "causal" for one in trace.attention):
        raise ValueError(
            "This format keeps no mask: it holds runs of one stack that looks back alone."
        )
    short = {full: name for name, full in DUMPS.items()}
    return {
        f"layers.{one.layer}.{short[name]}": array.transpose(1, 0, 2)
        for one, known in vectors_by_head(_of_one_stack(trace))
        for name, array in known.items()
        if name in short
    }


def _heads_first(given: Any, name: str, batch: int) -> Array:
    """(token, head, d) to (head, token, d)"""
    return np.ascontiguousarray(one_text(given, name, 3, batch).transpose(1, 0, 2))


def _of_one_stack(trace: Trace) -> tuple[Any, ...]:
    """The sub-layers. Raises ValueError for a trace of two stacks, which these layouts cannot tell apart."""
    if len(trace.stacks) > 1:
        raise ValueError("This format holds one stack; the trace has an encoder and a decoder.")
    return trace.attention


def _is_nnsight(arrays: GivenArrays) -> bool:
    """Whether some module path of attention has a tensor of four axes, alone or among others, or is that of a
    map to queries, keys or values."""
    for path, saved in arrays.items():
        saved = getattr(saved, "output", saved)
        several = saved if isinstance(saved, tuple | list) else (saved,)
        matched = _path(path)
        part = ((matched and matched["part"]) or "").removesuffix(".output")
        if matched and (
            part in (*_PROJECTIONS, *FUSED) or any(getattr(one, "ndim", 0) == 4 for one in several)
        ):
            return True
    return False


def _path(path: str) -> "re.Match[str] | None":
    return _PATH.fullmatch(path.replace("[", ".").replace("]", ""))


FORMATS: Mapping[FormatName, ExchangeFormat] = {
    "transformer_lens": ExchangeFormat(
        "a cache of TransformerLens",
        lambda names: any(".attn.hook_" in name for name in names),
        _of_transformer_lens,
        _to_transformer_lens,
    ),
    "huggingface": ExchangeFormat(
        "attentions of Hugging Face's library",
        lambda names: any(name in ATTENTIONS or _NUMBERED.fullmatch(name) for name in names),
        _of_huggingface,
        _to_huggingface,
    ),
    "nnsight": ExchangeFormat("values saved by nnsight", _is_nnsight, _of_nnsight, _to_nnsight),
    "vllm": ExchangeFormat(
        "queries and keys of a serving engine",
        lambda names: any(_DUMPED.fullmatch(name) for name in names),
        _of_vllm,
        _to_vllm,
    ),
}
