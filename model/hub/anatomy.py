"""Which part of a Hugging Face model does what, read from one pass and checked against it.

Only attention is required. Any other part that cannot be identified is left out, with its reason: no picture
is better than a number under a wrong name. Axes: B batch, T tokens, C width of the model.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from torch import Tensor, nn

from model.hub.attention import carries_a_state
from model.hub.parts import (
    Anatomy,
    AttentionPart,
    BlockPart,
    FeedForwardPart,
    NormPart,
    StackPart,
    norm_part,
)
from model.hub.probe import (
    LayerRun,
    PartCall,
    Probe,
    SubLayer,
    attend_in_all,
    feed_forward_parts,
    first_row,
    is_norm,
    is_rotary,
    layers_of,
    looked_up,
    model_width,
    near,
    reads_at_once,
    token_factor,
)
from model.nn.config import ProvenPart, Shape, Stack
from model.nn.norms import NormPlace
from model.nn.places import Place

BETWEEN_LAYERS: tuple[ProvenPart, ...] = (
    "stream", "embedding", "norms", "unembedding", "logit_parts", "positions", "sizes",
)  # fmt: skip
Arranged = Sequence[tuple[SubLayer, ...]]  # of each layer


def anatomy(model: nn.Module, found: Probe, shape: Shape) -> Anatomy:
    """The anatomy of a model from its probe. Raises ValueError for one whose attention cannot be read."""
    if not found.attended:
        raise ValueError(
            carries_a_state(model)
            or "none of its layers goes through the library's attention interface"
        )
    layers = layers_of(model, found, shape)
    reader = _StackReader(found)
    with reader.tries(*BETWEEN_LAYERS):
        attend_in_all(model, layers)
    stacks = tuple(
        reader.stack(stack, own)
        for stack in ("encoder", "decoder")
        if (own := [layer for layer in layers if layer.attended[0][0].stack == stack])
    )
    rotary = {id(call.module): call.module for call in found.calls if is_rotary(call.module)}
    width = model_width(found)
    with reader.tries("stream"):
        width = layers[0].entered.shape[-1]
    return Anatomy(shape, width, stacks, tuple(rotary.values()), reader.unknown)


@dataclass(frozen=True)
class _Tries:
    unknown: dict[ProvenPart, str]
    parts: tuple[ProvenPart, ...]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, ValueError):
            return False
        for part in self.parts:
            self.unknown.setdefault(part, str(error))
        return True


class _StackReader:
    """Reads the stacks of a model, and notes why parts are not known."""

    def __init__(self, found: Probe) -> None:
        self.found = found
        self.unknown: dict[ProvenPart, str] = {}

    def tries(self, *parts: ProvenPart) -> "_Tries":
        """Notes a ValueError in its body as the reason why some parts are left out."""
        return _Tries(self.unknown, parts)

    def stack(self, stack: Stack, layers: Sequence[LayerRun]) -> StackPart:
        found = self.found
        length = found.target if found.target and stack == "decoder" else found.source
        arranged: Arranged = [()] * len(layers)
        place: NormPlace | None = None
        parallel = False
        with self.tries("stream", "norms"):
            given = [layer.sublayers() for layer in layers]
            place, parallel = _layout(given)
            arranged = given
        before = after = None
        with self.tries("norms"):
            before, after = _norms_around(stack, layers, found, length)
        tokens = positions = segments = None
        factor = 1.0
        with self.tries("embedding"):
            first = min(layer.span[0] for layer in layers)
            tokens, positions, segments = looked_up(found, stack, length, first)
            entered = layers[0].entered if before is None else before.read
            factor = token_factor(tokens, positions, segments, entered)
        return StackPart(
            stack=stack,
            tokens=None if tokens is None else tokens.module,
            token_factor=factor,
            positions=None if positions is None else positions.module,
            first_position=0 if positions is None else first_row(positions),
            segments=None if segments is None else segments.module,
            embedding_norm=self._norm(before, Place(stack, None, "embedding").norm),
            starts_normed=before is not None and _same(before.gave, layers[0]),
            blocks=tuple(
                self._block(Place(stack, number, "feed_forward"), layer, parts)
                for number, (layer, parts) in enumerate(zip(layers, arranged, strict=True))
            ),
            final_norm=self._norm(after, Place(stack, None, "final").norm),
            norm_place=place,
            parallel=parallel,
        )

    def _norm(self, call: PartCall | None, name: str) -> NormPart | None:
        if call is None:
            return None
        part = norm_part(call, name)
        if part.kind is None:
            kind = type(call.module).__name__
            reason = f"its {name} ({kind}) is neither a layer norm nor an RMS norm"
            self.unknown.setdefault("norms", reason)
        return part

    def _block(self, place: Place, layer: LayerRun, parts: tuple[SubLayer, ...]) -> BlockPart:
        """One layer; parts: its sub-layers, none where these are not known."""
        outputs: Sequence[PartCall | None] = [None] * len(layer.attended)
        writers = outputs
        with self.tries("output", "stream"):
            writers = layer.writers()
        with self.tries("output"):
            outputs = layer.outputs()
        own: dict[str, SubLayer] = {part.place.name: part for part in parts}
        attentions = tuple(
            AttentionPart(
                place=at,
                module=event.module,
                output=None if output is None else output.module,
                writes=None if writer is None else writer.module,
                heads=event.query.shape[1],
                key_heads=event.key.shape[1],
                head_width=event.query.shape[-1],
                window=event.window,
                **self._norms_of(own.get(at.name)),
            )
            for (at, event), output, writer in zip(layer.attended, outputs, writers, strict=True)
        )
        feed_forward = self._feed_forward(place, layer, own.get(place.name))
        return BlockPart(layer.module, attentions, feed_forward, layer.turn, layer.turns)

    def _norms_of(self, part: SubLayer | None) -> dict[str, NormPart | None]:
        if part is None:
            return {"norm": None, "after": None}
        return {
            "norm": self._norm(part.before or part.summed, part.place.norm),
            "after": self._norm(part.after, part.place.after),
        }

    def _feed_forward(
        self, place: Place, layer: LayerRun, known: SubLayer | None
    ) -> FeedForwardPart | None:
        """The feed-forward of a layer, if it has one. Its neurons are told where its last map writes."""
        maps: tuple[PartCall, ...] = ()
        with self.tries("feed_forward"):
            maps = layer.feeds() if known is None else known.maps
        last = maps[-1] if maps else None
        if known is None and last is None:
            return None
        parts, writes = None, last if known is None else known.writes
        router = None if writes is None else _router(layer, writes)
        if writes is last and router is None:
            with self.tries("feed_forward"):
                parts = feed_forward_parts(maps)
        elif router is None:
            reason = "it holds more than maps around an activation"
            self.unknown.setdefault("feed_forward", reason)
        entry = maps[0] if writes is last else writes
        if entry is None or writes is None:
            return None
        return FeedForwardPart(
            name=place.name,
            parts=parts,
            entry=entry.module,
            whole=None if parts is not None else writes.module,
            router=None if router is None else router.module,
            **self._norms_of(known),
        )


def _router(layer: LayerRun, whole: PartCall) -> PartCall | None:
    """The part of a feed-forward that gives logits of experts, weights, and the numbers of those chosen."""
    inside = {id(part) for part in whole.module.modules()}
    for call in layer.calls:
        given = call.whole
        if id(call.module) in inside and isinstance(given, tuple) and len(given) == 3:
            logits, weights, chosen = given
            if (
                all(isinstance(one, Tensor) and one.ndim == 2 for one in given)
                and not chosen.dtype.is_floating_point
                and weights.shape == chosen.shape
                and len(logits) == len(weights)
            ):
                return call
    return None


def _same(gave: Tensor, layer: LayerRun) -> bool:
    """Whether a layer reads the output of a part."""
    with suppress(ValueError):
        return gave.shape == layer.entered.shape and near(gave, layer.entered)
    return False


def _layout(arranged: Arranged) -> tuple[NormPlace, bool]:
    """Where the norms of a stack stand, and whether the sub-layers of a layer read one state.

    Raises ValueError where its layers differ in that.
    """
    places = {part.norm_place for parts in arranged for part in parts}
    at_once = {reads_at_once(parts) for parts in arranged}
    if len(at_once) > 1 or ("post" in places and len(places) > 1):
        raise ValueError("its layers are built in different ways")
    for place in ("post", "both", "after"):
        if place in places:
            return ("both" if {"pre", "after"} <= places else place), at_once.pop()
    return "pre", at_once.pop()


def _norms_around(
    stack: Stack, layers: Sequence[LayerRun], found: Probe, length: int
) -> tuple[PartCall | None, PartCall | None]:
    """The norm before the first layer and the one after the last, over texts of some length.

    Raises ValueError where several stand there.
    """
    inside = {id(part) for layer in layers for part in layer.module.modules()}
    first = min(layer.span[0] for layer in layers)
    last = max(layer.span[1] for layer in layers)
    norms = [
        call
        for call in found.calls
        if is_norm(call.module) and call.gives_one and id(call.module) not in inside
        if call.gave.ndim == 3 and call.gave.shape[1] == length
    ]
    before = [call for call in norms if call.at < first]
    after = [call for call in norms if call.at > last]
    if len(before) > 1 or len(after) > 1:
        raise ValueError(f"it has several norms before or after the layers of its {stack}")
    return next(iter(before), None), next(iter(after), None)
