"""The explorer as a widget, of a run, or of a model and a text. Its traits are the one place of the choice:
Python and the browser read and set them."""

import operator
import uuid
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
from ipywidgets import widget_serialization
from traitlets import Bytes, Instance, Int, TraitError, Unicode, observe, validate

from model.loading.registry import load_model
from model.system.border import at_border
from model.trace.arrays import Array
from model.trace.trace import Trace
from viz.explorer.heads import THEME, all_heads
from viz.explorer.message import SHOW_VALUES, Json
from viz.explorer.packing import packed
from viz.explorer.selection import Selection
from viz.figures.svg import still
from viz.notation.words import sentences_of
from viz.notebook.library import Library, library, loader, parts, version
from viz.notebook.run import Run, compared

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("notebook.widget")

SMALL_MAPS = 2**20  # attention weights up to which the maps of all heads are sent at once
LARGEST = 6_000_000  # bytes of a message with all layers and what stands around their heads
NO_LAYERS = packed({"layers": []})
_CHOSEN = ("head", "stage", "query", "key")
_VECTORS = ("query", "key", "value", "output")


class RefusedError(TraitError, ValueError):
    """A choice that this run does not have."""


class Position(Int[int, int]):
    """A number of a head or token, counted from 0; numpy's whole numbers too."""

    def validate(self, obj: Any, value: Any) -> int:
        try:
            if not isinstance(value, bool):
                return operator.index(value)
        except TypeError:
            pass
        raise RefusedError(f"{self.name} takes a whole number, not {value!r}.")


class AttentionExplorer(anywidget.AnyWidget):
    """A run in a notebook. Set `place` (the name of a layer), `head`, `stage`, `query` and `key` (all counted
    from 0) and the picture moves; read or observe them, and they say what the reader has chosen.

    A choice that the run does not have is refused with a ValueError, and the old one stays.
    """

    _esm = loader()
    _library = Instance(Library).tag(sync=True, **widget_serialization)
    _version = Unicode().tag(sync=True)
    _run = Unicode().tag(sync=True)  # identifies the run, so that the browser finds its layers
    _about = Unicode().tag(sync=True)
    _heads = Bytes().tag(sync=True)  # packed: all heads, with their maps once they are made
    _layers = Bytes().tag(sync=True)  # packed: all layers, where they are small
    _layer = Bytes().tag(sync=True)  # packed: the chosen one, where that is not enough to draw it

    place = Unicode(help=say("name_attention_sub")).tag(sync=True)
    head = Position(help=say("head_layer")).tag(sync=True)
    stage = Unicode(help=say("step_calculation")).tag(sync=True)
    query = Position(help="token that looks").tag(sync=True)
    key = Position(help=say("token_looked")).tag(sync=True)

    def __init__(self, run: Run, place: str, selection: Selection) -> None:
        self._shown = run
        self._checked = False
        small = run.weights <= SMALL_MAPS
        super().__init__(
            place=place,
            head=selection.head,
            stage=selection.stage,
            query=selection.query,
            key=selection.key,
            _library=library(),
            _version=version(),
            _run=uuid.uuid4().hex,
            _about=run.about,
            _heads=self._all_heads(has_maps=small),
        )
        self._send_all()
        self.on_msg(self._answer)
        self.observe(self._send_chosen, ["place", "head", "stage"])

    @property
    def trace(self) -> Trace:
        """The run that is shown; beside a baseline, the changed one."""
        return self._shown.trace

    @property
    def baseline(self) -> Trace | None:
        """The run that it is compared with, if any."""
        return self._shown.baseline

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """The texts of the queries and of the keys of the chosen layer."""
        return self._shown.queries(self.place), self._shown.keys(self.place)

    @property
    def weight(self) -> float:
        """How much the chosen query attends to the chosen key in the chosen head."""
        return float(self.trace.find(self.place).weights(self.head)[self.query, self.key])

    @property
    def value(self) -> float | Array:
        """What the chosen cell of the shown stage holds: a number; where a row is a vector, that of the
        chosen token, (column,)."""
        attention = self.trace.find(self.place)
        stage = next(one for one in self._shown.stages(self.place) if one.name == self.stage)
        row = self.query if stage.rows == "query" else self.key
        if stage.group:
            return self._shown.vectors(self.place, stage.name, self.head)[row]
        if stage.name in _VECTORS:
            vectors: Array = getattr(attention, stage.name)[self.head]
            return vectors[row]
        return float(getattr(attention, stage.name)(self.head)[self.query, self.key])

    @validate("place")
    def _place_exists(self, proposal: dict[str, Any]) -> str:
        try:
            place = self.trace.find(proposal["value"]).name
        except ValueError as refusal:
            raise RefusedError(str(refusal)) from None
        if place not in self._shown.places:
            raise RefusedError(f"The other run has no layer {place}.")
        return place

    @validate("stage")
    def _stage_exists(self, proposal: dict[str, Any]) -> str:
        stages = [stage.name for stage in self._shown.stages(self.place)]
        if proposal["value"] not in stages:
            names = ", ".join(stages)
            raise RefusedError(f"{self.place} has no stage {proposal['value']!r}; it has {names}.")
        return str(proposal["value"])

    @validate("head", "query", "key")
    def _position_exists(self, proposal: dict[str, Any]) -> int:
        name, value = proposal["trait"].name, int(proposal["value"])
        count = self._counts(self.place)[name]
        if not 0 <= value < count:
            raise RefusedError(f"{self.place} has {name} 0 to {count - 1}, not {value}.")
        return value

    def _counts(self, place: str) -> dict[str, int]:
        """How many heads, queries and keys a layer has."""
        attention = self.trace.find(place)
        queries, keys = (vectors.shape[1] for vectors in attention.vectors[:2])
        return {"head": attention.heads, "query": queries, "key": keys}

    @observe("place")
    def _fit(self, change: object) -> None:
        """Moves the choice to the nearest one that another layer has."""
        chosen = {name: getattr(self, name) for name in _CHOSEN}
        with self.hold_trait_notifications():
            for name, value in self._nearest(self.place, chosen).items():
                setattr(self, name, value)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Takes the browser's changes. A change of layer may come with a head, stage or cell that only the
        layer before has; then the nearest one is set and sent back."""
        place = sync_data.get("place")
        nearest = self._nearest(place, sync_data) if place in self._shown.places else {}
        super().set_state(sync_data | nearest)
        self.send_state([name for name in nearest if nearest[name] != sync_data[name]])

    def _nearest(self, place: str, chosen: dict[str, Any]) -> dict[str, Any]:
        """What is chosen, or of it the nearest that a layer has."""
        stages = [stage.name for stage in self._shown.stages(place)]
        most = {name: count - 1 for name, count in self._counts(place).items()}
        nearest: dict[str, Any] = {
            name: min(value, most[name])
            for name, value in chosen.items()
            if name in most and isinstance(value, int)
        }
        if chosen.get("stage", "weights") not in stages:
            nearest["stage"] = "weights"
        return nearest

    def _send_all(self) -> None:
        """Sends all layers where they may be sent at once, and the chosen one where it needs more."""
        messages = self._shown.messages(checked=self._checked)
        block = packed({"layers": messages})
        if len(block) > LARGEST:
            messages, block = [], NO_LAYERS
        self._sent = self._all = {sent.place: sent for sent in map(_Sent, messages)}
        with self.hold_sync():
            self._layers, self._layer = block, NO_LAYERS
            self._send_chosen()

    def _send_chosen(self, change: object = None) -> None:
        """Sends the chosen layer, unless the browser has what the choice is drawn from."""
        sent = self._sent.get(self.place)
        stages = self._shown.stages(self.place)
        group = next((stage.group for stage in stages if stage.name == self.stage), "")
        if sent is None or not sent.has(self.head, self.stage, group):
            message = self._shown.message(
                self.place, head=self.head, stage=self.stage, checked=self._checked
            )
            self._sent = self._all | {
                self.place: _Sent(message)
            }  # it replaces the layer's part of the first message
            self._layer = packed({"layers": [message]})

    def _all_heads(self, *, has_maps: bool) -> bytes:
        ablated = self.trace.intervention.ablated
        mapped = [one.name for one in self.trace.attention] if has_maps else ()
        families = all_heads(self.trace, ablated, mapped=mapped)
        return packed({"families": families, "theme": THEME})

    def _answer(self, widget: object, content: dict[str, Any], buffers: object) -> None:
        """Sends what the browser asks for."""
        match content.get("kind"):
            case "library":
                self.send({"kind": "library", "parts": parts()})
            case "maps":
                self._heads = self._all_heads(has_maps=True)
            case "check" if not self._checked:
                self._checked = True
                self._send_all()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget; where none can be shown, its picture as it is now."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is not None:
            data, _ = bundle
            queries, keys = self.labels
            cell = self.head, self.query, self.key
            attention = self.trace.find(self.place)
            data["text/html"] = still(attention, cell, queries=queries, keys=keys)
        return bundle

    def _ipython_display_(self) -> None:
        """Shows the widget, and behind it its picture as it is now, which the widget hides while it lives: a
        notebook that is opened again without its kernel has the picture."""
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        if bundle is not None:
            data, metadata = bundle
            picture = f'<div data-attention-still="{self._run}">{data["text/html"]}</div>'
            display(data | {"text/html": ""}, metadata=metadata, raw=True)
            display({"text/html": picture, "text/plain": say("still_picture")}, raw=True)


class _Sent:
    """Which parts of a layer a message has brought."""

    def __init__(self, message: Json) -> None:
        layer: Any = message["layer"]
        self.place = str(layer["name"])
        self._heads = range(layer["first"], layer["first"] + layer["sent"])
        self._complete = bool(layer["complete"])
        self._groups = {name for name, group in layer["around"].items() if group["numbers"]}

    def has(self, head: int, stage: str, group: str) -> bool:
        values = self._complete or stage not in SHOW_VALUES
        return head in self._heads and values and (not group or group in self._groups)


@at_border
def show(
    subject: object,
    text: str | None = None,
    *,
    tokenizer: Any = None,
    place: str | int | None = None,
    head: int = 0,
    stage: str = "weights",
    query: int | None = None,
    key: int | None = None,
) -> AttentionExplorer:
    """One run in a notebook: its heads, stages and cells, to be chosen there or by the traits of the widget.

    subject: a trace; or a model with a `text`: what `load_model` returns, a name that it takes, or a loaded
    model of the transformers library with its `tokenizer`. place: name of an attention sub-layer, or number
    of its layer; None: the first. head, query, key: counted from 0. stage: "scores", "weights", … query None:
    the last token. key None: the one with the largest weight.

    Raises ValueError where the run has no such place, head, stage or cell, and where `text` does not fit the
    subject.

    >>> from viz.notebook import show
    >>> picture = show(trace, place="decoder.1.self", head=7)
    >>> picture.query, picture.key, round(picture.weight, 2)
    (12, 1, 0.89)
    """
    run = _run(subject, text, tokenizer)
    return explorer(run, place=place, head=head, stage=stage, query=query, key=key)


@at_border
def compare(
    trace: Trace,
    other: Trace,
    *,
    place: str | int | None = None,
    head: int = 0,
    stage: str = "weights",
    query: int | None = None,
    key: int | None = None,
) -> AttentionExplorer:
    """Two runs in a notebook: `trace` as the baseline, `other` as the changed run, and their difference.

    Words that differ stand in both forms: "cat → dog". The rest as in `show`.
    Raises ValueError where the runs have no layer in common, or one whose arrays have other shapes.

    >>> from viz.notebook import compare
    >>> picture = compare(trace, model.trace("Tom Reed saw a red ball. Anna gave the ball to Tom"))
    >>> picture.head = 7
    """
    run = compared(changed=other, baseline=trace)
    return explorer(run, place=place, head=head, stage=stage, query=query, key=key)


def _run(subject: object, text: str | None, tokenizer: Any) -> Run:
    if isinstance(subject, Trace):
        if text is not None:
            raise ValueError("A trace has its text already: show(trace), or show(model, text).")
        return Run(subject)
    if text is None:
        raise ValueError("A model needs a text: show(model, text).")
    model = _model(subject, tokenizer)
    return Run(model.trace(text), model=model)


def _model(subject: object, tokenizer: Any) -> "Model":
    from torch import nn

    from model.run.model import Model

    if isinstance(subject, Model):
        return subject
    if isinstance(subject, str):
        return load_model(subject)
    if not isinstance(subject, nn.Module):
        kind = type(subject).__name__
        raise ValueError(f"A trace, a model or a model's name can be shown, not {kind}.")
    from model.loading.in_memory import opened

    return opened(subject, tokenizer)


def explorer(
    run: Run,
    *,
    place: str | int | None = None,
    head: int = 0,
    stage: str = "weights",
    query: int | None = None,
    key: int | None = None,
) -> AttentionExplorer:
    """The widget of a run, at a cell as `show` takes it. Raises ValueError as `show`."""
    attention = run.trace.find(run.places[0] if place is None else place)
    last = attention.vectors[0].shape[1] - 1
    cell = Selection(head, stage, last if query is None else query, key or 0)
    widget = AttentionExplorer(run, attention.name, cell)
    if key is None:
        widget.key = int(np.argmax(attention.weights(widget.head)[widget.query]))
    return widget
