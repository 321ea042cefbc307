"""The programs of failing_code.toml: each as it fails, and mended. Pages show them as they stand here.

A linter and a type checker object to some of them; pyproject.toml lets them stand.
"""

import torch
from torch import Tensor, nn


def transpose_of_a_batch(batch: int, length: int, width: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * width).view(batch, length, width)
    queries = keys = values = x
    scores = queries @ keys.T
    weights = torch.softmax(scores / width**0.5, dim=-1)
    return weights @ values


def transpose_of_a_batch_mended(batch: int, length: int, width: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * width).view(batch, length, width)
    queries = keys = values = x
    scores = queries @ keys.transpose(-2, -1)
    weights = torch.softmax(scores / width**0.5, dim=-1)
    return weights @ values


def values_transposed(length: int, width: int) -> Tensor:
    values = torch.linspace(-1, 1, length * width).view(length, width)
    weights = torch.softmax(torch.eye(length), dim=-1)
    return weights @ values.T


def values_transposed_mended(length: int, width: int) -> Tensor:
    values = torch.linspace(-1, 1, length * width).view(length, width)
    weights = torch.softmax(torch.eye(length), dim=-1)
    return weights @ values


def map_of_the_wrong_height(length: int, width: int, head_width: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(length, width)
    w_query = torch.ones(length, head_width)
    return x @ w_query


def map_of_the_wrong_height_mended(length: int, width: int, head_width: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(length, width)
    w_query = torch.ones(width, head_width)
    return x @ w_query


def mask_of_the_whole_context(length: int, context: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    future = torch.triu(torch.ones(context, context), diagonal=1).bool()
    masked = scores.masked_fill(future, -torch.inf)
    return torch.softmax(masked, dim=-1)


def mask_of_the_whole_context_mended(length: int, context: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    future = torch.triu(torch.ones(context, context), diagonal=1).bool()
    masked = scores.masked_fill(future[:length, :length], -torch.inf)
    return torch.softmax(masked, dim=-1)


def dropout_never_made(length: int) -> Tensor:
    class CausalAttention(nn.Module):
        def forward(self, weights):
            return self.dropout(weights)

    weights = torch.full((length, length), 1 / length)
    return CausalAttention().eval()(weights)


def dropout_never_made_mended(length: int) -> Tensor:
    class CausalAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.dropout = nn.Dropout(0.1)

        def forward(self, weights):
            return self.dropout(weights)

    weights = torch.full((length, length), 1 / length)
    return CausalAttention().eval()(weights)


def forward_inside_init(length: int, width: int) -> Tensor:
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)

            def forward(self, x):
                return self.norm(x)

    x = torch.linspace(-1, 1, length * width).view(length, width)
    return Block()(x)


def forward_inside_init_mended(length: int, width: int) -> Tensor:
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            return self.norm(x)

    x = torch.linspace(-1, 1, length * width).view(length, width)
    return Block()(x)


def misspelt_mask(length: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    mask = torch.ones(length, length).tril()
    masked = scores.masked_fill(maks == 0, -1e9)
    return torch.softmax(masked, dim=-1)


def misspelt_mask_mended(length: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    mask = torch.ones(length, length).tril()
    masked = scores.masked_fill(mask == 0, -1e9)
    return torch.softmax(masked, dim=-1)


# fmt: off
def point_for_a_comma(length: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    mask = torch.ones(length, length).tril()
    masked = scores.masked_fill(mask == 0. -1e9)
    return torch.softmax(masked, dim=-1)
# fmt: on


def point_for_a_comma_mended(length: int) -> Tensor:
    scores = torch.linspace(-1, 1, length * length).view(length, length)
    mask = torch.ones(length, length).tril()
    masked = scores.masked_fill(mask == 0, -1e9)
    return torch.softmax(masked, dim=-1)


def heads_that_do_not_divide(width: int, heads: int, length: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(1, length, width)
    head_width = width // heads
    return x.view(1, length, heads, head_width).transpose(1, 2)


def heads_that_do_not_divide_mended(width: int, heads: int, length: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(1, length, width)
    heads = max(fewer for fewer in range(1, heads + 1) if width % fewer == 0)
    head_width = width // heads
    return x.view(1, length, heads, head_width).transpose(1, 2)


def heads_in_pytorchs_module(width: int, heads: int, length: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(1, length, width)
    attention = nn.MultiheadAttention(width, heads, batch_first=True)
    return attention(x, x, x)[0]


def heads_in_pytorchs_module_mended(width: int, heads: int, length: int) -> Tensor:
    x = torch.linspace(-1, 1, length * width).view(1, length, width)
    heads = max(fewer for fewer in range(1, heads + 1) if width % fewer == 0)
    attention = nn.MultiheadAttention(width, heads, batch_first=True)
    return attention(x, x, x)[0]


def text_longer_than_the_table(length: int, context: int, width: int) -> Tensor:
    table = nn.Embedding(context, width)
    return table(torch.arange(length))


def text_longer_than_the_table_mended(length: int, context: int, width: int) -> Tensor:
    table = nn.Embedding(context, width)
    return table(torch.arange(min(length, context)))


def only_pads(batch: int, length: int, real_tokens: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * 8).view(batch, length, 8)
    pads = (torch.arange(length) >= real_tokens).expand(batch, length)
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    with torch.no_grad():
        result = encoder(x, src_key_padding_mask=pads)
    return result


def only_pads_mended(batch: int, length: int, real_tokens: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * 8).view(batch, length, 8)
    pads = (torch.arange(length) >= real_tokens).expand(batch, length)
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    result, real = torch.zeros_like(x), ~pads.all(-1)
    with torch.no_grad():
        if real.any():
            kept = encoder(x[real], src_key_padding_mask=pads[real])
            result[real, : kept.shape[1]] = kept
    return result


def only_pads_in_one_layer(batch: int, length: int, real_tokens: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * 8).view(batch, length, 8)
    pads = (torch.arange(length) >= real_tokens).expand(batch, length)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    return attention(x, x, x, key_padding_mask=pads)[0]


def only_pads_in_one_layer_mended(batch: int, length: int, real_tokens: int) -> Tensor:
    x = torch.linspace(-1, 1, batch * length * 8).view(batch, length, 8)
    pads = (torch.arange(length) >= real_tokens).expand(batch, length)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    empty = pads.all(-1, keepdim=True)
    result = attention(x, x, x, key_padding_mask=pads & ~empty)[0]
    return result.masked_fill(empty[:, :, None], 0.0)
