"""What a visitor looks at, as plain values: the part of the state that lives in the link. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from model.intervention import Intervention, MaskChoice
from model.registry import models
from viz.examples import EXAMPLES, FIRST
from viz.explorer import STAGES, Selection

TEXT_LIMIT = 20_000  # characters of a sentence in the box or in a link
MASKS: tuple[MaskChoice, ...] = ("model", "none", "causal")
_NUMBER_LIMIT = 10**6


@dataclass(frozen=True)
class View:
    """A sentence, a model, a place in it and the switches. Defaults are left out of the link."""

    text: str = FIRST.text
    model: str = FIRST.model
    place: str = FIRST.place  # attention sub-layer
    head: int = FIRST.head
    stage: str = "weights"
    query: int = FIRST.query
    key: int = FIRST.key
    scaled: bool = True  # scores times the model's own factor; False: factor 1
    mask: MaskChoice = "model"

    @property
    def selection(self) -> Selection:
        return Selection(self.head, self.stage, self.query, self.key)

    @property
    def intervention(self) -> Intervention:
        return Intervention(scale=None if self.scaled else 1.0, mask=self.mask)

    @property
    def look_for(self) -> str | None:
        """What is to be seen here, where the view is one of the examples."""
        for example in EXAMPLES:
            where = (example.text, example.model, example.place, example.head)
            if where == (self.text, self.model, self.place, self.head):
                return example.look_for
        return None

    def at(self, selection: Selection) -> "View":
        """The same view at another head, stage and cell."""
        return replace(
            self,
            head=selection.head,
            stage=selection.stage,
            query=selection.query,
            key=selection.key,
        )


PARAMETERS = frozenset(field.name for field in fields(View))  # of the link, that are the view's


def to_link(view: View) -> dict[str, str]:
    """The query parameters that reopen a view."""
    default = View()
    return {
        field.name: _written(getattr(view, field.name))
        for field in fields(View)
        if getattr(view, field.name) != getattr(default, field.name)
    }


def from_link(parameters: Mapping[str, str]) -> tuple[View, tuple[str, ...]]:
    """The view of a link, and a sentence for each part that could not be read.

    Never raises: what cannot be read takes its default. Parameters of other pages are left alone.
    """
    view, problems = View(), []
    for field in fields(View):
        if field.name not in parameters:
            continue
        try:
            value = _READERS[field.name](parameters[field.name])
        except ValueError as error:
            problems.append(f"The link's “{field.name}” was left out: {error}")
        else:
            view = replace(view, **{field.name: value})  # type: ignore[arg-type]
    return view, tuple(problems)


def _written(value: str | int | bool) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text(written: str) -> str:
    if len(written) > TEXT_LIMIT:
        raise ValueError(f"it is longer than {TEXT_LIMIT:,} characters.")
    return written


def _number(written: str) -> int:
    if not (written.isascii() and written.isdigit() and int(written[:9]) < _NUMBER_LIMIT):
        raise ValueError("it is not a number from 0 up.")
    return int(written)


def _switch(written: str) -> bool:
    if written not in ("0", "1"):
        raise ValueError("it must be 0 or 1.")
    return written == "1"


def _model(written: str) -> str:
    if written not in models:
        raise ValueError(f"there is no such model here; there are {', '.join(models)}.")
    return written


def _mask(written: str) -> MaskChoice:
    for mask in MASKS:
        if written == mask:
            return mask
    raise ValueError(f"it must be one of {', '.join(MASKS)}.")


def _stage(written: str) -> str:
    if written not in STAGES:
        raise ValueError(f"it must be one of {', '.join(STAGES)}.")
    return written


_READERS = {
    "text": _text,
    "model": _model,
    "place": _text,
    "head": _number,
    "stage": _stage,
    "query": _number,
    "key": _number,
    "scaled": _switch,
    "mask": _mask,
}
