"""Sections 12 to 14: whole models, from words to words. With torch or with loops."""

import torch
from torch import nn
from torch.nn.functional import (
    cosine_similarity,
    cross_entropy,
    layer_norm,
    one_hot,
    relu,
)

from tests.model.worked.recomputed.steps import Inputs, Steps, attend, parameter_count, weights_of


def encoder_layer(v: Inputs) -> Steps:
    x = v["source"]
    output = attend(x, x, x)
    first = layer_norm(x + output, (4,))
    hidden = relu(first @ v["first"]) @ v["second"]
    return [x @ x.T, weights_of(x, x), output, first, hidden, layer_norm(first + hidden, (4,))]


def decoder_layer(v: Inputs) -> Steps:
    target, source = v["target"], v["source"]
    own = attend(target, target, target, causal=True)
    first = layer_norm(target + own, (4,))
    cross = attend(first, source, source)
    second = layer_norm(first + cross, (4,))
    hidden = relu(second @ v["first"]) @ v["second"]
    return [
        weights_of(target, target, causal=True),
        own,
        first,
        first @ source.T,
        weights_of(first, source),
        cross,
        second,
        hidden,
        layer_norm(second + hidden, (4,)),
    ]


def encoder_of_the_paper(v: Inputs) -> Steps:
    layers, width, heads = (int(v[name]) for name in ("layers", "width", "heads"))
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, device="meta")
    parts = [
        parameter_count(layer.self_attn),
        parameter_count(layer.linear1, layer.linear2),
        parameter_count(layer.norm1, layer.norm2),
    ]
    whole = parameter_count(layer) * layers
    sizes = torch.tensor([layers, width, heads])
    return [sizes, torch.tensor(layer.self_attn.head_dim), torch.tensor(parts), torch.tensor(whole)]


def all_positions_at_once(v: Inputs) -> Steps:
    x = v["x"]
    together = attend(x, x, x, causal=True)
    return [together, together, torch.zeros(3, 4)]


def two_layer_decoder(v: Inputs) -> Steps:
    names = ("vocabulary", "context", "width", "heads", "hidden", "layers")
    vocabulary, context, width, heads, hidden, layers = (int(v[name]) for name in names)
    layer = nn.TransformerEncoderLayer(width, heads, hidden, device="meta")
    parts = [
        vocabulary * width,
        context * width,
        layers * parameter_count(layer.self_attn),
        layers * parameter_count(layer.linear1, layer.linear2),
        layers * parameter_count(layer.norm1, layer.norm2),
        parameter_count(nn.Linear(width, vocabulary, device="meta")),
    ]
    bounds = []
    for outputs in (width, hidden, vocabulary):
        start = nn.init.xavier_uniform_(torch.empty(outputs, width))
        bound = (6 / (width + outputs)) ** 0.5
        assert 0.99 * bound < float(start.abs().max()) <= bound
        bounds.append(bound)
    return [
        torch.tensor(layer.self_attn.head_dim),
        torch.tensor(parts),
        torch.tensor(sum(parts)),
        torch.tensor(bounds, dtype=torch.float64),
    ]


def most_probable_word(v: Inputs) -> Steps:
    logits = (v["matrix"].T @ v["hidden"] + v["bias"]).requires_grad_()
    target = v["target"].long()
    loss = cross_entropy(logits, target)
    gradient = torch.autograd.grad(loss, logits)[0]
    after = cross_entropy(logits - v["rate"] * gradient, target)
    return [
        logits.detach(),
        logits.detach().softmax(0),
        logits.argmax(),
        one_hot(target, 6),
        loss.detach(),
        gradient,
        torch.stack([loss, after]).detach(),
    ]


def to_the_vocabulary(v: Inputs) -> Steps:
    length, width, vocabulary = (int(v[name]) for name in ("length", "width", "vocabulary"))
    linear = nn.Linear(width, vocabulary, device="meta")
    logits = linear(torch.empty(length, width, device="meta"))
    clueless = cross_entropy(torch.zeros(vocabulary, dtype=torch.float64), torch.tensor(0))
    matrix = torch.tensor(linear.weight.T.shape)
    return [matrix, torch.tensor(logits.shape), torch.tensor(parameter_count(linear)), clueless]


def sequence_in_three_steps(v: Inputs) -> Steps:
    """In turn, as at generation: at each step only what was given out before is there."""
    source, target = v["source"], v["target"]
    own, cross, vectors = torch.zeros(3, 3, dtype=torch.float64), [], []
    for time in range(3):
        query, seen = target[time : time + 1], target[: time + 1]
        own[time, : time + 1] = weights_of(query, seen)[0]
        stream = query + attend(query, seen, seen)
        cross.append(weights_of(stream, source)[0])
        vectors.append((stream + attend(stream, source, source))[0])
    final = torch.stack(vectors)
    logits = final @ v["matrix"]
    return [own, torch.stack(cross), final, logits, logits.softmax(-1), logits.argmax(-1)]


def same_word_two_sentences(v: Inputs) -> Steps:
    word = v["word"][None]
    sentences = [torch.cat([word, v[name]]) for name in ("first", "second")]
    weights = torch.cat([weights_of(word, sentence) for sentence in sentences])
    after = torch.cat([attend(word, sentence, sentence) for sentence in sentences])
    cosines = torch.stack([torch.tensor(1.0), cosine_similarity(after[0], after[1], dim=0)])
    return [word.expand(2, 4), weights, after, cosines]
