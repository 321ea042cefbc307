"""A small attention layer as an exercise asks for it, and copies of it with one line wrong."""

import math

import torch
from torch import Tensor, nn

WIDTH, HEADS, GROUPS, TOKENS = 48, 6, 2, 9


class Exercise(nn.Module):
    """Causal attention with grouped keys and rotary positions. Axes: B T C, B H T D."""

    base = 10_000.0

    def __init__(self) -> None:
        super().__init__()
        d = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, HEADS * d)
        self.key = nn.Linear(WIDTH, GROUPS * d)
        self.value = nn.Linear(WIDTH, GROUPS * d)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(one(x)) for one in (self.query, self.key, self.value))
        q, k = self.turn(q), self.turn(k)
        k, v = self.repeat(k), self.repeat(v)
        scores = self.scale(q @ k.transpose(-2, -1))
        scores = scores.masked_fill(~self.mask(x.shape[1]), -math.inf)
        heads = scores.softmax(-1) @ v
        return self.out(heads.transpose(1, 2).flatten(2))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

    def repeat(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(HEADS // GROUPS, 1)

    def scale(self, scores: Tensor) -> Tensor:
        return scores / math.sqrt(WIDTH // HEADS)

    def mask(self, tokens: int) -> Tensor:
        return torch.ones(tokens, tokens, dtype=torch.bool).tril()

    def angles(self, tokens: int, width: int) -> Tensor:
        steps = self.base ** (-torch.arange(0, width, 2) / width)
        return torch.arange(tokens)[:, None] * steps

    def turn(self, x: Tensor) -> Tensor:
        angles = self.angles(x.shape[-2], x.shape[-1])
        first, second = x.chunk(2, -1)
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Unscaled(Exercise):
    def scale(self, scores: Tensor) -> Tensor:
        return scores * 1.0


class ScaledByWidth(Exercise):
    def scale(self, scores: Tensor) -> Tensor:
        return scores / math.sqrt(WIDTH)


class ScaledTwice(Exercise):
    def scale(self, scores: Tensor) -> Tensor:
        return scores / (WIDTH // HEADS)


class Unmasked(Exercise):
    def mask(self, tokens: int) -> Tensor:
        return torch.ones(tokens, tokens, dtype=torch.bool)


class ShowsTheNext(Exercise):
    def mask(self, tokens: int) -> Tensor:
        return torch.ones(tokens, tokens, dtype=torch.bool).tril(1)


class HidesThePast(Exercise):
    def mask(self, tokens: int) -> Tensor:
        return torch.ones(tokens, tokens, dtype=torch.bool).triu()


class TiledKeys(Exercise):
    def repeat(self, x: Tensor) -> Tensor:
        return x.repeat(1, HEADS // GROUPS, 1, 1)


class DealtHeads(Exercise):
    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (WIDTH // HEADS, -1)).permute(0, 3, 1, 2)


class Neighbours(Exercise):
    def turn(self, x: Tensor) -> Tensor:
        angles = self.angles(x.shape[-2], x.shape[-1])
        first, second = x[..., ::2], x[..., 1::2]
        cosine, sine = angles.cos(), angles.sin()
        turned = first * cosine - second * sine, second * cosine + first * sine
        return torch.stack(turned, -1).flatten(-2)


class OtherBase(Exercise):
    base = 500_000.0


class OddBase(Exercise):
    base = 7_500.0


class Unturned(Exercise):
    def turn(self, x: Tensor) -> Tensor:
        return x * 1.0


class BeginsAtOne(Exercise):
    def angles(self, tokens: int, width: int) -> Tensor:
        return super().angles(tokens + 1, width)[1:]


class HalfPrecision(Exercise):
    def split(self, x: Tensor) -> Tensor:
        return super().split(x.bfloat16().float())


class Biasless(Exercise):
    """The value map lacks its bias."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.value.bias.zero_()
        return super().forward(x)


# By the class, the stage at which it parts from the exercise, and words of the cause.
FAULTS: dict[type[Exercise], tuple[str, str]] = {
    Unscaled: ("scaled", "not divided by √d_k"),
    ScaledByWidth: ("scaled", "divided by √d_model instead of √d_k"),
    ScaledTwice: ("scaled", "divided by √d_k twice"),
    Unmasked: ("mask", "has no mask"),
    ShowsTheNext: ("mask", "off by one: it shows the next token"),
    HidesThePast: ("mask", "it hides the past"),
    TiledKeys: ("key", "0 1 0 1 (tile)"),
    DealtHeads: ("query", "split in the other order"),
    Neighbours: ("rotary", "pairs are 2i and 2i + 1"),
    OtherBase: ("rotary", "base is 500,000 instead of 10,000"),
    OddBase: ("rotary", "base is 7,500 instead of 10,000"),
    Unturned: ("rotary", "no rotary positions"),
    BeginsAtOne: ("rotary", "begin later by one"),
    HalfPrecision: ("query", "computes in bfloat16"),
    Biasless: ("value", "bias of the map is another one, or missing"),
}
WITHOUT_POSITIONS = (DealtHeads,)  # of these turned vectors show nothing


def exercise(kind: type[Exercise] = Exercise, *, turns: bool = True) -> Exercise:
    """An exercise with the same weights each time."""
    torch.manual_seed(0)
    module = kind()
    if not turns:
        module.turn = lambda x: x * 1.0  # type: ignore[method-assign]
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def vectors() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(1, TOKENS, WIDTH)
