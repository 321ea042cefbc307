"""What Python writes for the laws of *.test.mjs: messages, and beside them the trace's own numbers."""

import json
import math
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model import Model, Trace
from model.analysis.stream.around_heads import AroundHeads
from model.loading.registry import models
from model.nn.masks import window_mask
from model.nn.places import layer_label
from model.snippets import STYLES, code_of, filled
from model.trace.records import Attention
from tests.model import hub_models, tiny
from tests.model.snippets.snippet_cases import TEXTS, around, unit
from tests.viz.explorer.records import HERO, dropping, grouped, labels, record, sent, staged
from tests.viz.explorer.records_of_today import LATER, closed
from tools.catalogue import FILE
from viz.explorer import Selection, payload
from viz.explorer.message import HeadClaim, Hero, LinkedWords, Ring, parts
from viz.notation.labels import tick_positions, token_label
from viz.notation.numbers import difference
from viz.notation.readout import readout
from viz.views.glossary.glossary import TERMS

QUERIES = Path(__file__).with_name("queries.toml")
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
    mask = attention.mask
    made["mask"] = None if mask is None or mask.ndim > 2 else mask.astype(np.uint8)
    return made


def case(attention: Attention, **more: Any) -> Cases:
    """A layer as it is sent, and what the trace has of it."""
    return {"sent": sent(attention, **more), "own": own(attention)}


def message(attention: Attention, **more: Any) -> Cases:
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    return payload(attention, queries=labels(queries), keys=labels(keys), head=0, check=0.0, **more)


def layer(attention: Attention) -> Cases:
    return {"message": message(attention), "own": own(attention)}


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


CLAIM = HeadClaim(
    "decoder.2.self",
    1,
    "What to look for.",
    (
        LinkedWords("Look at "),
        LinkedWords("the last token", (Ring(query=5),)),
        LinkedWords(", then at "),
        LinkedWords("“·cat”", (Ring(5, 1),)),
        LinkedWords(", "),
        LinkedWords("the line below the diagonal", (Ring(diagonal=-1),)),
        LinkedWords(" and "),
        LinkedWords("head 2", (), None, 2),
        LinkedWords("."),
    ),
)


@contextmanager
def light(name: str, size: int) -> Iterator[None]:
    """With so many bytes as the most that is sent at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"viz.explorer.message.{name}", size)
        yield


def wrong(attention: Attention) -> Attention:
    """With one number of an output that the pass did not make."""
    output = attention.output.copy()
    output[0, 2, 3] += 0.02
    return replace(attention, output=output)


def written() -> Cases:
    baseline, both, whole = record(6), record(6, kind="self"), LATER["all"]
    changed = replace(baseline, scale=1.0, look_ahead=False, own_mask=None)
    with light("LIGHT", 0):
        wrong_sums = sent(wrong(baseline))
    return {
        "causal": case(baseline),
        "open": case(both),
        "staged open": {"sent": sent(staged(both))},
        "other": case(record(6, seed=1)),
        "wrong": {"sent": sent(wrong(baseline))},
        "wrong sums": {"sent": wrong_sums},
        "long": case(record(100, heads=1)),
        "changed": case(changed) | {"compared": sent(changed, baseline=baseline)},
        "equal": {"sent": sent(baseline, baseline=baseline)},
        "evaluated": [
            sent(one)
            for one in (
                *(baseline, record(6, width=32)),
                *(record(6, scale=0.3), record(6, scale=1.0)),
            )
        ],
        "all": case(whole),
        "bare": without_cap(whole),
        "around": around_house(),
        "claim": {"sent": sent(baseline, claims=[CLAIM])},
        "code": case(baseline) | {"stages": code(baseline)},
        "readouts": [
            {
                "sent": sent(attention),
                "lines": [
                    (*cell, readout(attention, 1, *cell, queries=labels(6), keys=labels(6)))
                    for cell in ((3, 1), (1, 4))
                ],
            }
            for attention in (
                *(baseline, record(6, mask_value=-1e9)),
                *(record(6, scale=-0.3), staged(baseline)),
            )
        ],
    }


def without_cap(whole: Attention) -> Cases:
    bare = replace(whole, cap=None, bias=None, sinks=None)
    return {"compared": sent(bare, baseline=whole), "own": own(bare)}


def around_house() -> Cases:
    """A layer with what stands around its heads: first only said to be there, then what was asked for."""
    model = tiny.loaded("house-gpt")
    trace = model.trace("Tom Hill saw a red ball")
    attention, tokens = trace.attention[1], [token.text for token in trace.tokens]
    norm = next(norm for norm in trace.norms if norm.name == "decoder.1.self.norm")
    stream = trace.residual["decoder"]
    more = {"queries": tokens, "keys": tokens, "around": [AroundHeads(model, trace, attention)]}
    with light("LIGHT_AROUND", 0):
        first = sent(attention, **more)
    return {
        "sent": first,
        "fetched": sent(attention, Selection(1, "norm", 3, 2), **more),
        "heads": attention.heads,
        "width": model.config.d_model,
        "norm": [norm.input.astype(np.float32), norm.output.astype(np.float32)],
        "stages": {
            "positions": stream[2].astype(np.float32),
            "concatenated": np.concatenate(attention.output, axis=-1),
            "written": (stream[3] - stream[2]).astype(np.float32),
        },
    }


def code(attention: Attention) -> list[Cases]:
    """What the lines of each stage and style give when they run on the record, and the whole script."""
    q, k, v = (torch.tensor(vectors) for vectors in attention.vectors)
    names: Cases = {
        name: torch.tensor(np.stack([getattr(attention, name)(h) for h in range(attention.heads)]))
        for name in ("scores", "scaled", "masked", "weights")
    }
    names |= {"q": q, "k": k, "v": v, "torch": torch}
    made, cell = code_of(attention), {"head": 1, "query": 4, "key": 2, "dimension": 0}
    found = []
    for stage in ("scores", "scaled", "masked", "weights", "output"):
        for style in STYLES:
            snippet = made.snippets[stage][style]
            lines = [filled(line.code, cell) for line in snippet.lines]
            result, given = filled(snippet.result, cell), dict(names)
            exec("\n".join(lines), given)
            found.append(
                {
                    **{"stage": stage, "style": style, "lines": [*lines, result]},
                    "gives": float(eval(result, given)),
                    "script": made.script(stage, style, **cell),
                }
            )
    return found


def chosen() -> Cases:
    four, two, loud = record(6, heads=4), record(6, heads=2), record(6)
    query, key, value = (array.copy() for array in loud.vectors)
    query[2] *= 9
    model = tiny.loaded("house-gpt")
    trace = model.trace("Tom Hill saw a red ball. Anna gave the ball to Tom")
    tokens = [token.text for token in trace.tokens]
    with light("BUDGET", 2 * 4 * four.query[0].nbytes):
        some = {"sent": sent(four), "fetched": sent(four, Selection(3))}
    with light("LIGHT", 0):
        without_values = {
            "sent": sent(two),
            "compared": sent(two, baseline=record(6, heads=2, seed=3)),
        }
        without_values["fetched"] = sent(two, Selection(0, "output"))
    free = record(6, kind="self")
    return {
        "causal": case(record(6)),
        "open": case(free),
        "cross": case(record(4, 7, kind="cross")),
        "second": case(record(6, seed=1)),
        "fifth": case(record(7, layer=5, seed=9)),
        "small": case(record(3, heads=2, seed=3)),
        "leaking": case(record(6, mask_value=-1.0)),
        "closed": case(record(6, mask=closed([3]))),
        "long": case(record(100, heads=1)),
        "shaded": [case(record(count, heads=1)) for count in (61, 400)],
        "some heads": some | {"own": own(four)},
        "without values": without_values | {"own": own(two)},
        "loud": case(replace(loud, vectors=(query, key, value))),
        "huge": huge(),
        "house": case(trace.find("decoder.1.self"), queries=tokens, keys=tokens),
        "hero": {"sent": sent(record(6)), "simple": sent(record(6), hero=Hero(""))},
        "beside": {
            "full": sent(free, baseline=record(6)),
            "simple": sent(free, hero=Hero("No mask"), baseline=record(6)),
        },
    }


def huge() -> Cases:
    """A layer with one number that would leave all others of its norm white. Streams of large models have
    such columns."""
    model = tiny.loaded("gpt")
    trace = model.trace("the cat saw the dog")
    norm = next(norm for norm in trace.norms if norm.name == "decoder.1.self.norm")
    numbers = norm.input.copy()
    numbers[0, 3] = 1000

    class Around(AroundHeads):
        norm = property(lambda self: changed)  # type: ignore[assignment]

    changed = replace(norm, input=numbers)
    attention, tokens = trace.attention[1], [token.text for token in trace.tokens]
    around = [Around(model, trace, attention)]
    usual = float(np.percentile(np.abs(numbers), 98, method="inverted_cdf"))
    block = sent(attention, Selection(0, "norm"), queries=tokens, keys=tokens, around=around)
    return {"sent": block, "numbers": numbers.astype(np.float32), "usual": usual}


RUN = tuple(record(6, layer=layer, seed=layer) for layer in range(3))


def layers() -> Cases:
    """Layers of one run, with the others to choose."""
    names = [layer.name for layer in RUN]

    def both_ways(attention: Attention, baseline: Attention | None = None) -> Cases:
        """As it is sent first, and as it comes to a browser that has its numbers already."""
        every = [part for one in (attention, baseline) if one for part in parts(message(one))]
        more: Cases = {"layers": names, "baseline": baseline}
        first = sent(attention, **more)
        return {"sent": first, "held": sent(attention, held=every, **more), "own": own(attention)}

    return {
        "run": [both_ways(layer) for layer in RUN],
        "other": both_ways(record(6, layer=0, seed=9)),
        "changed": both_ways(record(6, layer=0, seed=7), RUN[0]),
        "more": [{"sent": sent(record(6, seed=seed), layers=names)} for seed in range(10, 16)],
        "lost": both_ways(record(6, layer=2, seed=20)),
        "turned": _turned(RUN[0], record(6, layer=0, seed=21), hero=HERO),
    }


def _turned(unchanged: Attention, changed: Attention, hero: Hero) -> Cases:
    """A run that says where a switch leads, and brings that run ahead; then the answer to the switch."""
    facts = {"run": "on", "device": "", "claims": [], "hero": asdict(hero), "certificate": None}
    on, off = ({"mask": {"on": is_on, "run": run}} for is_on, run in ((True, "off"), (False, "on")))
    ahead = message(changed, baseline=unchanged) | facts | {"run": "off", "turns": off}
    said = {"device": "", "certificate": None, "ahead": []}
    return {
        "sent": sent(unchanged, check=0.0, said=said | {"turns": on, "ahead": [ahead]}),
        "answer": sent(changed, baseline=unchanged, check=0.0, said=said | {"turns": off}),
        "own": own(changed),
        "before": own(unchanged),
    }


def search() -> Cases:
    """What the search lists while house-gpt reads a sentence."""
    model, text = tiny.loaded("house-gpt"), TEXTS["house-gpt"]
    names = model.attention_names
    return {
        "layers": [[name, layer_label(name), model.layer(name).heads] for name in names],
        "tokens": [token_label(token.text) for token in model.tokens(text)],
        "catalogue": json.loads(FILE.read_text(encoding="utf-8")),
        "models": [[entry.name, entry.title, entry.about] for entry in models.values()],
        "also": [(term.name, other) for term in TERMS for other in term.also],
        "queries": tomllib.loads(QUERIES.read_text(encoding="utf-8")),
    }


FILES = {
    "arithmetic": arithmetic,
    "written": written,
    "chosen": chosen,
    "layers": layers,
    "search": search,
}
