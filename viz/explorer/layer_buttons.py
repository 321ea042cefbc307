"""The buttons that choose a layer: what stands on them and what they are called. Pure."""

from collections.abc import Sequence

from model.nn.places import Place
from viz.notation.names import sublayer_name


def layer_choices(names: Sequence[str]) -> list[dict[str, str]]:
    """Name, label and title of each layer: "L3", or "dec L3", "cross L3" where there are several kinds."""
    places = [Place.named(name) for name in names]
    stacks = len({place.stack for place in places})
    return [
        {"name": name, "label": _label(place, stacks), "title": sublayer_name(name, stacks=stacks)}
        for name, place in zip(names, places, strict=True)
    ]


def _label(place: Place, stacks: int) -> str:
    group = "cross" if place.kind == "cross" else place.stack[:3]
    return place.label if stacks == 1 else f"{group} {place.label}"
