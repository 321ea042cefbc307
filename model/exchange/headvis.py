"""HeadVis' folders: attention of single heads as JSON, as its pipeline and Neuronpedia's write them.

`config.json` lists the heads, `scatter_data.json` has numbers of each, and `heads/L3H5.json` the texts of one
head with its weights as places and values: place = query · tokens + key. Weights below a bound and beyond the
largest of a row are left out there.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model.analysis.heads.statistics import entropy, families
from model.exchange.files import bound
from model.exchange.formats import GivenRun
from model.exchange.layers import GivenLayer
from model.system.files import json_object
from model.trace.arrays import Array, read_only
from model.trace.trace import Trace

EDGES = (
    0,
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
    256,
    512,
    1024,
    2048,
    4096,
)  # of distances, as HeadVis draws them
KEPT, LEAST = 8, 0.005  # weights of a row, and the smallest one, as its pipeline keeps them
_BINS, _TOP = 50, 50  # of largest weights, and tokens that are listed
DESCRIPTIONS = {
    "self_attention_score": "Mean weight of each token on itself.",
    "prev_token_score": "Mean weight on the token before.",
    "pattern_entropy": "Mean entropy of the rows, in nats.",
    "qk_distance": "Mean distance of query and key, by weight.",
    "qk_distance_variance": "Variance of that distance.",
    "induction_score": "Mean weight on the token after an earlier occurrence of the same token.",
}


def read_headvis(path: Path) -> tuple[GivenRun, tuple[str, ...], str]:
    """The weights of one text, its tokens, and the model's name, of a folder or of one head's file.

    Of a folder the text is the one that all heads have: a folder whose heads have texts of their own is read
    head by head. Of a head's file it is the text with the largest weight. Weights that were left out are 0.
    Raises ValueError for other files.
    """
    files = [path] if path.is_file() else [*_heads(path)]
    read = [_head(file) for file in files]
    if len(read) > 1:
        common = Counter(tuple(text["tokens"]) for texts in read for text in texts)
        tokens, heads = common.most_common(1)[0]
        if heads < len(read):
            raise ValueError(
                f"The heads of {path.name} have texts of their own, as those of Neuronpedia: open the file "
                "of one head, heads/L0H0.json."
            )
        texts = [next(one for one in each if tuple(one["tokens"]) == tokens) for each in read]
    else:
        texts = [max(read[0], key=lambda one: max(one["attention_values"], default=0.0))]
    config = path / "config.json" if path.is_dir() else path.parent.parent / "config.json"
    model = json_object(config).get("model_name") if config.is_file() else None
    return _run(files, texts), tuple(texts[0]["tokens"]), str(model or "a model of HeadVis")


def _heads(folder: Path) -> Iterator[Path]:
    """The files of all heads that the folder's description lists."""
    try:
        listed = json_object(folder / "config.json")["heads"]
        places = [(int(layer), int(head)) for layer, head in listed]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder.name} is no folder of HeadVis: its config.json lists no heads."
        ) from error
    for layer, head in places:
        yield folder / "heads" / f"L{layer}H{head}.json"


def _head(file: Path) -> list[dict[str, Any]]:
    """The texts of one head. Raises ValueError where the file holds none that fit its weights."""
    try:
        texts = json_object(file)["sequences"]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file.name} is no head of HeadVis: it has no sequences.") from error
    fitting = isinstance(texts, list) and texts and all(map(_fits, texts))
    if not fitting:
        raise ValueError(f"The sequences of {file.name} do not fit their weights.")
    return list(texts)


def _fits(text: Any) -> bool:
    """Whether each place of a text's weights is one of its cells, and each weight a share."""
    match text:
        case {
            "tokens": [_, *_] as tokens,
            "attention_indices": list(places),
            "attention_values": list(values),
        } if len(places) == len(values):
            cells = len(tokens) ** 2
            return (
                cells <= bound()
                and all(isinstance(one, str) for one in tokens)
                and all(type(one) is int and 0 <= one < cells for one in places)
                and all(isinstance(one, int | float) and 0 <= one <= 1.001 for one in values)
            )
    return False


def _run(files: Sequence[Path], texts: Sequence[Mapping[str, Any]]) -> GivenRun:
    if sum(4 * len(text["tokens"]) ** 2 for text in texts) > bound():
        raise ValueError("These heads have more weights than are read here (ATTENTION_TRACE_MB).")
    layers: dict[int, dict[int, Array]] = {}
    for file, text in zip(files, texts, strict=True):
        layer, _, head = file.stem.removeprefix("L").partition("H")
        if not (layer.isdecimal() and head.isdecimal()):
            raise ValueError(f"{file.name} names no head, as L3H5.json does.")
        count = len(text["tokens"])
        weights = np.zeros(count * count, np.float32)
        weights[text["attention_indices"]] = text["attention_values"]
        layers.setdefault(int(layer), {})[int(head)] = weights.reshape(count, count)
    return GivenRun(
        [
            GivenLayer(
                number, f"L{number}", weights=read_only(np.stack([heads[h] for h in sorted(heads)]))
            )
            for number, heads in sorted(layers.items())
        ],
        {},
    )


def write_headvis(trace: Trace, folder: Path) -> None:
    """Writes a folder that HeadVis' page reads: this text alone, with every head's weights. Raises ValueError
    for a trace of several kinds of heads."""
    known = families(trace)
    if len(known) > 1:
        raise ValueError("HeadVis shows one stack without cross-attention; the trace has more.")
    members = known[0].members(trace)
    heads = [(one.layer, head) for one in members for head in range(one.heads)]
    (folder / "heads").mkdir(parents=True, exist_ok=True)
    (folder / "attributions").mkdir(exist_ok=True)
    tokens = [token.text for token in trace.queries_of(members[0])]
    ids = [token.id for token in trace.queries_of(members[0])]
    rows = []
    for one in members:
        for head in range(one.heads):
            weights = one.weights(head)
            rows.append({"layer": one.layer, "head": head} | _numbers(weights, ids))
            _json(folder / "heads" / f"L{one.layer}H{head}.json", _of_head(weights, tokens))
    config = {
        "model_name": trace.model,
        "dataset_name": "one text",
        "heads": [list(one) for one in heads],
        "n_layers": 1 + max(layer for layer, _ in heads),
        "n_heads": 1 + max(head for _, head in heads),
        "n_intervals": 1,
        "metrics": list(DESCRIPTIONS),
        "metric_descriptions": DESCRIPTIONS,
        "head_data_pattern": "L{layer}H{head}.json",
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": [
            {"key": "qk_distance_histogram", "label": "Distance of query and key"},
            {"key": "histogram", "label": "Largest weights"},
        ],
        "custom_tables": [
            {"key": "top_query_tokens", "label": "Top query tokens"},
            {"key": "top_key_tokens", "label": "Top key tokens"},
        ],
        "statistics_display": {"n_samples": {"label": "Texts", "format": "default"}},
        "pipeline_config": {
            "model_name": trace.model,
            "dataset_name": "one text",
            "n_sequences": 1,
            "seq_len": len(tokens),
            "dtype": "float32",
            "attn_implementation": "recorded",
        },
    }
    for name, content in {
        "config.json": config,
        "scatter_data.json": rows,
        "server_config.json": {},
        "attributions/manifest.json": {},
    }.items():
        _json(folder / name, content)


def _json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, allow_nan=False) + "\n", encoding="utf-8")


def _numbers(weights: Array, ids: Sequence[int]) -> dict[str, float]:
    """The six numbers of a head, of the whole matrix. weights (T, T)."""
    queries, keys = np.indices(weights.shape)
    apart, whole = np.abs(queries - keys), max(float(weights.sum()), 1e-12)
    mean = float((weights * apart).sum()) / whole
    named = np.asarray(ids)
    after = np.zeros_like(weights, bool)  # the key follows an earlier token like the query's
    after[:, 1:] = named[:, None] == named[None, :-1]
    after &= keys <= queries
    rows = after.any(1)
    numbers = {
        "self_attention_score": float(np.diagonal(weights).mean()),
        "prev_token_score": float(np.diagonal(weights, -1).mean()) if len(weights) > 1 else 0.0,
        "pattern_entropy": float(entropy(weights).mean()),
        "qk_distance": mean,
        "qk_distance_variance": float((weights * (apart - mean) ** 2).sum()) / whole,
        "induction_score": float((weights * after).sum(1)[rows].mean()) if rows.any() else 0.0,
    }
    return {name: round(number, 4) for name, number in numbers.items()}


def _of_head(weights: Array, tokens: Sequence[str]) -> dict[str, Any]:
    """The file of one head: its largest weights of each row, and what they add up to."""
    count = len(tokens)
    largest = np.zeros_like(weights, bool)
    np.put_along_axis(largest, np.argsort(-weights, axis=1)[:, :KEPT], True, axis=1)
    places = np.flatnonzero(largest & (weights >= LEAST))
    values = [round(float(one), 4) for one in weights.ravel()[places]]
    most = float(weights[1:, 1:].max(initial=0.0))
    bins, edges = np.histogram([most], _BINS, (0.0, 1.0))
    apart = [0.0] * (len(EDGES) - 1)
    sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for place, value in zip(places.tolist(), values, strict=True):
        query, key = divmod(place, count)
        at = int(np.searchsorted(EDGES, abs(query - key), "right")) - 1
        if at < len(apart):
            apart[at] += value
        sums[0][tokens[query]] += value  # type: ignore[assignment]
        sums[1][tokens[key]] += value  # type: ignore[assignment]
    top_queries, top_keys = (
        [{"token": token, "weight": round(weight, 4)} for token, weight in one.most_common(_TOP)]
        for one in sums
    )
    return {
        "sequences": [
            {
                "sequence_id": 0,
                "interval": 0,
                "tokens": [*tokens],
                "attention_indices": places.tolist(),
                "attention_values": values,
                "seq_len": count,
                "max_activation": round(most, 4),
            }
        ],
        "qk_distance_histogram": {
            "bin_edges": [*EDGES],
            "bin_values": [round(one, 4) for one in apart],
        },
        "top_query_tokens": top_queries,
        "top_key_tokens": top_keys,
        "histogram": {
            "bin_edges": [round(float(e), 4) for e in edges],
            "bin_values": bins.tolist(),
        },
        "statistics": {"n_samples": 1, "mean_max_activation": round(most, 4)},
    }
