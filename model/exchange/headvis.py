"""HeadVis' folders: attention of single heads as JSON, as its pipeline and Neuronpedia's write them.

`config.json` lists the heads, `scatter_data.json` has numbers of each, and `heads/L3H5.json` the texts of one
head with its weights as places and values: place = query · tokens + key. Weights below a bound and beyond the
largest of a row are left out there.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.analysis.heads.statistics import entropy, families
from model.exchange.files import bound
from model.exchange.formats import GivenRun
from model.exchange.layers import GivenLayer
from model.system import deadline
from model.system.files import content_of, write_whole
from model.system.settings import SETTING_OF_TRACES
from model.trace.arrays import Array, read_only
from model.trace.trace import Trace

EDGES = (0, *(2**power for power in range(13)))  # of distances, as HeadVis draws them
KEPT, LEAST = 8, 0.005  # weights of a row, and the smallest one, as its pipeline keeps them
_GROWS = 16  # bytes that a byte of JSON becomes: a number takes 32 bytes, and "0," two
HeadVisNumber = Annotated[int, Field(ge=0, lt=10_000)]  # of a layer or a head
_BINS, _TOP = 50, 50  # of largest weights, and tokens that are listed
DESCRIPTIONS = {
    "self_attention_score": "Mean weight of each token on itself.",
    "prev_token_score": "Mean weight on the token before.",
    "pattern_entropy": "Mean entropy of the rows, in nats.",
    "qk_distance": "Mean distance of query and key, by weight.",
    "qk_distance_variance": "Variance of that distance.",
    "induction_score": "Mean weight on the token after an earlier occurrence of the same token.",
}


class HeadVisEntry(BaseModel):
    """What is read of a file; others than the named values are left out."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class HeadVisText(HeadVisEntry):
    """One text of a head, with the weights that were kept."""

    tokens: Annotated[list[str], Field(min_length=1)]
    attention_indices: list[Annotated[int, Field(ge=0)]]
    attention_values: list[Annotated[float, Field(ge=0, le=1.001)]]


class HeadVisHead(HeadVisEntry):
    sequences: Annotated[list[HeadVisText], Field(min_length=1)]


class HeadVisConfig(HeadVisEntry):
    heads: Annotated[list[tuple[HeadVisNumber, HeadVisNumber]], Field(min_length=1)]
    model_name: str | None = None


class HeadVisWeights(NamedTuple):
    """The weights of a text that one head kept."""

    places: NDArray[np.int64]
    values: Array

    def nbytes(self) -> int:
        return self.places.nbytes + self.values.nbytes


HeadVisTexts = dict[tuple[str, ...], HeadVisWeights]  # of one head, by their tokens


def read_headvis(path: Path) -> tuple[GivenRun, tuple[str, ...], str]:
    """The weights of one text, its tokens, and the model's name, of a folder or of one head's file.

    Of a folder the text is the one that all heads have: a folder whose heads have texts of their own is read
    head by head. Of a head's file it is the text with the largest weight. Weights that were left out are 0.
    Raises ValueError for other files.
    """
    if path.is_dir():
        listed = _config(path / "config.json")
        heads = {head: path / "heads" / "L{}H{}.json".format(*head) for head in listed.heads}
        if len(heads) < len(listed.heads):
            raise ValueError(f"The config.json of {path.name} lists a head twice.")
        model = listed.model_name
    else:
        heads, beside = {_named(path): path}, path.parent.parent / "config.json"
        model = _config(beside).model_name if beside.is_file() else None
    read: list[HeadVisTexts] = []
    for file in heads.values():
        read.append(_head(file))
        common = set.intersection(*({*texts} for texts in read)) if len(read) > 1 else {*read[0]}
        if not common:
            raise ValueError(
                f"The heads of {path.name} have texts of their own, as those of Neuronpedia: open the file "
                "of one head, heads/L0H0.json."
            )
        read = [{of: texts[of] for of in texts if of in common} for texts in read]
        if sum(one.nbytes() for texts in read for one in texts.values()) > bound():
            raise ValueError(
                f"These heads have more weights than are read here ({SETTING_OF_TRACES})."
            )
    tokens = max(read[0], key=lambda of: len(heads) == 1 and read[0][of].values.max(initial=0.0))
    run = _run({head: texts[tokens] for head, texts in zip(heads, read, strict=True)}, len(tokens))
    return run, tokens, model or "a model of HeadVis"


def _named(file: Path) -> tuple[int, int]:
    """The layer and head of a file. Raises ValueError where its name says none."""
    found = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", file.stem, re.ASCII)
    if found is None:
        raise ValueError(f"{file.name} names no head, as L3H5.json does.")
    return int(found[1]), int(found[2])


def _config(file: Path) -> HeadVisConfig:
    """The description of a folder. Raises ValueError where it lists no heads."""
    try:
        return HeadVisConfig.model_validate_json(content_of(file, bound() // _GROWS))
    except ValidationError as error:
        raise ValueError(
            f"{file.parent.name} is no folder of HeadVis: its config.json lists no heads."
        ) from error


def _head(file: Path) -> HeadVisTexts:
    """The texts of one head. Raises ValueError where the file holds none that fit its weights."""
    deadline.look()
    try:
        said = HeadVisHead.model_validate_json(content_of(file, bound() // _GROWS))
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["loc"][:1] == ("sequences",):
            raise ValueError(f"The sequences of {file.name} do not fit their weights.") from error
        raise ValueError(f"{file.name} is no head of HeadVis: it has no sequences.") from error
    texts: HeadVisTexts = {}
    for text in said.sequences:
        cells, places = len(text.tokens) ** 2, text.attention_indices
        if len(places) != len(text.attention_values) or max(places, default=0) >= cells:
            raise ValueError(f"The sequences of {file.name} do not fit their weights.")
        weights = np.array(places, np.int64), np.array(text.attention_values, np.float32)
        texts.setdefault(tuple(text.tokens), HeadVisWeights(*weights))
    return texts


def _run(heads: Mapping[tuple[int, int], HeadVisWeights], count: int) -> GivenRun:
    """The run of one text of so many tokens."""
    if 4 * count**2 * len(heads) > bound():
        raise ValueError(f"These heads have more weights than are read here ({SETTING_OF_TRACES}).")
    layers: dict[int, dict[int, Array]] = {}
    for (layer, head), kept in heads.items():
        weights = np.zeros(count * count, np.float32)
        weights[kept.places] = kept.values
        layers.setdefault(layer, {})[head] = weights.reshape(count, count)
    return GivenRun(
        [
            GivenLayer(
                number, f"L{number}", weights=read_only(np.stack([of[h] for h in sorted(of)]))
            )
            for number, of in sorted(layers.items())
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
    write_whole(path, (json.dumps(content, allow_nan=False) + "\n").encode())


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
