"""What a visitor looks at, as plain values: the part of the state that lives in the link. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import urlencode

from model.loading.registry import may_be_linked, models
from model.nn.intervention import Intervention
from model.run.tokenizers import clean
from model.system.settings import settings
from viz.explorer.selection import STAGES, Selection
from viz.state import intervention_url
from viz.state.examples import EXAMPLES, FIRST, Example
from viz.state.intervention_url import read_change, whole, written, written_change

TEXT_LIMIT = settings().longest_text  # characters of a sentence in the box or in a link
LINK_BYTES = 40_000  # of a link: the server takes an address of 48 KB, headers and all
_NUMBER_LIMIT = 10**6


@dataclass(frozen=True)
class View:
    """A sentence, a model, a place in it and the change. Defaults are left out of the link."""

    text: str = FIRST.text
    model: str = FIRST.model
    place: str = FIRST.place  # attention sub-layer
    head: int = FIRST.head
    stage: str = "weights"
    query: int = FIRST.query
    key: int = FIRST.key
    show: str = ""  # which of a page's views; "": the first
    target: str | None = None  # what an encoder–decoder's decoder reads; None: its own output
    second_text: str = ""  # beside the first, where two are compared
    second_model: str = ""
    change: Intervention = Intervention()

    @property
    def selection(self) -> Selection:
        return Selection(self.head, self.stage, self.query, self.key)

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


def example_view(example: Example) -> View:
    """What an example opens: its head, and the weights with the chosen cell."""
    return View(
        text=example.text,
        model=example.model,
        place=example.place,
        head=example.head,
        query=example.query,
        key=example.key,
    )


_PLAIN = tuple(field.name for field in fields(View) if field.name != "change")
PARAMETERS = intervention_url.PARAMETERS.union(_PLAIN)  # of the link, that are the view's


def to_link(view: View) -> dict[str, str]:
    """The query parameters that reopen a view. Lone surrogates, which no address can carry, are
    replaced."""
    default = View()
    plain = {
        name: clean(str(value))
        for name in _PLAIN
        if (value := getattr(view, name)) != getattr(default, name)
    }
    return plain | written_change(view.change)


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


def from_link(parameters: Mapping[str, object]) -> tuple[View, tuple[str, ...]]:
    """The view of a link, and a sentence for each part that could not be read.

    Never raises, whatever the parameters are: what cannot be read takes its default. Parameters of
    other pages are left alone.
    """
    change, unread = read_change(parameters)
    view, problems = View(change=change), list(unread)
    for name in _PLAIN:
        if name not in parameters:
            continue
        try:
            value = _READERS[name](written(parameters[name]))
        except ValueError as error:
            problems.append(f"The link's “{name}” was left out: {error}")
        else:
            view = replace(view, **{name: value})  # type: ignore[arg-type]
    return view, tuple(problems)


def _text(given: str) -> str:
    if len(given) > TEXT_LIMIT:
        raise ValueError(f"it is longer than {TEXT_LIMIT:,} characters.")
    return clean(given)


def _number(given: str) -> int:
    number = whole(given)
    if number >= _NUMBER_LIMIT:
        raise ValueError(f"it is not below {_NUMBER_LIMIT:,}.")
    return number


def _model(given: str) -> str:
    if not may_be_linked(given):
        raise ValueError(f"there is no such model here; there are {', '.join(models)}.")
    return given


def _stage(given: str) -> str:
    if given not in STAGES:
        raise ValueError(f"it must be one of {', '.join(STAGES)}.")
    return given


_READERS: dict[str, Callable[[str], str | int]] = {
    "text": _text,
    "model": _model,
    "place": _text,
    "head": _number,
    "stage": _stage,
    "query": _number,
    "key": _number,
    "show": _text,
    "target": _text,
    "second_text": _text,
    "second_model": lambda given: _model(given) if given else "",
}
