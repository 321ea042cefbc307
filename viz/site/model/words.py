"""The words of the messages of a model, for a browser that has numbers of its own.

A message (`viz.explorer.payload`) is numbers and words. The words depend on the layer, on what is changed and
on the numbers of its queries and keys, and on nothing else of a text. They are sent once: those of the first
layer, and for each other case what differs in it. The numbers stand as @queries@ and @keys@, or @queries@
alone where both are of one text, and lists of ablated heads as @heads@.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from model.analysis.stream.around_heads import AroundHeads
from model.code.origin import origin
from model.nn.config import Stack
from model.nn.intervention import Intervention, MaskChoice
from model.trace.trace import Trace
from viz.explorer.message import payload
from viz.explorer.packing import Json

if TYPE_CHECKING:
    from model.run.model import Model

QUERIES, KEYS, HEADS = "@queries@", "@keys@", "@heads@"
_WORD = "a"  # which every model here knows as one token
_LENGTHS = (
    (19, 29),
    (23, 31),
)  # tokens of decoder and encoder in two runs by which the slots are recognized
_UNPLACED = (
    "unplaced"  # without positions, what differs does so in every case: code that adds them up
)
_SHORT = 1, 2  # keys of layers with words of their own: no future, no third term of a sum
_ABLATED = 0, 1  # heads
_MASKS: tuple[MaskChoice, ...] = ("model", "none")
_NUMBERS = {"query", "key", "value", "output", "mask", "digest", "part", "range", "queries", "keys"}
_NUMBERS |= {"band", "ablated", "valueSums", "outputSums"}  # of a layer: the browser has its own
_OF_TEXT = {"queries", "keys", "check", "checked", "baseline"}  # of a message


def words(model: "Model") -> Json:
    """The words of a model's messages: `base`, a message without numbers, and `changes`, by case, a list of
    (path, value) to be set in it. Raises ValueError where the words depend on more than is known here."""
    base: Any = None
    changes: dict[str, object] = {}
    unplaced = [_runs(model, Intervention(positions=False), *counts) for counts in _LENGTHS]
    for mask, scale, ablates in product(_MASKS, (None, 1.0), (False, True)):
        ablated = product(model.attention_names, _ABLATED) if ablates else ()
        intervention = Intervention(mask=mask, scale=scale, ablated=frozenset(ablated))
        long = [_runs(model, intervention, *counts) for counts in _LENGTHS]
        short = {count: _runs(model, intervention, count, count) for count in _SHORT}
        for place in model.attention_names:
            slotted = _slotted(model, long, place)
            if base is None:
                base = slotted
            # What js/words.js calls a case, too.
            ways = {
                "open": intervention.mask == "none",
                "unscaled": intervention.scale == 1,
                "ablated": bool(intervention.ablated),
            }
            case = " ".join([place, *(way for way, holds in ways.items() if holds)])
            changes[case] = list(_differences(base, slotted))
            for count, runs in short.items():
                few = _with_heads(_message(model, runs, place))
                filled = _filled(slotted, _sizes(runs, place))
                changes[f"{case} {count}"] = list(_differences(filled, few))
            if not intervention.changes:
                changes[f"{place} {_UNPLACED}"] = list(
                    _differences(slotted, _slotted(model, unplaced, place))
                )
    return {"base": base, "changes": {case: some for case, some in sorted(changes.items()) if some}}


def _runs(
    model: "Model", intervention: Intervention, decoder: int, encoder: int
) -> Sequence[Trace]:
    """A run in which each stack reads so many tokens, and the unchanged one where that is changed."""
    stacks: dict[Stack, int] = {"encoder": encoder, "decoder": decoder}
    counts = [stacks[stack] for stack in model.stacks()]
    text, target = " ".join([_WORD] * counts[0]), None
    if len(counts) > 1:
        target = " ".join([_WORD] * (decoder - 1))  # after its start
    runs = [model.trace(text, target, intervention)]
    if [len(runs[0].tokens_of(stack)) for stack in model.stacks()] != counts:
        raise ValueError(f"{model.name} does not read {_WORD!r} as one token.")
    return [*runs, model.trace(text, target)] if intervention.changes else runs


def _sizes(runs: Sequence[Trace], place: str) -> dict[str, int]:
    """The numbers of tokens that the slots of a sub-layer stand for."""
    attention = runs[0].find(place)
    _, queries, keys = attention.sizes
    return {QUERIES: queries} | ({KEYS: keys} if attention.kind == "cross" else {})


def _message(model: "Model", runs: Sequence[Trace], place: str) -> Any:
    """The words of the message about a sub-layer."""
    attention, *before = [run.find(place) for run in runs]
    message = payload(
        attention,
        queries=[token.text for token in runs[0].queries_of(attention)],
        keys=[token.text for token in runs[0].keys_of(attention)],
        head=0,
        check=None,
        baseline=before[0] if before else None,
        stage="output",
        layers=model.attention_names,
        origin=origin(model, runs[0], attention),
        around=[AroundHeads(model, run, run.find(place)) for run in runs],
    )
    said = json.loads(json.dumps(message, default=lambda array: None))
    layer = {name: fact for name, fact in said["layer"].items() if name not in _NUMBERS}
    layer["around"] = {name: group["facts"] for name, group in layer["around"].items()}
    return {name: part for name, part in said.items() if name not in _OF_TEXT} | {"layer": layer}


def _slotted(model: "Model", runs: Sequence[Sequence[Trace]], place: str) -> Any:
    """The words of the messages about a sub-layer in two runs, with slots for what differs."""
    one, other = (_message(model, each, place) for each in runs)
    return _alike(one, other, [_sizes(each, place) for each in runs])


def _alike(one: Any, other: Any, sizes: Sequence[Mapping[str, int]]) -> Any:
    """What two messages say alike, with slots for what the numbers of their tokens are in each."""
    match one, other:
        case dict(), dict() if [*one] == [*other]:
            return {name: _alike(part, other[name], sizes) for name, part in one.items()}
        case list(), list() if len(one) == len(other):
            return [_alike(*pair, sizes) for pair in zip(one, other, strict=True)]
        case str(), str():
            if one != other:
                one, other = (
                    _replaced(text, {str(count): slot for slot, count in each.items()})
                    for text, each in zip((one, other), sizes, strict=True)
                )
            if one == other:
                return _with_heads(one)
        case _ if one == other:
            return one
    raise ValueError(f"More than the numbers of tokens tells {one!r} from {other!r}.")


def _with_heads(said: Any) -> Any:
    """The same with a slot for the list of ablated heads."""
    return _mapped(said, lambda text: text.replace(f"output[{[*_ABLATED]}]", f"output[{HEADS}]"))


def _filled(said: Any, sizes: Mapping[str, int]) -> Any:
    slots = {slot: str(count) for slot, count in sizes.items()}
    return _mapped(said, lambda text: _replaced(text, slots))


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text


def _mapped(said: Any, change: Callable[[str], str]) -> Any:
    """The same with another text in place of each."""
    match said:
        case str():
            return change(said)
        case dict():
            return {name: _mapped(part, change) for name, part in said.items()}
        case list():
            return [_mapped(part, change) for part in said]
    return said


def _differences(base: Any, other: Any, *path: str | int) -> Iterator[tuple[list[str | int], Any]]:
    """Where two messages differ, as paths, and what the other one has there."""
    if isinstance(base, dict) and isinstance(other, dict) and [*base] == [*other]:
        for name in base:
            yield from _differences(base[name], other[name], *path, name)
    elif isinstance(base, list) and isinstance(other, list) and len(base) == len(other):
        for n, pair in enumerate(zip(base, other, strict=True)):
            yield from _differences(*pair, *path, n)
    elif base != other:
        yield [*path], other
