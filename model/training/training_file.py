"""The file of a recorded training: what was measured of its heads at every recorded step, and the weights of
its probe texts at some of them. docs/own-modules.md describes its layout."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from model.analysis.heads.ranking import STATISTICS, HeadTokens
from model.nn.places import Place, head_label, place_of, within
from model.system.border import at_border
from model.system.files import bounded, opened, there, whole_file
from model.system.foreign import refusing, strict_json, validated
from model.system.settings import SETTING_OF_TRACES, settings
from model.system.version import PRODUCT
from model.trace import array_file
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.description import (
    Few,
    FileArray,
    FileToken,
    PlacedEntry,
    PlaceName,
    ShortText,
    StrictEntry,
    Wanted,
    written_tokens,
)
from model.trace.partial import VECTORS, PartialAttention
from model.trace.records import Token, largest
from model.trace.trace_file import read_arrays
from model.trace.unproven import NotShownError
from model.training.checkpoints import (
    READ_AT_MOST,
    CheckpointRecord,
    CheckpointTrace,
    CheckpointTraces,
    TrainingRun,
)

FORMAT, VERSION, KEY = "attention-visualizer training", 1, "training"
MOST_STEPS = 10_000  # of a record
MOST_PROBES = 64
MOST_CELLS = 1_000_000  # of one head's maps at all steps that are shown: four megabytes
SCORES = {"induction": "induction", "previous_token": "previous"}  # of a history -> the statistic
KNOWN = {one.name for one in STATISTICS}
NO_MODEL = "A record of a training holds no model: its weights were not kept."


def weights_alone(place: Place, weights: Array, mask: BoolArray | None) -> PartialAttention:
    """A sub-layer of which only the weights are known.

    Args:
        weights: (head, query, key), rows sum to 1.
        mask: (query, key) or (head, query, key), True = may look; None: nothing is hidden.
    """
    heads, queries, keys = weights.shape
    empty = read_only(np.zeros((heads, queries, 0), np.float32))
    no_keys = read_only(np.zeros((heads, keys, 0), np.float32))
    return PartialAttention(
        place=place,
        heads=heads,
        scale=math.nan,
        mask_value=-math.inf,
        output=empty,
        ablated=(),
        vectors=(empty, no_keys, no_keys),
        own_mask=mask,
        look_ahead=False,
        steps={"weights": weights},
        absent=VECTORS,
    )


@dataclass(frozen=True, eq=False)
class ProbeLayer:
    """One attention sub-layer that read one probe text, at all steps."""

    place: Place
    mask: BoolArray | None  # (query, key) or (head, query, key): where it may look at any step
    statistics: tuple[str, ...]  # names of `STATISTICS` that apply to the text
    numbers: Array  # (step, head, statistic)
    weights: Array  # (kept step, head, query, key)

    @property
    def heads(self) -> int:
        return int(self.weights.shape[1])

    def of(self, statistic: str) -> Array:
        """(step, head): one statistic. Raises ValueError where it does not apply."""
        return read_only(self.numbers[:, :, self.statistics.index(statistic)])


@dataclass(frozen=True, eq=False)
class RecordedProbe:
    """One probe text and what the heads did on it: `load_training(path).probes[0]`.

    >>> from model.training.training_file import RecordedProbe
    >>> RecordedProbe("a b", trace.tokens[:2], (), layers=()).measured("induction")
    ()
    """

    text: str
    tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]  # of a second text; () without one
    layers: tuple[ProbeLayer, ...]  # in order of execution

    @at_border
    def measured(self, statistic: str) -> tuple[ProbeLayer, ...]:
        """The sub-layers to which a statistic applies."""
        return tuple(layer for layer in self.layers if statistic in layer.statistics)


@dataclass(frozen=True, eq=False)
class RecordedTraining:
    """What a `TrainingRecord` kept of a training.

    losses: (step, loss in the training's own unit) as they were told. kept: the steps whose weights are
    kept, the last one among them. checks: (step,), the largest difference between outputs of attention
    recomputed from what was recorded at that step and the module's own.

    ```python
    from torch import nn
    from model.training.training_file import load_training
    from model.training.training_record import TrainingRecord

    module = nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, batch_first=True))
    TrainingRecord("run.safetensors", probes=[[1, 2, 3, 1, 2]]).step(module, 0)
    training = load_training("run.safetensors")
    print(training.nbytes, [*training.arrays()])
    print(training.history(0), training.training_run("run", 0).steps)
    print(training.traces(0).steps, training.gap(0, training.probes[0].layers[0].place.name, head=1))
    ```
    """

    model: str  # the class of the module
    steps: tuple[int, ...]  # rising
    kept: tuple[int, ...]  # of these, rising
    losses: tuple[tuple[int, float], ...]
    checks: Array
    probes: tuple[RecordedProbe, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def _probe(self, number: int) -> "RecordedProbe":
        return self.probes[within(number, len(self.probes), "The file has probes")]

    @at_border
    def history(self, probe: int) -> tuple[CheckpointRecord, ...]:
        """For each step the highest score of any head on one probe: "induction" and "previous_token", where
        they apply."""
        best = {}
        for name, statistic in SCORES.items():
            layers = self._probe(probe).measured(statistic)
            if layers:
                best[name] = np.max([layer.of(statistic).max(1) for layer in layers], axis=0)
        return tuple(
            {"step": step} | {name: float(values[at]) for name, values in best.items()}
            for at, step in enumerate(self.steps)
        )

    @at_border
    def training_run(self, key: str, probe: int) -> TrainingRun:
        """The same as a training run whose models are gone: asking for one raises NotShownError. key: names
        it in caches."""

        def model(step: int) -> NoReturn:
            raise NotShownError(NO_MODEL)

        heads = {}
        for name, statistic in SCORES.items():
            layers = [one for one in self._probe(probe).measured(statistic) if _in_decoder(one)]
            ends = [(one.place.name, one.of(statistic)[-1]) for one in layers]
            if ends:
                place, last = max(ends, key=lambda end: float(end[1].max()))
                heads[name] = head_label((place, int(last.argmax())))
        return TrainingRun(key, self.history(probe), heads, self.kept, model)

    @at_border
    def traces(self, probe: int) -> CheckpointTraces:
        """One probe at the steps whose weights are kept; at fewer, evenly chosen, where those of a head have
        more than a million cells."""
        read = self._probe(probe)
        cells = max(math.prod(layer.weights.shape[2:]) for layer in read.layers)
        every = -(-len(self.kept) * cells // MOST_CELLS)
        chosen = sorted({*range(len(self.kept) - 1, -1, -every), 0})
        checks = dict(zip(self.steps, self.checks.tolist(), strict=True))
        checkpoints = tuple(
            CheckpointTrace(
                read.tokens,
                read.target_tokens,
                {
                    one.place.name: weights_alone(one.place, one.weights[at], one.mask)
                    for one in read.layers
                },
                checks[self.kept[at]],
            )
            for at in chosen
        )
        return CheckpointTraces(read.text, tuple(self.kept[at] for at in chosen), checkpoints, 0)

    @at_border
    def gap(self, probe: int, place: str | int, head: int) -> float:
        """Largest difference between the statistics of one head as they were measured in the training and
        those of its weights, at the steps that have weights.

        Args:
            probe: the number of the probe text, from 0.
            place: the name of the sub-layer, or the number of its layer.
        """
        traces = self.traces(probe)
        layers = self._probe(probe).layers
        layer = layers[place_of(place, [one.place.name for one in layers], self.model)]
        head, place = within(head, layer.heads, f"{layer.place.name} has heads"), layer.place.name
        tokens = HeadTokens(traces.queries(place), traces.keys(place), layer.place.kind == "cross")
        rows = np.searchsorted(self.steps, traces.steps)
        return largest(
            abs(statistic.of(weights, tokens) - float(layer.of(statistic.name)[row, head]))
            for statistic in STATISTICS
            if statistic.name in layer.statistics
            for row, weights in zip(rows, traces.weights(place, head), strict=True)
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array by its name in the file."""
        arrays: dict[str, NDArray[Any]] = {
            "steps": np.array(self.steps, np.int64),
            "kept": np.array(self.kept, np.int64),
            "checks": self.checks,
        }
        if self.losses:
            steps, values = zip(*self.losses, strict=True)
            arrays |= {"loss/steps": np.array(steps, np.int64)}
            arrays |= {"loss/values": np.array(values, np.float32)}
        for number, probe in enumerate(self.probes):
            for layer in probe.layers:
                at = f"probes/{number}/{layer.place.name}"
                arrays[f"{at}/weights"] = layer.weights
                if layer.statistics:
                    arrays[f"{at}/numbers"] = layer.numbers
                if layer.mask is not None:
                    arrays[f"{at}/mask"] = layer.mask
        return arrays


def _in_decoder(layer: ProbeLayer) -> bool:
    return layer.place.stack == "decoder" and layer.place.kind != "cross"


class LayerEntry(PlacedEntry):
    """One of a record, without its arrays."""

    statistics: tuple[PlaceName, ...]


class ProbeEntry(StrictEntry):
    text: str
    tokens: Annotated[tuple[FileToken, ...], Field(min_length=1, max_length=READ_AT_MOST)]
    target_tokens: Annotated[tuple[FileToken, ...], Field(max_length=READ_AT_MOST)] = ()
    layers: Annotated[tuple[LayerEntry, ...], Field(min_length=1), Few]


class TrainingDescription(StrictEntry):
    """All that a file says beside its arrays."""

    format: Literal["attention-visualizer training"]
    version: Literal[1]
    written_by: ShortText = ""
    model: ShortText
    probes: Annotated[tuple[ProbeEntry, ...], Field(min_length=1, max_length=MOST_PROBES)]


def save_training(recorded: RecordedTraining, path: Path) -> None:
    """Writes the file beside its place, then puts it there: what is there is always whole."""
    with whole_file(path) as file:
        array_file.write(file, recorded.arrays(), KEY, json.dumps(_description(recorded)))


@at_border
def load_training(path: str | Path) -> RecordedTraining:
    """What a `TrainingRecord` has written to a file, read strictly; nothing in it is executed.

    ```python
    from torch import nn
    from model.training.training_file import load_training
    from model.training.training_record import TrainingRecord

    module = nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, batch_first=True))
    TrainingRecord("untrained.safetensors", probes=[[1, 2, 3, 1, 2]]).step(module, 0)
    training = load_training("untrained.safetensors")
    print(training.steps, training.probes[0].layers[0].weights.shape)  # (step, head, query, key)
    ```

    Raises ValueError, with a sentence, for a file that holds no such record, is larger than
    ATTENTION_TRACE_MB says, or cannot be read.
    """
    with opened(there(path), settings().trace_bytes, SETTING_OF_TRACES) as (file, size):
        return read_training(file, size)


def read_training(file: BinaryIO, size: int) -> RecordedTraining:
    """The record of an open file of so many bytes. Raises ValueError as `load_training`."""
    bounded(size, settings().trace_bytes, SETTING_OF_TRACES)
    with refusing("This file does not hold a readable record of a training:"):
        header = array_file.read_header(file, size, KEY)
        said = _described(header.text)
        wanted = _fitted(said, Wanted(header.arrays, {}))
        return _recorded(said, read_arrays(file, header, wanted, "what nobody has measured"))


def _description(recorded: RecordedTraining) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": PRODUCT,
        "model": recorded.model,
        "probes": [
            {
                "text": probe.text,
                "tokens": written_tokens(probe.tokens),
                "target_tokens": written_tokens(probe.target_tokens),
                "layers": [
                    asdict(layer.place)
                    | {"name": layer.place.name, "heads": layer.heads}
                    | {"statistics": layer.statistics}
                    for layer in probe.layers
                ],
            }
            for probe in recorded.probes
        ],
    }


def _described(text: str) -> TrainingDescription:
    strict_json(text)
    said = validated(TrainingDescription, text)
    longest = settings().longest_text
    for probe in said.probes:
        if len(probe.text) > longest:
            raise ValueError(f"a text of it is longer than {longest:,} characters")
        names = [entry.place.name for entry in probe.layers]
        if len({*names}) < len(names):
            raise ValueError("it lists a sub-layer twice")
        for entry in probe.layers:
            if not {*entry.statistics} <= KNOWN or len({*entry.statistics}) < len(entry.statistics):
                raise ValueError(f"it measures something unknown of {entry.name}")
    return said


_ARRAYS = {
    "steps": FileArray("steps", "counts", "I64"),
    "kept": FileArray("kept", "counts", "I64"),
    "checks": FileArray("steps"),
}
_LOSSES = {"steps": FileArray("losses", "counts", "I64"), "values": FileArray("losses")}
_OF_LAYER = {
    "weights": FileArray("kept heads queries keys"),
    "numbers": FileArray("steps heads statistics", required=False),
    "mask": FileArray("heads? queries keys", "any", "BOOL", required=False),
}


def _fitted(said: TrainingDescription, wanted: Wanted) -> Wanted:
    """The arrays of a description. Raises ValueError, in a clause, where those of a file are others."""
    wanted.take("", _ARRAYS)
    wanted.take("loss/", _LOSSES if wanted.has("loss/steps") else {})
    for name in ("steps", "loss/steps"):
        if wanted.has(name) and wanted.shape(name)[0] > MOST_STEPS:
            raise ValueError(f"its {name} are more than {MOST_STEPS:,}")
    sizes = {name: wanted.shape(name)[0] for name in ("steps", "kept")}
    for number, probe in enumerate(said.probes):
        for entry in probe.layers:
            at = f"probes/{number}/{entry.name}/"
            sizes |= {"heads": entry.heads, "statistics": len(entry.statistics)}
            wanted.take(at, _OF_LAYER, **sizes)
            if math.prod(wanted.shape(f"{at}weights")[2:]) > READ_AT_MOST**2:
                raise ValueError(f"{entry.name} reads more than {READ_AT_MOST} tokens")
    wanted.refuse_others()
    return wanted


def _recorded(said: TrainingDescription, arrays: Mapping[str, NDArray[Any]]) -> RecordedTraining:
    steps, kept = arrays["steps"].tolist(), arrays["kept"].tolist()
    if steps != sorted({*steps}) or kept != sorted({*kept} & {*steps}):
        raise ValueError("its steps do not rise")
    losses: Iterator[tuple[int, float]] = iter(())
    if "loss/steps" in arrays:
        told = arrays["loss/steps"].tolist()
        if told != sorted({*told}):
            raise ValueError("the steps of its losses do not rise")
        losses = zip(told, arrays["loss/values"].tolist(), strict=True)
    probes = tuple(
        RecordedProbe(
            entry.text,
            entry.tokens,
            entry.target_tokens,
            tuple(
                _layer(layer, len(steps), f"probes/{number}/{layer.name}", arrays)
                for layer in entry.layers
            ),
        )
        for number, entry in enumerate(said.probes)
    )
    return RecordedTraining(
        said.model, tuple(steps), tuple(kept), tuple(losses), arrays["checks"], probes
    )


SLACK = 1e-3  # what rounding may add to a weight, or to a row of weights


def _layer(
    entry: LayerEntry, steps: int, at: str, arrays: Mapping[str, NDArray[Any]]
) -> ProbeLayer:
    weights = arrays[f"{at}/weights"]
    if weights.min() < 0 or weights.sum(-1).max() > 1 + SLACK:
        raise ValueError(f"the rows of {entry.name} are no weights")
    none = read_only(np.zeros((steps, entry.heads, 0), np.float32))
    numbers = arrays[f"{at}/numbers"] if entry.statistics else none
    return ProbeLayer(entry.place, arrays.get(f"{at}/mask"), entry.statistics, numbers, weights)
