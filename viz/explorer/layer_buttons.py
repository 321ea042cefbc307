"""The buttons that choose a layer: what stands on them and what they are called. Pure."""

from collections.abc import Sequence

from viz.notation.names import sublayer_name


def layer_choices(names: Sequence[str]) -> list[dict[str, str]]:
    """Name, label and title of each layer: "L3", or "dec L3", "cross L3" where there are several kinds."""
    stacks = len({name.split(".")[0] for name in names})
    return [
        {"name": name, "label": _label(name, stacks), "title": sublayer_name(name, stacks=stacks)}
        for name in names
    ]


def _label(name: str, stacks: int) -> str:
    stack, layer, kind = name.split(".")
    group = "cross" if kind == "cross" else stack[:3]
    return f"L{layer}" if stacks == 1 else f"{group} L{layer}"
