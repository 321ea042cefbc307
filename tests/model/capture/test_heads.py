"""However queries and keys are made, each head, text and token of `capture` is the module's own."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.capture import CaptureWarning, capture
from model.capture.record import LATER, UNKNOWN
from tests.model.capture.own_modules import HEADS, WIDTH

TOKENS, D = 7, WIDTH // HEADS


def turned(x: Tensor) -> Tensor:
    """Rotary positions, in the spelling of Llama."""
    angles = torch.arange(x.shape[-2])[:, None] / torch.arange(1, x.shape[-1] // 2 + 1)
    angles = torch.cat((angles, angles), -1)
    one, other = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-other, one), -1) * angles.sin()


def complex_turned(x: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    angles = torch.arange(x.shape[-2])[:, None] * torch.ones(D // 2)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def written_in_pieces(x: Tensor) -> Tensor:
    made = torch.zeros(x.shape)
    made[..., :2] = x[..., :2]
    made[..., 2:] = turned(x[..., 2:])
    return made


def convolved(x: Tensor) -> Tensor:
    rows = x.reshape(-1, TOKENS, D).mT
    return F.conv1d(rows, torch.ones(D, 1, 3), padding=1, groups=D).mT.reshape(x.shape)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * x


ORDER = torch.tensor([1, 0, 3, 2])
LAST_STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "partial rotary": lambda x: torch.cat((turned(x[..., :2]), x[..., 2:]), -1),
    "partial rotary, the end": lambda x: torch.cat((x[..., :2], turned(x[..., 2:])), -1),
    "concatenate": lambda x: torch.concatenate((x[..., :1], x[..., 1:]), -1),
    "a feature of ones": lambda x: torch.cat((torch.ones_like(x[..., :1]), x), -1),
    "positions beside": lambda x: torch.cat((torch.eye(TOKENS).expand(*x.shape[:-1], -1), x), -1),
    "stack": lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2),
    "complex": complex_turned,
    "pieces": written_in_pieces,
    "einsum": lambda x: torch.einsum("...d,de->...e", x, torch.eye(D) + 0.1),
    "matmul": lambda x: x @ (torch.eye(D) + 0.1),
    "where": lambda x: torch.where(x > 0, x, x * 0.1),
    "relu": F.relu,
    "elu": lambda x: F.elu(x) + 1,
    "square": torch.square,
    "divided by its norm": lambda x: x / x.norm(dim=-1, keepdim=True),
    "custom autograd": Squared.apply,
    "gather": lambda x: x.gather(-1, ORDER.expand(x.shape)),
    "roll": lambda x: x.roll(1, -1),
    "pad": lambda x: F.pad(x, (0, 2)),
    "repeat_interleave": lambda x: x.repeat_interleave(2, -1),
    "contiguous": lambda x: x.contiguous(),
    "convolution": convolved,
    "the token before": lambda x: F.pad(x, (0, 0, 1, -1)),
    "cumsum": lambda x: x.cumsum(-1),
}
Split = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]
SPLITS: dict[str, Split] = {  # of (B, T, W) into heads, and back to (B, H, T, D)
    "an axis": (lambda x: x.unflatten(-1, (HEADS, -1)).transpose(1, 2), lambda x: x),
    "in the batch": (
        lambda x: x.unflatten(-1, (HEADS, -1)).transpose(1, 2).reshape(-1, TOKENS, D),
        lambda x: x.unflatten(0, (-1, HEADS)),
    ),
    "first": (
        lambda x: x.unflatten(-1, (HEADS, -1)).permute(2, 0, 1, 3),
        lambda x: x.transpose(0, 1),
    ),
    "pieces, before the batch": (
        lambda x: torch.cat(x.split(D, -1), 0),
        lambda x: x.unflatten(0, (HEADS, -1)).transpose(0, 1),
    ),
}


class Maps(nn.Module):
    """Three linear maps, and attention in a function of the test."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attend = attend
        self.maps = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.learned = nn.Parameter(torch.randn(1, 3, WIDTH))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.attend(self, *inputs)

    def heads(self, x: Tensor, source: Tensor | None = None) -> list[Tensor]:
        """Queries of one text, keys and values of the same or another, (B, H, T, D)."""
        read = x if source is None else source
        vectors = zip(self.maps, (x, read, read), strict=True)
        return [one(y).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one, y in vectors]


def weights_of(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return weights_of(q, k) @ v


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_no_head_is_lost_whatever_the_last_step_is(subtests: pytest.Subtests) -> None:
    for split, step in product(SPLITS.values(), LAST_STEPS.values()):
        with subtests.test(split=split, step=step):
            torch.manual_seed(0)
            apart, back = split
            for attends in (by_hand, F.scaled_dot_product_attention):
                for texts in (1, 2):

                    def attend(
                        own: Maps, x: Tensor, attends: Callable[..., Tensor] = attends
                    ) -> Tensor:
                        q, k, v = (apart(one(x)) for one in own.maps)
                        return attends(step(q), step(k), v)

                    module, x = Maps(attend), torch.randn(texts, TOKENS, WIDTH)
                    (attention,) = capture(module, x, batch=texts - 1).attention
                    with torch.no_grad():
                        q, k = (step(apart(one(x))) for one in [*module.maps][:2])
                        own = back(weights_of(q, k))[-1].numpy()
                    assert (attention.heads, attention.kind, attention.doubt) == (HEADS, "self", "")
                    weights = [attention.weights(head) for head in range(HEADS)]
                    assert np.abs(np.stack(weights) - own).max() < 1e-5


def test_where_the_steps_are_unknown_no_row_is_lost_and_a_doubt_is_said() -> None:
    def attend(own: Maps, x: Tensor) -> Tensor:
        q, k, v = (one.reshape(-1, TOKENS, D) for one in own.heads(x))
        return by_hand(torch.vmap(lambda one: one * 2)(q), k, v)

    (attention,) = capture(Maps(attend), torch.randn(2, TOKENS, WIDTH)).attention
    assert attention.heads == 2 * HEADS
    assert attention.doubt.startswith(UNKNOWN.partition("{")[0])


def test_attention_over_channels_is_no_attention_over_tokens(subtests: pytest.Subtests) -> None:
    """XCiT (El-Nouby et al. 2021): each weight joins two channels."""
    for attends in [by_hand, F.scaled_dot_product_attention]:
        with subtests.test(attends=attends):
            torch.manual_seed(0)

            def attend(own: Maps, x: Tensor) -> Tensor:
                q, k, v = (one.mT for one in own.heads(x))
                return attends(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v)

            with pytest.raises(ValueError, match="its queries are channels, not tokens"):
                capture(Maps(attend), torch.randn(1, TOKENS, WIDTH))


def test_heads_that_attend_to_each_other_are_no_tokens() -> None:
    def attend(own: Maps, x: Tensor) -> Tensor:
        return by_hand(*(one.transpose(1, 2) for one in own.heads(x)))

    with pytest.raises(ValueError, match="parts of one token"):
        capture(Maps(attend), torch.randn(1, TOKENS, WIDTH))


def learned_keys(own: Maps, x: Tensor) -> Tensor:
    q, k, v = own.heads(x)
    more = own.heads(own.learned.expand(len(x), -1, -1))[1]
    return by_hand(q, torch.cat((more, k), 2), torch.cat((more, v), 2))


def zero_keys(own: Maps, x: Tensor) -> Tensor:
    q, k, v = own.heads(x)
    return by_hand(q, F.pad(k, (0, 0, 1, 0)), F.pad(v, (0, 0, 1, 0)))


def memory(own: Maps, x: Tensor) -> Tensor:
    norm = nn.LayerNorm(WIDTH)
    return by_hand(*own.heads(norm(x), norm(torch.cat((x.flip(1).clone(), x), 1))))


def resampler(own: Maps, x: Tensor) -> Tensor:
    """Learned queries that read the text and themselves (Flamingo)."""
    latents = own.learned.expand(len(x), -1, -1)
    for _ in range(2):
        heads = by_hand(*own.heads(latents, torch.cat((x, latents), 1)))
        latents = latents + heads.transpose(1, 2).flatten(2)
    return latents


def fewer_keys(own: Maps, x: Tensor) -> Tensor:
    return by_hand(*own.heads(x, F.avg_pool1d(x.mT, 2).mT))


def low_rank(own: Maps, x: Tensor) -> Tensor:
    """Queries and keys come out of narrow maps of their own (DeepSeek)."""
    narrow = [F.linear(x, torch.randn(WIDTH, WIDTH)) for _ in range(2)]
    return by_hand(*own.heads(*narrow))


def outside_maps(own: Maps, x: Tensor) -> Tensor:
    maps = [torch.randn(WIDTH, WIDTH) for _ in range(3)]
    return by_hand(*((x @ one).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in maps))


def test_keys_beside_those_of_the_text_do_not_make_it_cross_attention(
    subtests: pytest.Subtests,
) -> None:
    for texts, (attend, queries, keys) in product([1, 2], [
        (learned_keys, 7, 10), (zero_keys, 7, 8), (memory, 7, 14), (resampler, 3, 10), (fewer_keys, 7, 3),
        (low_rank, 7, 7), (outside_maps, 7, 7),
    ]):  # fmt: skip
        with subtests.test(texts=texts, attend=attend.__name__):
            torch.manual_seed(0)
            trace = capture(Maps(attend), torch.randn(texts, TOKENS, WIDTH), batch=texts - 1)
            assert {one.kind for one in trace.attention} == {"self"}
            assert {one.sizes for one in trace.attention} == {(HEADS, queries, keys)}


def test_learned_queries_that_read_the_text_alone_cross() -> None:
    def attend(own: Maps, x: Tensor) -> Tensor:
        latents = own.learned.expand(len(x), -1, -1)
        latents = latents + by_hand(*own.heads(latents, x)).transpose(1, 2).flatten(2)
        return by_hand(*own.heads(latents))

    trace = capture(Maps(attend), torch.randn(2, TOKENS, WIDTH), batch=1)
    assert [one.kind for one in trace.attention] == ["cross", "self"]


@pytest.mark.filterwarnings("ignore")
def test_a_decoder_that_reads_the_same_text_as_its_encoder_crosses() -> None:
    from transformers import BartConfig, BartModel

    layers = {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("layers",)}
    config = BartConfig(
        vocab_size=50, d_model=WIDTH, encoder_ffn_dim=8, decoder_ffn_dim=8, **layers
    )
    trace = capture(BartModel(config), torch.randint(5, 50, (1, TOKENS)))
    assert [one.kind for one in trace.attention] == ["self", "causal", "cross"]


@pytest.mark.filterwarnings("ignore")
def test_a_window_says_that_it_is_one_of_many(subtests: pytest.Subtests) -> None:
    for texts in [1, 2]:
        with subtests.test(texts=texts):
            torch.manual_seed(0)
            from transformers import SwinConfig, SwinModel

            sizes = {"image_size": 32, "patch_size": 4, "embed_dim": 8, "window_size": 2}
            config = SwinConfig(**sizes, depths=[2, 2], num_heads=[2, 4])
            trace = capture(SwinModel(config), torch.randn(texts, 3, 32, 32), batch=texts - 1)
            windows = [16 * texts] * 2 + [4 * texts] * 2
            assert [one.heads for one in trace.attention] == [2, 2, 4, 4]
            for attention, count in zip(trace.attention, windows, strict=True):
                assert f"in {count} parts" in attention.doubt
                assert f"this is part {texts - 1}" in attention.doubt


def test_queries_that_a_module_reads_in_pieces_are_one_record(subtests: pytest.Subtests) -> None:
    for size in [3, 5]:
        with subtests.test(size=size):
            torch.manual_seed(0)

            def attend(own: Maps, x: Tensor) -> Tensor:
                q, k, v = own.heads(x)
                return torch.cat([by_hand(one, k, v) for one in q.split(size, 2)], 2)

            module, x = Maps(attend), torch.randn(2, TOKENS, WIDTH)
            trace = capture(module, x, batch=1, tokens=[*"abcdefg"])
            (attention,) = trace.attention
            with torch.no_grad():
                own = weights_of(*module.heads(x)[:2])[1].numpy()
            assert attention.doubt == ""
            assert [token.text for token in trace.queries_of(attention)] == [*"abcdefg"]
            assert (
                max(np.abs(attention.weights(head) - own[head]).max() for head in range(HEADS))
                < 1e-6
            )


def test_later_queries_with_keys_of_their_own_say_which_tokens_they_are() -> None:
    def attend(own: Maps, x: Tensor) -> Tensor:
        pieces = x.split(4, 1)
        reads = zip(pieces, (pieces[0], x), strict=True)
        return torch.cat([by_hand(*own.heads(one, source)) for one, source in reads], 2)

    first, later = capture(Maps(attend), torch.randn(1, TOKENS, WIDTH)).attention
    assert (first.doubt, first.kind, later.kind) == ("", "self", "self")
    assert later.doubt == LATER.format(4, 6)


def test_a_text_that_is_not_there_is_refused_with_how_many_there_are() -> None:
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = torch.randn(2, TOKENS, WIDTH)
    with pytest.raises(ValueError, match="reads 2 texts at once, and batch is 2"):
        capture(module, x, x, x, batch=2)


@pytest.mark.filterwarnings("ignore")
def test_flex_attention_is_read(subtests: pytest.Subtests) -> None:
    for compiles in [True, False]:
        with subtests.test(compiles=compiles):
            torch.manual_seed(0)
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention

            mask = create_block_mask(
                lambda b, h, i, j: i >= j, None, None, TOKENS, TOKENS, device="cpu"
            )
            slopes = torch.arange(HEADS) / 8

            def attend(own: Maps, x: Tensor) -> Tensor:
                q, k, v = own.heads(x)
                attends = torch.compile(flex_attention) if compiles else flex_attention
                return attends(
                    q, k[:, :2], v[:, :2], lambda score, b, h, i, j: score + slopes[h] * (j - i),
                    block_mask=mask, scale=0.3, enable_gqa=True,
                )  # fmt: skip

            module, x = Maps(attend), torch.randn(2, TOKENS, WIDTH)
            (attention,) = capture(module, x, batch=1).attention
            with torch.no_grad():
                q, k, _ = module.heads(x)
                far = torch.arange(TOKENS) - torch.arange(TOKENS)[:, None]
                scores = q @ k[:, :2].repeat_interleave(2, 1).mT * 0.3 + slopes[:, None, None] * far
                own = scores.masked_fill(far > 0, -torch.inf).softmax(-1)[1].numpy()
            assert (attention.kind, attention.heads, attention.doubt) == ("causal", HEADS, "")
            assert attention.scale == pytest.approx(0.3)
            assert (
                max(np.abs(attention.weights(head) - own[head]).max() for head in range(HEADS))
                < 1e-6
            )


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_module_is_read(subtests: pytest.Subtests) -> None:
    for kind in [torch.qint8, torch.float16]:
        with subtests.test(kind=kind):
            torch.manual_seed(0)
            from torch.ao.quantization import quantize_dynamic

            module = quantize_dynamic(
                Maps(lambda own, x: by_hand(*own.heads(x))).eval(), {nn.Linear}, dtype=kind
            )
            module.table = torch.quantize_per_channel(  # with a scheme that PyTorch cannot copy
                torch.randn(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8
            )
            x = torch.randn(1, TOKENS, WIDTH)
            (attention,) = capture(module, x).attention
            with torch.no_grad():
                own = weights_of(*module.heads(x)[:2])[0].numpy()
            assert (attention.heads, attention.doubt) == (HEADS, "")
            assert (
                max(np.abs(attention.weights(head) - own[head]).max() for head in range(HEADS))
                < 1e-6
            )


@pytest.mark.filterwarnings("ignore")
def test_what_a_module_cannot_read_is_refused_with_what_to_give(subtests: pytest.Subtests) -> None:
    for given, sentence in [
        (
            {"input_ids": torch.ones(1, 4)},
            "cannot read a dict as one input. Give its tensors by name",
        ),
        ("a text", "cannot read text. Give the ids"),
        (["a", "b"], "cannot read text. Give the ids"),
        ([[1, 2]], "cannot read a list. Give a tensor"),
        (np.ones((1, 2), int), "cannot read a ndarray. Give a tensor"),
    ]:
        with subtests.test(given=given, sentence=sentence):
            torch.manual_seed(0)
            module = nn.Sequential(
                nn.Embedding(9, WIDTH), Maps(lambda own, x: by_hand(*own.heads(x)))
            )
            with pytest.raises(ValueError, match=sentence) as refusal:
                capture(module, given)
            assert refusal.value.__cause__ is not None


def test_an_error_of_the_module_itself_is_raised_as_it_is() -> None:
    with pytest.raises(IndexError, match="out of range"):
        capture(nn.Embedding(9, WIDTH), torch.tensor([9]))


def test_a_batch_of_a_tokenizer_is_refused_with_how_to_give_it() -> None:
    from transformers import BatchEncoding

    module = nn.Sequential(nn.Embedding(9, WIDTH), Maps(lambda own, x: by_hand(*own.heads(x))))
    with pytest.raises(ValueError, match=r"a BatchEncoding as one input.*\*\*inputs"):
        capture(module, BatchEncoding({"input": torch.ones(1, 4)}))


def test_a_module_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="on the meta device"):
        capture(nn.MultiheadAttention(WIDTH, HEADS, device="meta"), *[torch.ones(1, 2, WIDTH)] * 3)


def test_a_warning_names_channels_beside_what_was_recorded() -> None:
    over_tokens = Maps(lambda own, x: by_hand(*own.heads(x)).transpose(1, 2).flatten(2))
    over_channels = Maps(lambda own, x: by_hand(*(one.mT for one in own.heads(x))))
    with pytest.warns(
        CaptureWarning, match="^1 has attention that is not recorded: its queries are ch"
    ):
        trace = capture(nn.Sequential(over_tokens, over_channels), torch.randn(1, TOKENS, WIDTH))
    assert [one.module for one in trace.attention] == ["0"]
