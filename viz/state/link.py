"""A view as plain values, as the parameters of a link, and back: the one place that writes and reads them.
Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeVar, get_args
from urllib.parse import quote, unquote, urlencode

from model.loading.registry import may_be_linked, models
from model.nn.intervention import MASKS, UNCHANGED, Intervention
from model.nn.patches import PATCH_KINDS, Patch
from model.nn.places import Place
from model.nn.stages import STAGES as LAYER_STAGES
from model.run.tokenizers import clean
from model.system.settings import settings
from viz.explorer.selection import STAGES, Detail, Selection
from viz.notation.words import sentences_of

say = sentences_of("state.link")

TEXT_LIMIT = settings().longest_text  # characters of a sentence in the box or in a link


@dataclass(frozen=True)
class View:
    """A sentence, a model, a place in it and the intervention. Defaults are left out of the link."""

    text: str = say("tom_hill_saw_red")
    model: str = "house-gpt"
    place: str = "decoder.1.self"  # attention sub-layer
    head: int = 7
    stage: str = "weights"
    query: int = 12
    key: int = 1
    show: str = ""  # which of a page's views; "": the first
    target: str | None = None  # what an encoder–decoder's decoder reads; None: its own output
    languages: str = (
        ""  # of a translator's text and target, "eng_Latn fra_Latn"; "": those of its files
    )
    second_text: str = ""  # beside the first, where two are compared
    second_model: str = ""
    detail: Detail = "simple"  # how much Explore shows
    intervention: Intervention = Intervention()

    @property
    def selection(self) -> Selection:
        return Selection(self.head, self.stage, self.query, self.key)

    @property
    def cell(self) -> tuple[int, int]:
        """(query, key)."""
        return self.query, self.key

    def at(self, selection: Selection) -> "View":
        """The same view at another head, stage and cell."""
        return replace(self, **vars(selection))


_FIRST = View()
LINK_BYTES = 40_000  # of a link: the server takes an address of 48 KB, headers and all
_LENGTH_LIMIT = 20_000  # characters of one parameter
_NUMBER_LIMIT = 10**6
_NUMBER = re.compile(
    r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,4})?|[+-]?inf", re.ASCII | re.I
)
LinkPart = TypeVar("LinkPart", View, Intervention)


def to_link(view: View) -> dict[str, str]:
    """The query parameters that reopen a view. Lone surrogates, which no address can carry, are
    replaced. The cell of another sentence or model and of a changed run is always said: without it the page
    would choose one."""
    return dict(_link_of(view))


@lru_cache(maxsize=256)  # a run of a page writes the link of its view several times
def _link_of(view: View) -> dict[str, str]:
    is_other = (view.text, view.model) != (_FIRST.text, _FIRST.model) or view.intervention.changes
    cell = {"query": str(view.query), "key": str(view.key)} if is_other else {}
    return cell | _written(view, _FIRST) | _written(view.intervention, UNCHANGED)


def opening_link(view: View) -> dict[str, str]:
    """The same, and never nothing: a link that says nothing keeps the view of the session it opens in."""
    return to_link(view) or {"text": clean(view.text)}


def short_link(view: View) -> tuple[dict[str, str], tuple[str, ...]]:
    """The link of a view as far as a server takes it, and the names of what was left out: the
    longest first. A letter beyond ASCII takes six to twelve bytes of an address."""
    parameters = to_link(view)
    longest = sorted(parameters, key=lambda name: len(parameters[name].encode()), reverse=True)
    left_out = []
    while len(urlencode(parameters)) > LINK_BYTES:
        left_out.append(longest.pop(0))
        del parameters[left_out[-1]]
    return parameters, tuple(left_out)


def address(path: str, parameters: Mapping[str, str]) -> str:
    """A path with parameters behind it."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def from_link(parameters: Mapping[str, object]) -> tuple[View, tuple[str, ...]]:
    """The view of a link, and a sentence for each part that could not be read.

    Never raises, whatever the parameters are: what cannot be read takes its default. Parameters of
    other pages are left alone.
    """
    intervention, unread = _read(Intervention(), parameters)
    view, problems = _read(View(intervention=intervention), parameters)
    return view, (*unread, *problems)


def _written(part: LinkPart, default: LinkPart) -> dict[str, str]:
    """The parameters of what is not as it is by default."""
    names = (field.name for field in fields(part) if field.name in _READERS)
    return {
        name: clean(_put(value))
        for name in names
        if (value := getattr(part, name)) != getattr(default, name)
    }


def _put(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Patch):  # a folder's name may have a blank in it
        return f"{quote(value.model)} {_put(value.parts)} {value.text}"
    if not isinstance(value, frozenset):
        return str(value)
    return ",".join(
        ":".join(map(str, member)) if isinstance(member, tuple) else str(member)
        for member in sorted(value)
    )


def _read(part: LinkPart, parameters: Mapping[str, object]) -> tuple[LinkPart, tuple[str, ...]]:
    problems = []
    for name in (field.name for field in fields(part)):
        if name in parameters and name in _READERS:
            given = parameters[name]
            try:
                if not isinstance(given, str):
                    raise ValueError("it is not text.")
                part = replace(part, **{name: _READERS[name](given)})
            except ValueError as error:
                problems.append(say("link_left_out", name=name, error=error))
    return part, tuple(problems)


def _text(given: str) -> str:
    if len(given) > TEXT_LIMIT:
        raise ValueError(f"it is longer than {TEXT_LIMIT:,} characters.")
    return clean(given)


def _whole(given: str) -> int:
    """A whole number from 0 up, of ordinary digits."""
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise ValueError("it is not a number from 0 up, or it is too large.")
    return int(given)


def _position(given: str) -> int:
    number = _whole(given)
    if number >= _NUMBER_LIMIT:
        raise ValueError(f"it is not below {_NUMBER_LIMIT:,}.")
    return number


def _number(given: str) -> float:
    if not _NUMBER.fullmatch(given):
        raise ValueError("it is not a number.")
    return float(given) + 0.0  # -0 is 0


def _model(given: str) -> str:
    if not may_be_linked(given):
        raise ValueError(f"there is no such model here; there are {', '.join(models)}.")
    return given


def _one_of(*options: str) -> Callable[[str], str]:
    def read(given: str) -> str:
        if given not in options:
            raise ValueError(f"it must be one of {', '.join(options)}.")
        return given

    return read


def _members(read: Callable[[str], object]) -> Callable[[str], frozenset[object]]:
    def read_all(given: str) -> frozenset[object]:
        if len(given) > _LENGTH_LIMIT:
            raise ValueError(f"it is longer than {_LENGTH_LIMIT:,} characters.")
        return frozenset(read(member) for member in given.split(",") if member)

    return read_all


def _tuple(form: str, *readers: Callable[[str], object]) -> Callable[[str], tuple[object, ...]]:
    """Members with colons between them, as an edge is query:key."""

    def read(given: str) -> tuple[object, ...]:
        members = given.split(":")
        if len(members) != len(readers):
            raise ValueError(f"each is written as {form}.")
        return tuple(read(member) for read, member in zip(readers, members, strict=True))

    return read


def _patch(given: str) -> Patch:
    model, _, rest = given.partition(" ")
    parts, _, text = rest.partition(" ")
    part = _tuple("kind:layer:number", _one_of(*PATCH_KINDS), _layer, _whole)
    return Patch(_model(unquote(model)), _text(text), _members(part)(parts))  # type: ignore[arg-type]


def _layer(given: str) -> str:
    try:
        return Place.named(given).name
    except ValueError:
        raise ValueError("a layer is written as decoder.0.self.") from None


_READERS: dict[str, Callable[[str], Any]] = {
    "show": _text,
    **dict.fromkeys(("text", "place", "target", "languages", "second_text"), _text),
    **dict.fromkeys(("head", "query", "key"), _position),
    "model": _model,
    "second_model": lambda given: given and _model(given),
    "stage": _one_of(*STAGES),
    "detail": _one_of(*get_args(Detail)),
    **dict.fromkeys(("scale", "fill", "dropout"), _number),
    "mask": lambda given: _one_of(*MASKS)(given),
    "hidden": _members(_whole),
    "blocked": _members(_tuple("query:key", _whole, _whole)),
    **dict.fromkeys(
        ("positions", *(stage.field for stage in LAYER_STAGES)),
        lambda given: _one_of("0", "1")(given) == "1",
    ),
    "ablated": _members(_tuple("layer:head", _layer, _whole)),
    "weights": _members(_tuple("layer:head:query:key:weight", _layer, *[_whole] * 3, _number)),
    "stream": _members(_tuple("layer:token:dimension:value", _layer, _whole, _whole, _number)),
    "patch": _patch,
    **dict.fromkeys(("seed", "window"), _whole),
    "only": _members(_layer),
}
PARAMETERS = frozenset(_READERS)
