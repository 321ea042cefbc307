"""Parts of the run of another sentence, kept to be put into a pass."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from model.nn.patches import Site, Through, keeping, putting, unchanged
from model.nn.recorder import Recorder, recording
from model.run.protocols import Runnable
from model.run.refusals import check_patch
from model.trace.records import Token


class Reader(Protocol):
    """A model that reads texts."""

    name: str
    module: Runnable

    def tokens(self, text: str) -> tuple[Token, ...]: ...

    def ids(self, tokens: Sequence[Token]) -> Tensor: ...


def from_other_run(
    model: Reader,
    recorder: Recorder,
    tokens: tuple[Token, ...],
    target_tokens: tuple[Token, ...],
) -> Through:
    """What puts the parts of the other run, which is passed now, into the next one, as its intervention
    asks. Raises ValueError where they do not fit."""
    patch = recorder.intervention.patch
    if patch is None:
        return unchanged
    other = model.tokens(patch.text)
    check_patch(patch, model.name, model.module, (len(tokens), len(target_tokens)), len(other))
    sites, kept = patch.sites, dict[Site, Tensor]()
    donor = Recorder(
        replace(recorder.intervention, patch=None),
        recorder.level,
        source=recorder.source,
        deferred=True,
        through=keeping(kept, sites),
    )
    with recording(donor), torch.inference_mode():
        model.module(*map(model.ids, filter(None, (other, target_tokens))))
    return putting(kept, [sites])
