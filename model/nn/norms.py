"""The kinds of norms, and the places where norms stand: their laws, formulas and words.

A new kind is a class here; its lines of code are those of `?kind` in `model/snippets/*.toml`. A new place is
an entry of `NORM_PLACES`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from model.system.words import Words

say = Words("nn.norms")

if TYPE_CHECKING:
    from torch import Tensor

NormKind = Literal["layer", "rms"]
Float = TypeVar("Float", bound=np.floating)


class NormLaw:
    """(x − mean) / √(size + ε) · γ + β, each token's vector alone: the layer norm (Ba et al. 2016).

    Other kinds say what is different.
    """

    name, short = "layer norm", "LN"
    in_map = "norm"  # its name on the map of a model
    in_torch = "layer_norm"  # its function in torch.nn.functional
    size, size_in_words = "variance", "Variance"  # what stands under the root
    spread = "deviation"  # the root of it
    entry, spread_of_entry = (
        say("norm_law_entry"),
        "deviation",
    )  # in an exercise, above and below
    taken = "mean and deviation"  # what it takes from each vector
    measured: Sequence[tuple[str, str]] = (
        ("mean", "mean"),
        ("deviation", "spread"),
    )  # with its number
    around = "mean ± deviation"  # what a picture of the spread shows
    of_row = "mean and variance"  # what the formula of a row needs
    in_text = "(x − μ) / √(σ² + ε)"
    recalled = ""  # the formula beside an exercise, where the notes have none
    shifts = True  # whether a β is added
    centres = True  # whether the mean is subtracted first
    idea = ""  # what is told of such a model beside the layer norm
    words_in_code = say("norm_law_words_in_code")
    code: Sequence[tuple[str, bool]] = (  # lines of a listing; whether their result is as wide as x
        ("mean = x.mean(-1, keepdim=True)", False),
        ("variance = (x - mean).square().mean(-1, keepdim=True)", False),
        ("normalized = (x - mean) / (variance + {epsilon}).sqrt()", True),
    )

    def compared(self, mean: str) -> str:
        """What is said of the kernel's statistics before their difference. mean: how far its mean differs."""
        return say("norm_law_compared", mean=mean)

    def apply(
        self, x: "Tensor", gamma: "Tensor | None", beta: "Tensor | None", epsilon: float
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """The normed vectors, their means and 1/√(size + ε), as the kernel has them.

        Args:
            x: (…, C).
            gamma, beta: (C,).
            epsilon: ε.
        """
        import torch  # takes seconds to import: pages are drawn first

        return torch.native_layer_norm(x, (x.shape[-1],), gamma, beta, epsilon)

    def measured_by_kernel(self, x: "Tensor", epsilon: float) -> "tuple[Tensor, Tensor]":
        """(…, 1) each: means and 1/√(size + ε), as `apply` gives them, without the normed vectors where they
        can be left out."""
        _, mean, inverse = self.apply(x, None, None, epsilon)
        return mean, inverse

    def mean(self, rows: NDArray[Float]) -> NDArray[Float]:
        """(…, 1): what is subtracted from each row of (…, C)."""
        return np.asarray(rows.mean(-1, keepdims=True))

    def statistics(self, rows: NDArray[Float]) -> tuple[NDArray[Float], NDArray[Float]]:
        """(…, 1) each: what is subtracted, and the mean square of what is left."""
        mean = self.mean(rows)
        return mean, np.asarray(np.square(rows - mean).mean(-1, keepdims=True))

    def normalized(self, rows: NDArray[np.floating], epsilon: float) -> NDArray[np.float64]:
        """(…, C) before γ and β, computed in double precision."""
        wide = rows.astype(np.float64)
        mean, size = self.statistics(wide)
        return np.asarray((wide - mean) / np.sqrt(size + epsilon))

    def centred(self, x: str, mean: str) -> str:
        """The numerator of a formula."""
        return f"{x} - {mean}"

    def size_of(self, index: str = "") -> str:
        """What stands under the root of a formula, in LaTeX. index: of the vector."""
        return rf"\sigma_{index}^2" if index else r"\sigma^2"

    def statistics_in_numbers(self, mean: str, size: str) -> str:
        """A line of LaTeX."""
        return rf"\mu &= {mean} \qquad \sigma^2 = {size}"

    def formula(self, *, shifts: bool = True) -> str:
        """The whole law in LaTeX. shifts: whether the model adds a β."""
        shift = r" + \beta_i" if shifts and self.shifts else ""
        above = self.centred("x_i", r"\mu")
        return (
            rf"\begin{{aligned}}{self._sizes}"
            rf"\hat x_i &= \frac{{{above}}}"
            rf"{{\sqrt{{{self.size_of()} + \epsilon}}}} \\"
            rf"y_i &= \gamma_i\, \hat x_i{shift}\end{{aligned}}"
        )

    _sizes = r"\mu &= \frac1d \sum_i x_i \\" r"\sigma^2 &= \frac1d \sum_i (x_i - \mu)^2 \\"


class RmsNorm(NormLaw):
    """x / √(ms + ε) · γ, with the mean of the squares (Zhang and Sennrich 2019)."""

    name, short, in_map, in_torch = "RMS norm", "RMS", "RMS norm", "rms_norm"
    size, size_in_words, spread = "mean square", say("rms_norm_size_in_words"), "root mean square"
    entry, spread_of_entry, taken = "x", "root", "root mean square"
    measured = (("root mean square", "spread"),)
    around, of_row, in_text = "± root mean square", "the mean square", "x / √(mean x² + ε)"
    recalled = r"\hat x = \frac{x}{\sqrt{\frac{1}{n}\sum_m x_m^2 + \varepsilon}}"
    shifts = centres = False
    idea = say("rms_norm_idea")
    words_in_code = say("rms_norm_words_in_code")
    code = (
        ("mean_square = x.square().mean(-1, keepdim=True)", False),
        ("normalized = x / (mean_square + {epsilon}).sqrt()", True),
    )
    _sizes = r"\mathrm{ms} &= \frac1d \sum_i x_i^2 \\"

    def compared(self, mean: str) -> str:
        """It subtracts no mean."""
        return say("rms_norm_compared")

    def apply(
        self, x: "Tensor", gamma: "Tensor | None", beta: "Tensor | None", epsilon: float
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """As the layer norm's, with zeros for the means, which are not subtracted.

        Args:
            x: (…, C).
            gamma, beta: (C,); None: not multiplied, not added.
        """
        mean, inverse = self.measured_by_kernel(x, epsilon)
        normed = x * inverse
        normed = normed if gamma is None else normed * gamma
        return normed if beta is None else normed + beta, mean, inverse

    def measured_by_kernel(self, x: "Tensor", epsilon: float) -> "tuple[Tensor, Tensor]":
        import torch

        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
        return torch.zeros_like(inverse), inverse

    def mean(self, rows: NDArray[Float]) -> NDArray[Float]:
        return np.zeros_like(rows[..., :1])

    def centred(self, x: str, mean: str) -> str:
        return x

    def size_of(self, index: str = "") -> str:
        return rf"\mathrm{{ms}}_{index}" if index else r"\mathrm{ms}"

    def statistics_in_numbers(self, mean: str, size: str) -> str:
        return rf"\mathrm{{ms}} &= {size}"


NORMS: Mapping[NormKind, NormLaw] = {"layer": NormLaw(), "rms": RmsNorm()}
NormPlace = Literal["pre", "post", "both", "after"]


@dataclass(frozen=True)
class NormOrder:
    """Where the norms of a sub-layer f stand.

    Args:
        steps: its parts, from x to what is handed out.
        stream: how the stream goes on, in LaTeX.
        words: what is told of such a model, in Markdown.
    """

    steps: tuple[str, ...]
    stream: str
    words: str

    @property
    def before(self) -> bool:
        """Whether a norm stands before the sub-layer."""
        return self.steps[1] == "norm"

    @property
    def after(self) -> bool:
        """Whether one stands on what the sub-layer writes."""
        return self.steps[self.steps.index("f") + 1] == "norm"

    @property
    def on_sum(self) -> bool:
        """Whether one stands after the sum, on the stream itself."""
        return self.steps[self.steps.index("+") + 1] == "norm"


NORM_PLACES: Mapping[NormPlace, NormOrder] = {
    "pre": NormOrder(
        ("x", "norm", "f", "+", "out"),
        r"x_{l+1} = x_l + f_l(\mathrm{norm}(x_l))",
        say("pre_norm"),
    ),
    "post": NormOrder(
        ("x", "f", "+", "norm", "out"),
        r"x_{l+1} = \mathrm{norm}(x_l + f_l(x_l))",
        say("post_norm"),
    ),
    "both": NormOrder(  # Gemma 2
        ("x", "norm", "f", "norm", "+", "out"),
        r"x_{l+1} = x_l + \mathrm{norm}(f_l(\mathrm{norm}(x_l)))",
        say("sandwich_norm"),
    ),
    "after": NormOrder(  # OLMo 2
        ("x", "f", "norm", "+", "out"),
        r"x_{l+1} = x_l + \mathrm{norm}(f_l(x_l))",
        say("norm_after"),
    ),
}
