"""Where a part of the network stands, and the one way in which its name is written and read.

`decoder.3.self` is the self-attention of the decoder's layer 3, and `decoder.3.self.norm` the norm beside
it. `decoder.final` comes after the last layer; `decoder.self` is the self-attention of any layer. L3H5 is
head 5 of layer 3.
"""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

from model.nn.config import Stack
from model.system.border import is_whole, meant

Kind = Literal["self", "causal", "cross", "feed_forward", "embedding", "final", "output"]
TokenPart = Literal[  # of a model, as a token goes through it
    "tokens",
    "positions",
    "norm",
    "attention",
    "cross",
    "feed_forward",
    "add",
    "memory",
    "vectors",
    "logits",
]
Head = tuple[str, int]  # an attention sub-layer's name, and a head of it: ("decoder.3.self", 5)
_NAME = re.compile(
    r"(encoder|decoder)(?:\.(\d+))?\.(self|cross|feed_forward|embedding|final|output)(?:\.(?:norm|after))?",
    re.ASCII,
)
_HEAD = re.compile(r"L(\d+)H(\d+)", re.ASCII)


@dataclass(frozen=True)
class Place:
    """A sub-layer, or what stands before the first or after the last."""

    stack: Stack
    layer: int | None  # None: outside of the layers, or in any of them
    kind: Kind  # "causal": self-attention that looks back only; its name does not say so
    # The name of a module of somebody's own, "blocks.0.attn", its second call "blocks.0.attn#2".
    module: str = field(default="", compare=False)

    @classmethod
    def named(cls, name: str) -> "Place":
        """The place of a sub-layer, or of the norm beside it. Raises ValueError for any other name."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"{name!r} names no part of a network.")
        stack, layer, kind = found.groups()
        return cls(cast(Stack, stack), None if layer is None else int(layer), cast(Kind, kind))

    @cached_property
    def name(self) -> str:
        kind = "self" if self.kind == "causal" else self.kind
        layer = () if self.layer is None else (str(self.layer),)
        return ".".join((self.stack, *layer, kind))

    @property
    def norm(self) -> str:
        """The name of the norm beside it."""
        return f"{self.name}.norm"

    @property
    def after(self) -> str:
        """The name of a norm on what it writes, before that is added to the stream."""
        return f"{self.name}.after"

    @property
    def in_any_layer(self) -> str:
        """The name of all sub-layers like this one: decoder.self."""
        return replace(self, layer=None).name

    @property
    def label(self) -> str:
        """The layer, L3; of somebody's own network the module."""
        return self.module or f"L{self.layer}"

    @property
    def full_label(self) -> str:
        """The layer, told apart from the decoder's own: "encoder L3", "cross L3"."""
        if self.module:
            return self.module
        before = "cross " if self.kind == "cross" else "encoder " if self.stack == "encoder" else ""
        return f"{before}{self.label}"

    @property
    def before_head(self) -> str:
        """What stands before the H of a head: L3H5, "encoder L3H5", "blocks.0.attn H5"."""
        return f"{self.module} " if self.module else self.full_label

    def head(self, number: int) -> str:
        """The one name of a head."""
        return f"{self.before_head}H{number}"


def layer_label(name: str) -> str:
    """`decoder.3.self` as L3, told apart from the decoder's own layers: "encoder L3", "cross L3"."""
    return Place.named(name).full_label


def head_label(head: Head) -> str:
    """("decoder.3.self", 5) as L3H5, ("encoder.3.self", 5) as "encoder L3H5"."""
    return Place.named(head[0]).head(head[1])


def head_name(head: Head) -> str:
    """("decoder.3.self", 5) as decoder.3.self.5"""
    return f"{head[0]}.{head[1]}"


def head_named(name: str) -> Head | None:
    """decoder.3.self.5 as ("decoder.3.self", 5); None for what is no head's name."""
    sub_layer, _, number = name.rpartition(".")
    return (sub_layer, int(number)) if "." in sub_layer and number.isdecimal() else None


def decoder_head(label: str, kind: Kind = "self") -> Head:
    """L3H5 as ("decoder.3.self", 5). Raises ValueError for what is no head's label."""
    found = _HEAD.fullmatch(label)
    if found is None:
        raise ValueError(f"{label!r} names no head.")
    return Place("decoder", int(found[1]), kind).name, int(found[2])


def place_of(wanted: object, names: Sequence[str], whose: str) -> int:
    """Which of some attention sub-layers is meant.

    Args:
        wanted: its name; or the number of its layer, where each layer has one, from 0; negative ones count
            from the end.
        names: of all, in order of execution.
        whose: the model's name.

    Raises ValueError where it is none of them, with the nearest name.
    """
    if isinstance(wanted, str):
        if wanted in names:
            return names.index(wanted)
        raise ValueError(
            f"There is no attention sub-layer {wanted!r}{meant(wanted, names)}; there are "
            f"{', '.join(names)}."
        )
    if len({name.partition(".")[0] for name in names if _NAME.fullmatch(name)}) > 1:
        raise ValueError(
            f"{whose} has several stacks: name one of its sub-layers, {', '.join(names)}."
        )
    return within(wanted, len(names), f"{whose} has layers")


def within(number: object, count: int, has: str) -> int:
    """A number of one of `count` things, from 0; a negative one counts from the end. has: the beginning of
    the sentence, "decoder.0.self has heads". Raises ValueError for any other."""
    if not is_whole(number):
        raise ValueError(f"{has} 0 to {count - 1}, not {number!r}.")
    at = operator.index(number)
    if not -count <= at < count:
        raise ValueError(f"{has} 0 to {count - 1}, not {at}.")
    return at % count
