"""One run of one layer of a hub model: its sub-layers and the places of its norms, identified by the numbers.

Axes: B batch, T tokens, C width of the model, H heads, D width of a head.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import is_map
from model.hub.attention import Attended
from model.hub.probe import Call, is_norm, near
from model.nn.config import NormPlace
from model.nn.places import Place


@dataclass(frozen=True, eq=False)
class SubLayer:
    """An attention, or the feed-forward, of a layer, and its norms."""

    place: Place
    event: Attended | None  # of an attention
    maps: tuple[Call, ...]  # W_O of an attention; all maps of a feed-forward
    writes: Call  # the part whose output is added to the stream
    before: Call | None = None  # the norm that it reads through
    after: Call | None = None  # the norm on what it writes
    summed: Call | None = None  # the norm of its sum with the stream

    @property
    def starts(self) -> int:
        """Before this place in the order of the pass its norm has run."""
        return self.maps[0].at if self.event is None and self.maps else self._first.at

    @property
    def _first(self) -> Call | Attended:
        return self.writes if self.event is None else self.event

    @property
    def norm_place(self) -> NormPlace | None:
        """None without any norm."""
        if self.summed is not None:
            return "post"
        if self.after is not None:
            return "after" if self.before is None else "both"
        return None if self.before is None else "pre"


@dataclass(frozen=True, eq=False)
class Layer:
    """One run of a layer and its calls."""

    module: nn.Module
    attended: list[tuple[Place, Attended]]
    calls: list[Call]  # in order; the layer's own is the last
    turn: int  # which of its module's runs this is
    turns: int

    @property
    def span(self) -> tuple[int, int]:
        """The places of the first and the last call in the order of the pass."""
        places = [call.at for call in self.calls] + [event.at for _, event in self.attended]
        return min(places), max(places)

    @property
    def entered(self) -> Tensor:
        """(B, T, C): the input of the layer. Raises ValueError where the probe did not see it."""
        own = self._own
        if own is None or own.read is None or own.read.shape != own.gave.shape:
            raise ValueError("what one of its layers reads and gives could not be recorded")
        return own.read

    @property
    def _own(self) -> Call | None:
        return next((call for call in reversed(self.calls) if call.module is self.module), None)

    @property
    def maps(self) -> list[Call]:
        return [call for call in self.calls if is_map(call.module) and call.gives_one]

    @property
    def norms(self) -> list[Call]:
        """The norms, except those of queries and keys, which run inside an attention before it attends."""
        inner = {
            id(part): event.at for _, event in self.attended for part in event.module.modules()
        }
        return [
            call
            for call in self.calls
            if is_norm(call.module) and call.gives_one and call.at > inner.get(id(call.module), -1)
        ]

    def outputs(self) -> list[Call]:
        """W_O of every attention. Raises ValueError where no output matrix follows one."""
        outputs = []
        for place, event in self.attended:
            following = next((call for call in self.maps if call.at > event.at), None)
            B, H, T, D = event.output.shape
            read = None if following is None else following.read
            if following is None or read is None or read.shape != (B, T, H * D):
                raise ValueError(f"no output matrix follows its attention {place.name}")
            if not near(read, event.output.transpose(1, 2).reshape(B, T, H * D)):
                raise ValueError(
                    f"it changes the heads' outputs of {place.name} before its output matrix"
                )
            outputs.append(following)
        return outputs

    def feeds(self) -> tuple[Call, ...]:
        """The maps of the feed-forward: those that run after every attention. Raises ValueError as `outputs`
        does."""
        end = max(output.at for output in self.outputs())
        return tuple(call for call in self.maps if call.at > end)

    def sublayers(self) -> tuple[SubLayer, ...]:
        """The sub-layers with their norms, in the arrangement in which their outputs add up to the layer's
        output. Raises ValueError where there is none."""
        entered, gave = self.entered, self.calls[-1].gave
        attentions = tuple(
            SubLayer(place, event, (output,), output)
            for (place, event), output in zip(self.attended, self.outputs(), strict=True)
        )
        for feed in self._feed_forwards():
            for post in (False, True):
                parts = attentions if feed is None else (*attentions, feed)
                found, state = self._arranged(parts, entered, post=post)
                if near(state, gave):
                    return found
        place = self.attended[0][0]
        raise ValueError(
            f"what the sub-layers of its {place.stack} layer {place.layer} write does not add up to what the "
            "layer gives"
        )

    def _feed_forwards(self) -> Iterator[SubLayer | None]:
        """What may be the feed-forward: the last map writes, or a part with weights of its own; or there is
        none."""
        maps, first = self.feeds(), self.attended[0][0]
        place = Place(first.stack, first.layer, "feed_forward")
        end = max(output.at for output in self.outputs())
        attentions = {id(event.module) for _, event in self.attended}
        parts = [
            call
            for call in reversed(self.calls)
            if call.at > end
            and not is_map(call.module)
            and not is_norm(call.module)
            and next(call.module.parameters(), None) is not None
            and not any(id(part) in attentions for part in call.module.modules())
        ]
        for writes in (*maps[-1:], *parts):
            if writes.gave.numel() == self.entered.numel():
                yield SubLayer(place, None, maps, writes)
        yield None

    def _arranged(
        self, parts: tuple[SubLayer, ...], entered: Tensor, *, post: bool
    ) -> tuple[tuple[SubLayer, ...], Tensor]:
        """The sub-layers with the norms that read the stream or what they write, and the state at the end.
        post: whether the sums are normed."""
        state, found = entered, []
        for part in parts:
            before = None if post else self._norm_before(part, (state, entered))
            after = next(self._norms_of((part.writes.gave,), since=part.writes.at), None)
            written = (after or part.writes).gave
            if written.numel() != state.numel():
                sizes = (" × ".join(map(str, one.shape)) for one in (written, state))
                raise ValueError(
                    "{} writes {} numbers, and its layer reads {}".format(part.place.name, *sizes)
                )
            state = state + written.reshape(state.shape)
            summed = next(self._norms_of((state,), since=part.writes.at), None) if post else None
            state = state if summed is None else summed.gave.reshape(state.shape)
            found.append(replace(part, before=before, after=after, summed=summed))
        return tuple(found), state

    def _norm_before(self, part: SubLayer, states: tuple[Tensor, ...]) -> Call | None:
        """The norm of one of some states that a sub-layer reads; the last one where none is seen to be read,
        because several may run before both sub-layers (Falcon)."""
        fitting = [call for call in self._norms_of(states) if call.at < part.starts]
        reading = part.maps[:1] if part.event is None else self._maps_into(part.event)
        read = [call.read for call in reading if call.read is not None]
        own = [call for call in fitting if any(_equal(call.gave, one) for one in read)]
        return next(reversed(own or fitting), None)

    def _maps_into(self, event: Attended) -> list[Call]:
        """The maps of an attention that run before it attends."""
        inside = {id(part) for part in event.module.modules()}
        return [call for call in self.maps if id(call.module) in inside and call.at < event.at]

    def _norms_of(self, states: tuple[Tensor, ...], *, since: int = -1) -> Iterator[Call]:
        """The norms since a place that read one of some states."""
        for call in self.norms:
            read = call.read
            if call.at > since and read is not None and any(_equal(read, one) for one in states):
                yield call


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two states are equal; OPT leaves the batch axis out of some."""
    return one.numel() == other.numel() and near(one.reshape(other.shape), other)


def reads_at_once(parts: tuple[SubLayer, ...]) -> bool:
    """Whether attention and feed-forward read one state (GPT-NeoX, Phi)."""
    norms = [part.before for part in parts if part.before is not None]
    if len(parts) != 2 or len(norms) != 2:
        return False
    one, other = norms[0].read, norms[1].read
    return one is not None and other is not None and torch.equal(one, other)
