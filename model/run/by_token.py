"""A text read with a key–value cache, as it was written: token by token."""

from itertools import pairwise

import torch
from torch import Tensor

from model.nn.intervention import Intervention
from model.nn.recorder import Level, Recorder, recording
from model.run.other_run import TextReader
from model.system.memory import enough_memory
from model.trace.joined import joined
from model.trace.records import Token


def read_by_token(
    model: TextReader,
    texts: tuple[tuple[Token, ...], tuple[Token, ...]],
    begun: int,
    *,
    intervention: Intervention,
    level: Level,
) -> tuple[Tensor, Recorder]:
    """Passes with a key–value cache over the first tokens of the last text, then over one token each, as if
    they were one pass: what they end with, (1, token, …), and what they left behind.

    Args:
        texts: of the encoder and of the decoder; of one stack its own and ().
        begun: how many tokens the first pass reads.
        intervention: holds in each pass.
        level: as in `Recorder`.

    Raises ValueError where the passes are not those of one text, and as `new_cache` does.
    """
    *source, read = (text for text in texts if text)
    cache, passes, ended = model.module.new_cache(), list[Recorder](), list[Tensor]()
    with enough_memory(f"{len(read):,} tokens in {model.name}"), torch.inference_mode():
        for first, end in pairwise((0, *range(begun, len(read) + 1))):
            passes.append(
                Recorder(intervention, level, source=model.module.config.source, cache=cache)
            )
            with recording(passes[-1]):
                ended.append(model.module(*map(model.ids, (*source, read[first:end]))))
        return torch.cat(ended, 1), joined(passes)
