"""The calls inside one layer of a hub model, in order: attention, linear maps, norms."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import is_map
from model.hub.attention import Attended
from model.hub.probe import Call, is_norm, near
from model.nn.config import NormPlace
from model.nn.places import Place


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer and its calls."""

    module: nn.Module
    attended: list[tuple[Place, Attended]]
    calls: list[Call]

    @property
    def span(self) -> tuple[int, int]:
        """The places of the first and the last call in the order of the pass."""
        places = [call.at for call in self.calls] + [event.at for _, event in self.attended]
        return min(places), max(places)

    @property
    def maps(self) -> list[Call]:
        return [call for call in self.calls if is_map(call.module)]

    @property
    def norms(self) -> list[Call]:
        """The norms, except those of queries and keys."""
        inner = {id(part) for _, event in self.attended for part in event.module.modules()}
        return [
            call for call in self.calls if is_norm(call.module) and id(call.module) not in inner
        ]

    def sublayers(self) -> tuple[list[Call], list[Call]]:
        """W_O of every attention, and the maps of the feed-forward. Raises ValueError where no
        output matrix follows an attention."""
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
        end = max(output.at for output in outputs)
        return outputs, [call for call in self.maps if call.at > end]

    def layout(self) -> tuple[NormPlace, bool]:
        """Whether norms stand before or after the sub-layers, and whether these read one state.

        Raises ValueError for any other layout.
        """
        norms, maps = self.norms, self.maps
        sublayers = len(self.attended) + bool(self.sublayers()[1])
        if not norms:
            raise ValueError("its layers have no norms")
        pre = norms[0].at < maps[0].at
        if len(norms) == sublayers == 2 and pre:
            first, second = norms[0].read, norms[1].read
            return "pre", first is not None and second is not None and torch.equal(first, second)
        if len(norms) == sublayers:
            return ("pre" if pre else "post"), False
        if len(norms) == 1 and sublayers == 2 and pre:
            return "pre", True
        raise ValueError(
            f"its layers have {len(norms)} norms around {sublayers} sub-layers, a layout that this "
            "app does not know"
        )

    def entered(self, place: NormPlace) -> Tensor | None:
        """The input of the layer, as its first norm or the first map of its attention reads it."""
        return (self.norms if place == "pre" else self.maps)[0].read
