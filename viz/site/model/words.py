"""The words of the messages of a model, for a browser that has numbers of its own.

A message (`viz.explorer.payload`) is numbers and words. The words depend on the layer, on what is changed and
on the number of tokens, and on nothing else of a text. They are sent once: those of the first layer, and for
each other case what differs in it. Numbers of tokens stand as @tokens@, lists of ablated heads as @heads@.
"""

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from model.analysis.stream.around_heads import AroundHeads
from model.code.origin import origin
from model.nn.intervention import Intervention, MaskChoice
from viz.explorer.message import payload
from viz.explorer.packing import Json

if TYPE_CHECKING:
    from model.run.model import Model

TOKENS, HEADS = "@tokens@", "@heads@"
_WORD = "a"  # which every shipped decoder knows as one token
_LENGTHS = 31, 37  # tokens of the two texts by which the slots are recognized
_SHORT = 1, 2  # tokens of texts with words of their own: no future, no third term of a sum
_ABLATED = 0, 1  # heads
_MASKS: tuple[MaskChoice, ...] = ("model", "none")
_NUMBERS = {"query", "key", "value", "output", "mask", "digest", "part", "range", "queries", "keys"}
_NUMBERS |= {"band", "ablated", "valueSums", "outputSums"}  # of a layer: the browser has its own
_OF_TEXT = {"queries", "keys", "check", "checked", "baseline"}  # of a message


def words(model: "Model") -> Json:
    """The words of a decoder's messages: `base`, a message without numbers, and `changes`, by case, a list of
    (path, value) to be set in it. Raises ValueError where the words depend on more than is known here."""
    base: Any = None
    changes: dict[str, object] = {}
    for place in model.attention_names:
        for mask, scale, ablates in product(_MASKS, (None, 1.0), (False, True)):
            ablated = {(place, head) for head in _ABLATED} if ablates else set()
            intervention = Intervention(mask=mask, scale=scale, ablated=frozenset(ablated))
            one, other = (_message(model, place, intervention, count) for count in _LENGTHS)
            slotted = _slotted(one, other)
            if base is None:
                base = slotted
            case = _case(place, intervention)
            changes[case] = list(_differences(base, slotted))
            for count in _SHORT:
                short = _with_heads(_message(model, place, intervention, count))
                changes[f"{case} {count}"] = list(_differences(_filled(slotted, count), short))
    return {"base": base, "changes": {case: some for case, some in changes.items() if some}}


def _case(place: str, intervention: Intervention) -> str:
    """What js/words.js calls a case, too."""
    ways = {
        "open": intervention.mask == "none",
        "unscaled": intervention.scale == 1,
        "ablated": bool(intervention.ablated),
    }
    return " ".join([place, *(way for way, holds in ways.items() if holds)])


def _message(model: "Model", place: str, intervention: Intervention, count: int) -> Any:
    """The words of a message about a text of so many tokens."""
    text = " ".join([_WORD] * count)
    traces = [model.trace(text, intervention=intervention)]
    if intervention.changes:
        traces.append(model.trace(text))
    attention, *before = [trace.find(place) for trace in traces]
    tokens = [token.text for token in traces[0].tokens]
    if len(tokens) != count:
        raise ValueError(f"{model.name} does not read {_WORD!r} as one token.")
    message = payload(
        attention,
        queries=tokens,
        keys=tokens,
        head=0,
        check=None,
        baseline=before[0] if before else None,
        stage="output",
        layers=model.attention_names,
        origin=origin(model, traces[0], attention),
        around=[AroundHeads(model, trace, trace.find(place)) for trace in traces],
    )
    said = json.loads(json.dumps(message, default=lambda array: None))
    layer = {name: fact for name, fact in said["layer"].items() if name not in _NUMBERS}
    layer["around"] = {name: group["facts"] for name, group in layer["around"].items()}
    return {name: part for name, part in said.items() if name not in _OF_TEXT} | {"layer": layer}


def _slotted(one: Any, other: Any) -> Any:
    """What two messages say alike, with slots for what the number of their tokens is in each."""
    match one, other:
        case dict(), dict() if [*one] == [*other]:
            return {name: _slotted(part, other[name]) for name, part in one.items()}
        case list(), list() if len(one) == len(other):
            return [_slotted(*pair) for pair in zip(one, other, strict=True)]
        case str(), str():
            here, there = (
                text if one == other else text.replace(str(count), TOKENS)
                for text, count in zip((one, other), _LENGTHS, strict=True)
            )
            if here == there:
                return _with_heads(here)
        case _ if one == other:
            return one
    raise ValueError(f"More than the number of tokens tells {one!r} from {other!r}.")


def _with_heads(said: Any) -> Any:
    """The same with a slot for the list of ablated heads."""
    return _mapped(said, lambda text: text.replace(f"output[{[*_ABLATED]}]", f"output[{HEADS}]"))


def _filled(said: Any, count: int) -> Any:
    return _mapped(said, lambda text: text.replace(TOKENS, str(count)))


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
