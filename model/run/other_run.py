"""What a pass takes from a run of another text, which is passed first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from model.nn.patches import HookPoint, Hooks, cache_hooks, patch_hooks
from model.nn.recorder import Recorder, recording
from model.run.protocols import Named, check_patch
from model.trace.records import Token


class TextReader(Named, Protocol):
    """A model that reads texts."""

    def tokens(self, text: str) -> tuple[Token, ...]: ...

    def ids(self, tokens: Sequence[Token]) -> Tensor: ...


def from_other_run(
    model: TextReader,
    recorder: Recorder,
    tokens: tuple[Token, ...],
    target_tokens: tuple[Token, ...],
) -> tuple[Hooks, ...]:
    """What puts the parts of the other run, which is passed now, into the next one, as its intervention
    asks.

    Args:
        recorder: of the next pass; it is read, not written into.
        tokens: of the text of the next pass.
        target_tokens: that both decoders read; () without a second stack.

    Raises ValueError where they do not fit.
    """
    patch = recorder.intervention.patch
    if patch is None:
        return ()
    other = model.tokens(patch.text)
    check_patch(patch, model.name, model.module, (len(tokens), len(target_tokens)), len(other))
    points, kept = patch.points, dict[HookPoint, Tensor]()
    donor = Recorder(
        replace(recorder.intervention, patch=None),
        recorder.level,
        source=recorder.source,
        deferred=True,
        hooks=(cache_hooks(kept, points),),
    )
    with recording(donor), torch.inference_mode():
        model.module(*map(model.ids, filter(None, (other, target_tokens))))
    return (patch_hooks(kept, [points]),)
