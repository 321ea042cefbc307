"""Interventions on the attention of somebody's own module, made while a second pass runs: heads left out;
and in calls of PyTorch's fused kernel another factor and another mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from model.nn.intervention import UNCHANGED, Intervention
from model.nn.masks import causal_mask
from model.trace.given import MASKED_BELOW
from model.trace.records import Attention

KERNEL = "scaled_dot_product_attention"
CARRIED = ("scale", "mask", "ablated", "only")
_BY_POSITION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


Call = tuple[
    str, int
]  # the name of its last operation's kind, and which one of them it is in a pass


@dataclass(frozen=True, eq=False)
class CallChange:
    """What is changed in one call of attention."""

    scale: float | None
    mask: str  # as in `Intervention`
    ablated: tuple[int, ...]
    module: str  # that makes the call

    def arguments(
        self, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's arguments with another factor and mask. Raises ValueError where the mask also holds
        numbers that are added to the scores."""
        asked = dict(zip(_BY_POSITION, given, strict=False)) | dict(named)
        if self.scale is not None:
            asked["scale"] = self.scale
        if self.mask != "model":
            asked["attn_mask"] = self._mask(asked)
            asked["is_causal"] = False
        return tuple(asked.pop(name) for name in _BY_POSITION[:3]), asked

    def _mask(self, asked: Mapping[str, Any]) -> Tensor | None:
        """bool, True = may look; None: everywhere. Keys that no query may look at, such as padding, stay
        hidden where the mask is lifted."""
        query, key = asked["query"], asked["key"]
        past = causal_mask(query.shape[-2], key.shape[-2]).to(query.device)
        own: Tensor | None = asked.get("attn_mask")
        if asked.get("is_causal"):
            own = causal_mask(query.shape[-2], query.shape[-2]).to(query.device)
            own = torch.nn.functional.pad(own, (0, key.shape[-2] - query.shape[-2]))
        if own is not None and own.dtype is not torch.bool:
            if bool(((own != 0) & (own > MASKED_BELOW)).any()):
                raise ValueError(
                    f"The mask of {self.module} cannot be changed: it also holds numbers that are added to "
                    "the scores."
                )
            own = own == 0
        if self.mask == "causal":
            return past if own is None else own & past
        return None if own is None else own.any(-2, keepdim=True).expand(own.shape)

    def leave_out(self, output: Tensor, texts: Tensor) -> None:
        """Sets the output (…, query, d_v) of heads to zero in the module's memory, of all texts. texts:
        (row,), the number of the text of each row of the leading axes; a text's rows are its heads in order.
        """
        for text in texts.unique():
            rows = torch.nonzero(texts == text)[:, 0]
            for head in self.ablated:
                at = torch.unravel_index(rows[head], output.shape[:-2])
                output[at] = 0


def changes_of(
    intervention: Intervention, attention: Sequence[Attention], calls: Sequence[Call | None]
) -> dict[Call, CallChange]:
    """What changes in which call.

    Args:
        intervention: its attention is named as in the trace, "decoder.0.self", or by its module.
        attention: the records of the unchanged pass, in order of execution.
        calls: that made each of them; None where there was more than one.

    Raises ValueError, with a sentence, for names and heads that there are not, and for what `capture` cannot
    change.
    """
    others = [
        one.name
        for one in fields(Intervention)
        if one.name not in CARRIED
        and getattr(intervention, one.name) != getattr(UNCHANGED, one.name)
    ]
    if others:
        raise ValueError(
            f"capture changes {', '.join(CARRIED[:-1])} of attention, and not {', '.join(others)}."
        )
    known = {name for one in attention for name in (one.name, one.module)}
    asked = {name for name, _ in intervention.ablated} | (intervention.only or frozenset())
    if unknown := asked - known:
        there = ", ".join(one.module for one in attention)
        raise ValueError(f"There is no attention {min(unknown)!r}; there is {there}.")
    changes = {}
    for one, call in zip(attention, calls, strict=True):
        change = _change_of(intervention, one)
        if change is None:
            continue
        changes_scores = change.scale is not None or change.mask != "model"
        if call is None or (changes_scores and call[0] != KERNEL):
            raise ValueError(
                f"{one.module} cannot be changed so: scale and mask are changed only in one call of "
                f"`{KERNEL}`, and heads are left out only where all queries are read at once. Name other "
                "attention in `only`."
            )
        if max(change.ablated, default=0) >= one.heads:
            raise ValueError(f"{one.module} has {one.heads} heads, counted from 0.")
        changes[call] = change
    return changes


def _change_of(intervention: Intervention, one: Attention) -> CallChange | None:
    names = {one.name, one.module}
    heads = tuple(sorted({head for name, head in intervention.ablated if name in names}))
    named = intervention.only is not None and bool(intervention.only & names)
    applies = intervention.only is None or named
    scale = intervention.scale if applies else None
    mask = intervention.mask if applies and (named or one.kind != "cross") else "model"
    if scale is None and mask == "model" and not heads:
        return None
    return CallChange(scale, mask, heads, one.module)
