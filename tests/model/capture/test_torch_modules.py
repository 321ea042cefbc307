"""`capture` of PyTorch's own attention, and traces of plain arrays: weights and outputs are PyTorch's."""

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import Trace, load_trace
from model.capture import capture

TEXTS, TOKENS, OTHERS, WIDTH, HEADS = 3, 5, 7, 16, 4
LATER = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
PADDED = torch.tensor([[False] * 5, [False] * 4 + [True], [False] * 3 + [True] * 2])
MASKS = {
    "none": {},
    "bool": {"attn_mask": LATER},
    "numbers": {"attn_mask": torch.zeros(TOKENS, TOKENS).masked_fill(LATER, -torch.inf)},
    "padding": {"key_padding_mask": PADDED},
    "both": {"attn_mask": LATER, "key_padding_mask": PADDED},
    "bias": {"attn_mask": torch.randn(TEXTS * HEADS, TOKENS, TOKENS)},
}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_its_weights_are_those_that_pytorch_returns(subtests: pytest.Subtests) -> None:
    for masks, need_weights, batch_first in product(MASKS.values(), [True, False], [True, False]):
        with subtests.test(masks=masks, need_weights=need_weights, batch_first=batch_first):
            torch.manual_seed(0)
            module = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.5, batch_first=batch_first)
            x = torch.randn(TEXTS, TOKENS, WIDTH)
            x = x if batch_first else x.transpose(0, 1)
            (found,) = capture(
                module, x, x, x, **masks, need_weights=need_weights, batch=2
            ).attention
            own = module.eval()(x, x, x, **masks, average_attn_weights=False)[1][2].detach().numpy()
            assert (
                max(np.abs(found.weights(head) - own[head]).max() for head in range(HEADS)) < 1e-6
            )
            assert found.check() < 1e-6
            assert found.kind == (
                "causal" if "attn_mask" in masks and masks["attn_mask"].ndim == 2 else "self"
            )


class ByPosition(nn.Module):
    """Hands `training` on as the 14th argument, as fairseq does."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.5)

    def forward(self, x: Tensor) -> Tensor:
        own = self.inner
        given = WIDTH, HEADS, own.in_proj_weight, own.in_proj_bias, None, None, False, own.dropout
        out = own.out_proj
        ended: Tensor = F.multi_head_attention_forward(x, x, x, *given, out.weight, out.bias, True)[
            0
        ]
        return ended


def test_training_may_be_told_by_position() -> None:
    x = torch.randn(TOKENS, 1, WIDTH)
    module = ByPosition()
    (found,) = capture(module, x).attention
    own = module.inner.eval()(x, x, x, average_attn_weights=False)[1][0].detach().numpy()
    assert max(np.abs(found.weights(head) - own[head]).max() for head in range(HEADS)) < 1e-6


def test_heads_of_width_one_are_no_texts(subtests: pytest.Subtests) -> None:
    for texts in [1, TEXTS]:
        with subtests.test(texts=texts):
            torch.manual_seed(0)
            module = nn.MultiheadAttention(HEADS, HEADS, batch_first=True)
            x = torch.randn(texts, TOKENS, HEADS)
            (found,) = capture(module, x, x, x, batch=texts - 1).attention
            own = module.eval()(x, x, x, average_attn_weights=False)[1][-1].detach().numpy()
            assert found.heads == HEADS
            assert (
                max(np.abs(found.weights(head) - own[head]).max() for head in range(HEADS)) < 1e-6
            )


def test_other_widths_learned_keys_and_zeros_are_keys_too(subtests: pytest.Subtests) -> None:
    for need_weights in [True, False]:
        with subtests.test(need_weights=need_weights):
            torch.manual_seed(0)
            module = nn.MultiheadAttention(
                WIDTH,
                HEADS,
                kdim=12,
                vdim=10,
                add_bias_kv=True,
                add_zero_attn=True,
                batch_first=True,
            )
            given = (
                torch.randn(2, TOKENS, WIDTH),
                torch.randn(2, OTHERS, 12),
                torch.randn(2, OTHERS, 10),
            )
            (found,) = capture(module, *given, need_weights=need_weights).attention
            own = module.eval()(*given, average_attn_weights=False)[1][0].detach().numpy()
            assert found.kind == "cross"
            assert own.shape == (HEADS, TOKENS, OTHERS + 2)
            assert (
                max(np.abs(found.weights(head) - own[head]).max() for head in range(HEADS)) < 1e-6
            )


def test_a_layers_fast_path_is_off_for_the_pass_alone() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)
    stack = nn.TransformerEncoder(layer, 2).eval()
    trace = capture(stack, torch.randn(TEXTS, TOKENS, WIDTH), src_key_padding_mask=PADDED, batch=1)
    assert [one.module for one in trace.attention] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert trace.attention[0].mask[0].tolist() == [True] * 4 + [False]
    assert torch.backends.mha.get_fastpath_enabled()


def test_encoder_and_decoder_are_told_apart_by_cross_attention(subtests: pytest.Subtests) -> None:
    for others in [TOKENS, OTHERS]:
        with subtests.test(others=others):
            torch.manual_seed(0)
            module = nn.Transformer(WIDTH, HEADS, 2, 2, 32, batch_first=True)
            x, y = torch.randn(2, others, WIDTH), torch.randn(2, TOKENS, WIDTH)
            mask = nn.Transformer.generate_square_subsequent_mask(TOKENS)
            trace = capture(module, x, y, tgt_mask=mask)
            assert [(one.name, one.kind) for one in trace.attention] == [
                ("encoder.0.self", "self"),
                ("encoder.1.self", "self"),
                ("decoder.0.self", "causal"),
                ("decoder.0.cross", "cross"),
                ("decoder.1.self", "causal"),
                ("decoder.1.cross", "cross"),
            ]
            assert (len(trace.tokens), len(trace.target_tokens)) == (others, TOKENS)
            assert trace.check() < 1e-5


def test_a_captured_trace_comes_back_from_its_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    module = nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True, batch_first=True)
    x = torch.randn(1, TOKENS, WIDTH)
    trace = capture(module, x, x, x, tokens=[*"abcde"])
    trace.save(tmp_path / "own.safetensors")
    again = load_trace(tmp_path / "own.safetensors")
    found = again.find("MultiheadAttention")
    assert np.array_equal(found.weights(3), trace.attention[0].weights(3))
    assert again.text == "a b c d e"
    assert [token.text for token in again.keys_of(found)] == [*"012345"]  # one key is learned


def arrays(*sizes: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    return tuple(random.normal(size=(HEADS, size, 8)).astype(np.float32) for size in sizes)


def test_plain_arrays_give_pytorchs_attention(subtests: pytest.Subtests) -> None:
    for kind in [np.asarray, torch.from_numpy]:
        with subtests.test(kind=kind):
            assert callable(kind)
            q, k, v = arrays(TOKENS, TOKENS, TOKENS)
            mask = np.tril(np.ones((TOKENS, TOKENS), bool))
            trace = Trace.from_arrays(
                query=kind(q), key=kind(k), value=kind(v), mask=kind(mask), tokens=[*"abcde"]
            )
            own = F.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), is_causal=True)
            assert trace.attention[0].kind == "causal"
            assert np.abs(trace.attention[0].output - own.numpy()).max() < 1e-6
            assert trace.check() < 1e-6
            layers = Trace.from_arrays(query=[q, q], key=[k, k], value=[v, v], scale=1.0)
            assert [one.name for one in layers.attention] == ["encoder.0.self", "encoder.1.self"]
            assert layers.attention[0].scale == 1.0


def test_arrays_that_do_not_fit_are_refused(subtests: pytest.Subtests) -> None:
    for given, sentence in [
        ({"query": arrays(5)[0][0]}, "three axes"),
        ({"key": arrays(5)[0][:, :, :3]}, "differ in d_k"),
        ({"value": arrays(5)[0] * np.nan}, "not finite"),
        ({"mask": np.ones((3, 3), bool)}, r"queries and keys need \(5, 5\)"),
        ({"mask": np.tril(np.ones((5, 5), int))}, "holds whole numbers"),
        ({"mask": torch.ones(5, 5, dtype=torch.uint8)}, "holds whole numbers"),
        ({"mask": np.tri(5, dtype=np.float32) * np.nan}, "holds what is no number"),
        ({"tokens": ["a"]}, "names 1 tokens, but attention reads 5"),
        ({"tokens": "abcde"}, "tokens is "),
        ({"key": [*arrays(5, 5)]}, "query has 1 layers, but key has 2"),
        ({"scale": float("inf")}, "finite number"),
    ]:
        with subtests.test(given=given, sentence=sentence):
            q, k, v = arrays(TOKENS, TOKENS, TOKENS)
            with pytest.raises(ValueError, match=sentence):
                Trace.from_arrays(**{"query": q, "key": k, "value": v} | given)  # type: ignore[arg-type]
