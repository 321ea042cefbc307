"""What Python writes for the laws of *.test.mjs: messages, and beside them the trace's own numbers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from model import Model, Trace
from model.analysis.stream.around_heads import AroundHeads
from model.nn.masks import window_mask
from model.trace.records import Attention
from tests.model import hub_models, tiny
from tests.model.snippets.snippet_cases import TEXTS, around, unit
from tests.viz.explorer.records import grouped, labels, record
from tests.viz.explorer.records_of_today import LATER, closed
from viz.explorer import payload
from viz.notation.labels import tick_positions
from viz.notation.numbers import difference

Cases = dict[str, Any]
VECTORS = ("query", "key", "value", "output")
STEPS = ("scores", "scaled", "capped", "biased", "masked", "weights")
STEPS += ("sink_weights", "context")
RANDOM = np.random.default_rng(3)
LAYERS = {
    "causal": record(6, kind="causal"),
    "open": record(6, kind="self"),
    "unscaled": record(6, kind="self", scale=1.0),
    "negative": record(6, kind="self", scale=-0.3),
    "one": record(1),
    "cross": record(5, 9, kind="cross"),
    "holes": record(9, 5, kind="cross", mask=RANDOM.random((9, 5)) > 0.4),
    "rows": record(6, mask=closed([0, 3])),
    "all": record(6, mask=closed(list(range(6)))),
    "large": record(40, heads=2, width=64, seed=4),
    "grouped": grouped(record(6, heads=6)),
    "window": record(9, mask=window_mask(9, 9, 3, causal=True).numpy()),
    "both ways": record(9, kind="self", mask=window_mask(9, 9, 4, causal=False).numpy()),
    **{f"later: {name}": attention for name, attention in LATER.items()},
}
SET = ((1, 3, 2, 0.25), (1, 3, 0, 0.5), (1, 4, 1, 1.0), (2, 0, 0, 0.0))


def own(attention: Attention) -> Cases:
    """What the trace itself has of a layer, head after head."""
    made: Cases = {"heads": attention.heads, "queries": attention.query.shape[1]}
    for name in (*VECTORS, *STEPS, *(["dropped"] if attention.drops else [])):
        found = getattr(attention, name)
        of_head = found.__getitem__ if name in VECTORS else found
        every = np.stack([of_head(head) for head in range(attention.heads)]).astype(np.float32)
        made["sinkWeights" if name == "sink_weights" else name] = every
    return made


def message(attention: Attention, **more: Any) -> Cases:
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    return payload(attention, queries=labels(queries), keys=labels(keys), head=0, check=0.0, **more)


def layer(attention: Attention) -> Cases:
    return {"message": message(attention), "own": own(attention)}


def dropping(attention: Attention) -> Attention:
    """The same layer in a pass that dropped half of its weights and doubled the others."""
    heads = range(attention.heads)
    weights = np.stack([attention.weights(head) for head in heads])
    kept = np.random.default_rng(0).random(weights.shape) > 0.5
    steps = {
        "scores": np.stack([attention.scores(head) for head in heads]),
        "masked": np.stack([attention.masked(head) for head in heads]),
        "weights": weights,
        "dropped": (weights * np.float32(2) * kept).astype(np.float32),
    }
    dropped = replace(attention, steps=steps)
    return replace(dropped, output=np.stack([dropped.context(head) for head in heads]))


def arithmetic() -> Cases:
    each_mask = np.random.default_rng(5).random((3, 6, 6)) > 0.5
    layers = {
        f"{name}, masked with {value}": layer(replace(attention, mask_value=value))
        for name, attention in LAYERS.items()
        for value in (-math.inf, -1e9, -1e20, 0.0)
    }
    layers["causal"] = layer(record(6))
    layers["weights set by hand"] = layer(replace(record(5), weights_set=SET)) | {"of": [0, 1, 2]}
    own_mask = layer(replace(record(6), own_mask=each_mask, look_ahead=False))
    for head in range(3):  # the numbers of a layer whose every head has this mask
        alone = own(record(6, mask=each_mask[head]))
        for name in ("masked", "weights", "context"):
            own_mask["own"][name][head] = alone[name][head]
    layers["a mask of each head"] = own_mask | {"of": [0, 1, 2]}
    drawn = 10 ** np.random.default_rng(0).uniform(-12, 0, 200)
    bounds = [0.0, 1.49e-6, 7e-7, 9.01e-7, 0.5, *map(float, drawn)]
    counts = [(count, limit) for count in (0, 1, 5, 32, 33, 64, 65, 1000) for limit in (1, 7, 32)]
    return {
        "layers": layers,
        "closed": layer(record(6, mask=closed([2, 3]))),
        "dropping": layer(dropping(record(5))),
        "wrong": {"message": message(replace(record(6), scale=record(6).scale * 1.001))},
        "ticks": [(*one, list(tick_positions(*one))) for one in counts],
        "bounds": [(value, difference(value)) for value in bounds],
        "around": {
            name: around_the_heads(name)
            for name in ("house-gpt", "minilm", "translate-en-fr", "llama", "qwen3")
        },
        "long": long_layers(),
    }


def around_the_heads(name: str) -> Cases:
    """A layer of a shipped model, or of a small one of a family of the hub."""
    model: Model = tiny.loaded(name) if name in TEXTS else hub_models.loaded(name)
    trace: Trace = model.trace(TEXTS.get(name, hub_models.TEXT))
    attention = trace.attention[-1]
    case = (model, trace, attention)
    normed = ["query_norm", "key_norm"] if attention.projection.normed else []
    numbers = {
        stage: np.ascontiguousarray(around(case, stage, 1), np.float32)
        for stage in ["positions", "norm", "concatenated", "written", *normed]
    }
    outputs = [float(model.head_output(attention, head)[3, 5]) for head in range(attention.heads)]
    return {
        "message": message(attention, around=[AroundHeads(model, trace, attention)]),
        "own": own(attention),
        "outputs": outputs,
        "turned": bool(attention.projection.turned),
        "stages": {
            stage: {"numbers": made, "width": made.shape[1], "unit": float(unit(case, stage, 1))}
            for stage, made in numbers.items()
        },
    }


def long_layers() -> Cases:
    """Layers of which only the weights are kept."""
    length = 2100
    distances = np.subtract.outer(np.arange(length), np.arange(length)).astype(np.float32)
    more = {"cap": 1.5, "bias": -0.01 * distances[None], "sinks": np.ones(2, np.float32)}
    near = {"own_mask": window_mask(length, length, 100, causal=True).numpy(), "look_ahead": False}
    return {
        f"{name}, masked with {value}": message(
            replace(record(length, heads=2, width=4, mask_value=value), **more, **window)
        )
        for value in (-math.inf, -1e9)
        for name, window in {"every key": {}, "a window": near}.items()
    }


FILES = {"arithmetic": arithmetic}
