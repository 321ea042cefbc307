"""The loss that training makes smaller: cross-entropy, without all logits in memory at once."""

import torch.nn.functional as F
from torch import Tensor
from torch.nn import LinearCrossEntropyOptions

from model.nn.masks import padding_mask
from model.nn.transformer import Transformer
from model.training.recipe import IGNORED, Batch

# Logits of 2,048 tokens over 8,192 words take 67 MB. Those of 256 tokens stay in the processor's cache.
_CHUNKS = LinearCrossEntropyOptions(batch_chunk_size=256, chunking_method=None)


def batch_loss(module: Transformer, batch: Batch) -> Tensor:
    """Mean cross-entropy, in nats a token, over the scored targets of a batch."""
    states = _states(module, batch)
    scored = batch.targets != IGNORED
    return F.linear_cross_entropy(
        states[scored], module.logits_table, batch.targets[scored], options=_CHUNKS
    )


def _states(module: Transformer, batch: Batch) -> Tensor:
    """(B, T, C): the decoder's output before the output matrix."""
    if module.decoder is None or module.config.turns_positions:
        raise ValueError("Only decoders with added positions, or none, are trained here.")
    target = module.embedding(batch.inputs, "decoder")
    if batch.source is None:
        return module.decoder(target)
    mask = None if batch.padding is None else padding_mask(batch.padding)
    memory = module.encode(batch.source, batch.padding)
    return module.decoder(target, memory, memory_mask=mask)
