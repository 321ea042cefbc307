"""A recurrent network beside attention: its steps by the formulas, and the gradient by each token.

Axes: B batch, T tokens, C width, V vocabulary.
"""

import torch
from torch import Tensor

from model.nn.recurrent import RecurrentLayers
from model.nn.transformer import Transformer
from model.trace.arrays import Array


def states_by_formula(layers: RecurrentLayers, x: Tensor) -> Tensor:
    """x (T, C) to the states (T, C), one step after the other (Cho et al. 2014, as PyTorch writes it).

    r and z are the reset and the update gate, n the new content; h = (1 − z) · n + z · h before.
    """
    w_x, w_h, b_x, b_h = layers.recurrent.all_weights[0]
    state, states = x.new_zeros(layers.recurrent.hidden_size), []
    for vector in x:
        given, carried = w_x @ vector + b_x, w_h @ state + b_h
        (r_x, z_x, n_x), (r_h, z_h, n_h) = given.chunk(3), carried.chunk(3)
        reset, update = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        state = (1 - update) * torch.tanh(n_x + reset * n_h) + update * state
        states.append(state)
    return torch.stack(states)


def gradient_by_token(module: Transformer, ids: Tensor) -> Array:
    """(T): the length of the derivative of the last position's logits, all V of them, by each token's
    vector as it enters the first layer. ids (1, T) of a decoder."""
    if module.decoder is None:
        raise ValueError("Only a decoder has logits of its last position.")
    with torch.enable_grad():
        size = module.config.d_vocab
        vectors = module.embedding(ids, "decoder").detach()
        each = vectors.repeat(size, 1, 1).requires_grad_()  # a copy for each logit
        logits = module.logits(module.decoder(each))[:, -1]
        (slopes,) = torch.autograd.grad(logits.diagonal().sum(), each)  # (V, T, C)
    lengths: Array = slopes.square().sum((0, 2)).sqrt().numpy()
    return lengths
