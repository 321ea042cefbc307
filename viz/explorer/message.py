"""What the browser gets: the arrays of one attention layer, the heads that go into one message, and all words
about it, the sentence beside the picture among them.

Scores and weights need only queries and keys. Values and outputs are half of a layer's bytes, so those of a
large layer follow when a stage that shows them is opened. Until then their sums over the dimensions are
sent, so that the weights can be checked.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, cast
from weakref import ref

import numpy as np
from cachetools import LRUCache, cached

from model.nn.places import Place
from model.nn.stages import STAGES
from model.snippets import LATER, STYLES, LaterStage, Origin, code_of
from model.snippets.script import LOADER
from model.system.files import bytes_text
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.unproven import NotShownError
from viz.explorer.around import Group, between, offered, parts_of
from viz.explorer.layer import band_of, by_distance, group_arrays, layer_arrays
from viz.explorer.packing import Json
from viz.explorer.selection import Detail
from viz.explorer.stages import Stage, stages
from viz.notation.formulas import StageName, StepFormula, formulas
from viz.notation.labels import isolated, plotly_label, token_label, word_numbers
from viz.notation.names import sublayer_name
from viz.notation.theme import MASKED, QUANTITIES

if TYPE_CHECKING:
    from model.analysis.stream.around_heads import AroundHeads


_KEPT = 256  # layers whose code, stages and formulas are kept
RunName = Literal["before", "after"]


@dataclass(frozen=True)
class Ring:
    """A cell, a whole row (no key), a whole column (no query), or the cells so many columns beside the
    diagonal."""

    query: int | None = None
    key: int | None = None
    diagonal: int | None = None


@dataclass(frozen=True)
class LinkedWords:
    """Some words. With `rings` they are a link that rings these once; with `place` or `head`, one that opens
    that layer or head."""

    text: str
    rings: tuple[Ring, ...] = ()
    place: str | None = None
    head: int | None = None


@dataclass(frozen=True)
class HeadClaim:
    """What is to be seen in one head of a run."""

    place: str
    head: int
    title: str
    words: tuple[LinkedWords, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.words)


@dataclass(frozen=True)
class Hero:
    """What is shown beside a layer: what is changed in words, how sure the model was
    of each token, a share from 0 to 1 or None, and the loss of the sentence as it is printed. `before` is
    None where nothing is changed. decimals: of a probability. opens: nobody asked for a cell, so it opens on
    the largest weight of the last token. detail: how much is shown. ways: from a chosen cell, what each is
    called and its address, which the browser completes with the cell; one without parameters leads to the
    session's own view. job: what the chosen head is known to do, with its evidence; "" where nothing is
    known."""

    change: str
    sure: Mapping[RunName, Sequence[float | None] | None] | None = None
    loss: Mapping[RunName, str | None] | None = None
    decimals: int = 3
    opens: bool = False
    detail: Detail = "simple"
    ways: Mapping[str, str] = field(default_factory=dict)
    job: str = ""


LARGEST = 18_000_000  # bytes of one head; Streamlit's limit on a message is 20 MB


def sent_heads(attention: Attention, head: int, room: int, *, runs: int, complete: bool) -> range:
    """The block of heads that contains this head, as large as this room in bytes allows. Raises NotShownError
    where one head alone does not fit into a message."""
    count = attention.heads
    if runs * bytes_of(attention, complete=complete) <= room:
        return range(count)
    # Bytes of one head, with all that it shares.
    arrays = _arrays(attention, complete=complete)
    each = runs * (sum(array.nbytes // len(array) for array in arrays) + _bytes_of_cells(attention))
    if each > LARGEST:
        raise NotShownError(
            f"One head of this layer has {bytes_text(each)} of numbers; a browser gets at most "
            f"{bytes_text(LARGEST)} at once. Shorten the text."
        )
    block = min(max(room // max(each, 1), 1), count)
    first = min(max(head, 0), count - 1) // block * block
    return range(first, min(first + block, count))


def bytes_of(attention: Attention, *, complete: bool) -> int:
    """Bytes of a layer's arrays: queries and keys and, if complete, values and outputs. Keys and values that
    heads share count once."""
    arrays = _arrays(attention, complete=complete)
    return sum(array.nbytes for array in arrays) + attention.heads * _bytes_of_cells(attention)


def _arrays(attention: Attention, *, complete: bool) -> list[Array]:
    query, key, value = attention.vectors
    return [query, key, *([value, attention.output] if complete else [])]


def _bytes_of_cells(attention: Attention) -> int:
    """Bytes of what has a number for each query and key of a head."""
    cells = attention.vectors[0].shape[1] * attention.vectors[1].shape[1]
    bias = attention.bias is not None and not by_distance(attention)
    return 4 * cells * (attention.drops + bias)


def mask_bytes(attention: Attention) -> int:
    """Bytes of a layer's mask, a bit for each cell, unless a rule says it."""
    if attention.look_ahead or attention.own_mask is None or band_of(attention):
        return 0
    return attention.own_mask.size // 8


BUDGET = 16_000_000  # bytes of arrays in one message; Streamlit's limit on a message is 20 MB
LIGHT = 1_000_000  # up to so many bytes, values and outputs are sent at once
LIGHT_AROUND = 390_000  # and so many of each group of what stands around the heads
SHOW_VALUES = ("value", "output")  # the stages that need them
MODELS_OWN: Mapping[str, str] = MappingProxyType({})  # no module of somebody's own
_LABEL = 14  # characters of a label beside a picture
_THEME: Json = {
    "quantities": {name: asdict(quantity) for name, quantity in QUANTITIES.items()},
    "masked": MASKED,
}


def payload(
    attention: Attention,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    head: int,
    check: float | None,
    baseline: Attention | None = None,
    stage: str = "weights",
    layers: Sequence[str] = (),
    origin: Origin | None = None,
    around: Sequence["AroundHeads"] = (),
    modules: Mapping[str, str] = MODELS_OWN,
) -> Json:
    """All the browser draws from except the selection. Arrays are numpy's; `packed` packs them.

    queries, keys: the text of each token. head: the chosen head; if all heads together are too large for
    one message, only a block of heads with this one is sent. check: largest difference between recomputed
    and recorded numbers of the whole trace; None: not known yet. baseline: the same layer of the unchanged
    run, for comparison. stage: the chosen one decides whether the values of a large layer are sent. layers:
    names of those to choose from. origin: how queries, keys and values are made, and the intervention, for
    the code. around: what stands around the heads, in this run and the unchanged one. modules: their names.
    Raises ValueError if the tokens are not as many as the rows and columns, or if a vector is not finite.
    """
    _check_counts(attention, queries, keys, "attention")
    if baseline is not None:
        _check_counts(baseline, queries, keys, "baseline")
    runs = 1 if baseline is None else 2
    groups, *before = offered(around, runs=runs)
    shown = between(groups, stages_of(attention, baseline))
    later = later_of(shown)
    parts = {name: part.formula for name, part in parts_of(groups).items()}
    steps = formulas_of(attention, later) | parts
    opened = next((each.group for each in shown if each.name == stage), "")
    complete = stage in SHOW_VALUES or runs * bytes_of(attention, complete=True) <= LIGHT
    room = BUDGET - runs * (mask_bytes(attention) + (groups[opened].bytes if opened else 0))
    sent = sent_heads(attention, head, room, runs=runs, complete=complete)
    return {
        "layer": _whole(attention, groups, sent, complete, opened),
        "baseline": baseline and _whole(baseline, before[0], sent, complete, opened),
        "layers": layer_choices(layers, modules),
        "queries": labels(queries),
        "keys": labels(keys),
        "stages": [vars(stage) for stage in shown],
        "formulas": {name: vars(formula) for name, formula in steps.items()},
        "code": code_json(attention, origin, later),
        "theme": _THEME,
        "check": check if check is not None and math.isfinite(check) else None,
        "checked": check is not None,
    }


def layer_choices(names: Sequence[str], modules: Mapping[str, str] = MODELS_OWN) -> list[Json]:
    """Name, label and title of each layer: "L3", or "dec L3", "cross L3" if there are several kinds; the
    name of a module where there is one."""
    places = [replace(Place.named(name), module=modules.get(name, "")) for name in names]
    stacks = len({place.stack for place in places})

    def label(place: Place) -> str:
        group = "cross" if place.kind == "cross" else place.stack[:3]
        return place.label if stacks == 1 or place.module else f"{group} {place.label}"

    def title(place: Place) -> str:
        return place.module or sublayer_name(place.name, stacks=stacks)

    return [{"name": one.name, "label": label(one), "title": title(one)} for one in places]


@cached(
    LRUCache(_KEPT),
    key=lambda attention, baseline: (ref(attention), baseline and ref(baseline)),
    lock=Lock(),
)
def stages_of(attention: Attention, baseline: Attention | None) -> tuple[Stage, ...]:
    """The stages of a layer, with or without the unchanged run for comparison."""
    runs = [run for run in (attention, baseline) if run is not None]
    return stages(
        kind=attention.kind,
        masked=_is_masked(attention),
        unmasked=baseline is None or not _is_masked(baseline),
        leaks=math.isfinite(attention.mask_value),
        scale=attention.scale,
        needs=needs_of(attention),
        later={one.field for one in STAGES if any(map(one.is_in, runs))},
        window=_window_of(attention),
        only_future=attention.look_ahead or _is_window(attention, attention.key.shape[1]),
    )


def later_of(shown: Sequence[Stage]) -> tuple[LaterStage, ...]:
    """Those of the shown stages that come between the scaled scores and the weights."""
    names = {stage.name for stage in shown}
    return tuple(name for name in LATER if name in names)


@cached(LRUCache(_KEPT), key=lambda attention, later: (ref(attention), tuple(later)), lock=Lock())
def formulas_of(attention: Attention, later: Sequence[LaterStage]) -> dict[StageName, StepFormula]:
    """The formula of each stage of a layer. later: as `later_of` gives them."""
    return formulas(
        scale=attention.scale,
        key_width=attention.key.shape[-1],
        keys=attention.key.shape[1],
        mask_value=attention.mask_value,
        projection=attention.projection,
        later=later,
        needs=needs_of(attention),
    )


def needs_of(attention: Attention) -> dict[str, object]:
    """What the stages that a layer has need, by their fields."""
    return {stage.field: stage.of(attention) for stage in STAGES if stage.is_in(attention)}


def _window_of(attention: Attention) -> int | None:
    """How many keys a query reads at most, where a sliding window alone decides it: that of the run, or of
    the model. None where each query reads all keys up to itself, or where the mask has other holes."""
    mask, own = attention.mask, attention.window
    if attention.look_ahead or mask is None or mask.ndim != 2 or attention.kind == "cross":
        return own
    if own is not None and _is_window(attention, own):
        return own
    width = int(mask.sum(-1).max(initial=0))
    narrower = 0 < width < mask.shape[-1]
    return width if narrower and _is_window(attention, width) else None


def _is_window(attention: Attention, width: int) -> bool:
    """Whether the mask forbids just what a sliding window of this width does."""
    queries, keys = (vectors.shape[1] for vectors in attention.vectors[:2])
    aside = (width - 1) // 2
    before, after = (width - 1, 0) if attention.kind == "causal" else (aside, aside)
    return band_of(attention) == (min(before, queries - 1), min(after, keys - 1))


def _is_masked(attention: Attention) -> bool:
    """Whether any cell is masked."""
    return attention.mask is not None and not bool(np.all(attention.mask))


def _whole(
    attention: Attention, groups: Mapping[str, Group], sent: range, complete: bool, opened: str
) -> Json:
    """A layer, and what stands around its heads: with the arrays of the opened group and of small ones."""
    layer = layer_arrays(attention, sent, complete)
    around = {
        name: _group(
            attention, layer, name, group, sent=group.bytes <= LIGHT_AROUND or name == opened
        )
        for name, group in groups.items()
    }
    return layer | {"around": around}


def _group(
    attention: Attention, layer: Json, name: str, group: Group, *, sent: bool
) -> dict[str, object]:
    """What stands around the heads of a layer, with its arrays where they are sent. It goes with the numbers
    of the layer, and is known by their name."""
    facts, numbers = group_arrays(attention, name, group) if sent else (None, None)
    part = f"{layer['digest']} {name}"
    return {"part": part, "held": False, "facts": facts, "numbers": numbers}


def parts(message: Json) -> tuple[str, ...]:
    """Names of the arrays of the layers in a message: equal names are equal arrays."""
    return tuple(str(layer["part"]) for layer in _layers(message).values())


def group_parts(message: Json) -> tuple[str, ...]:
    """Names of the groups around their heads that are sent with arrays."""
    groups = [group for layer in _layers(message).values() for group in _around(layer).values()]
    return tuple(str(group["part"]) for group in groups if group["numbers"] is not None)


def without_arrays(message: Json, held: Container[str]) -> Json:
    """The same message without the arrays that the browser has already."""
    return message | {
        name: (_bare(layer) if layer["part"] in held else layer)
        | {
            "around": {
                name: group | {"numbers": None, "held": True}
                if group["numbers"] is not None and group["part"] in held
                else group
                for name, group in _around(layer).items()
            }
        }
        for name, layer in _layers(message).items()
    }


def _bare(layer: Json) -> Json:
    return {key: None if isinstance(fact, np.ndarray) else fact for key, fact in layer.items()}


def _around(layer: Json) -> Mapping[str, Json]:
    """The groups of arrays around the heads of a layer."""
    return cast(Mapping[str, Json], layer["around"])


def _layers(message: Json) -> dict[str, Json]:
    """The layer and, if there is one, the baseline, by their names in the message."""
    names = ("layer", "baseline")
    return {name: layer for name in names if isinstance(layer := message[name], dict)}


def _check_counts(
    attention: Attention, queries: Sequence[str], keys: Sequence[str], which: str
) -> None:
    _, rows, columns = attention.sizes
    if (rows, columns) != (len(queries), len(keys)):
        raise ValueError(
            f"The {which} has {rows} queries and {columns} keys; there are {len(queries)} query"
            f" tokens and {len(keys)} key tokens."
        )


def labels(tokens: Sequence[str]) -> Json:
    return {
        "full": [token_label(token) for token in tokens],
        "short": [isolated(token_label(token, _LABEL)) for token in tokens],  # in sentences
        "plotly": [plotly_label(token, _LABEL) for token in tokens],
        "word": word_numbers(tokens),
    }


@cached(
    LRUCache(_KEPT),
    key=lambda attention, origin, later: (ref(attention), origin and ref(origin), later),
    lock=Lock(),
)
def code_json(attention: Attention, origin: Origin | None, later: tuple[LaterStage, ...]) -> Json:
    """Every snippet of a layer, and what a script of it begins with. The arguments: as `code_of` takes
    them."""
    code = code_of(attention, origin, later=later)
    return {
        "styles": dict(STYLES),
        "loader": LOADER,
        "reads": dict(code.reads),
        "refusal": code.refusal,
        "stages": {
            stage: {
                style: {
                    "lines": [(line.code, line.beside) for line in snippet.lines],
                    "given": code.given(stage, style),
                    "after": snippet.after,
                    "result": snippet.result,
                    "remark": snippet.remark,
                }
                for style, snippet in styles.items()
            }
            for stage, styles in code.snippets.items()
        },
    }
