"""The kinds of norms, and the places where norms stand: their laws, formulas and words.

A new kind is a class here; its lines of code are those of `?kind` in `model/snippets/*.toml`. A new place is
an entry of `NORM_PLACES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

NormKind = Literal["layer", "rms"]
Float = TypeVar("Float", bound=np.floating)


class NormLaw(ABC):
    """One kind of norm: (x − mean) / √(size + ε) · γ + β, each token's vector alone."""

    name: ClassVar[str]
    a_norm: ClassVar[str]  # the name with its article
    short: ClassVar[str]
    in_map: ClassVar[str]  # its name on the map of a model
    in_torch: ClassVar[str]  # its function in torch.nn.functional
    size: ClassVar[str]  # what stands under the root, in words
    size_in_words: ClassVar[str]  # the same at the start of a line
    spread: ClassVar[str]  # the root of it
    spread_of_entry: ClassVar[str]  # its short name in an exercise
    entry: ClassVar[str]  # what is divided by it there
    taken: ClassVar[str]  # the statistics that it takes from each vector
    in_text: ClassVar[str]  # the normalized vector as plain text
    around: ClassVar[str]  # what a picture of the spread shows
    of_row: ClassVar[str]  # what the formula of a row needs
    compared: ClassVar[str]  # the start of a sentence on the statistics' largest errors, {mean}
    measured: ClassVar[tuple[tuple[str, str], ...]]  # a word and the number, "mean" or "spread"
    recalled: ClassVar[str]  # the formula beside an exercise, where the notes have none
    shifts: ClassVar[bool]  # whether a β is added
    centres: ClassVar[bool]  # whether the mean is subtracted first
    uses_variance: ClassVar[
        str
    ]  # how a sentence on PyTorch's variance ends for a model with this norm
    idea: ClassVar[
        str
    ]  # what is told of such a model beside the layer norm; "" of the layer norm itself
    words_in_code: ClassVar[str]  # the docstring of `norm(x, w)` in a listing
    code: ClassVar[tuple[tuple[str, bool], ...]]  # its lines; whether their result is as wide as x

    @abstractmethod
    def apply(
        self, x: "Tensor", gamma: "Tensor | None", beta: "Tensor | None", epsilon: float
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """The normed vectors, their means and 1/√(size + ε), of x (…, C); γ and β (C,)."""

    @abstractmethod
    def mean(self, rows: NDArray[Float]) -> NDArray[Float]:
        """(…, 1): what is subtracted from each row of (…, C)."""

    def statistics(self, rows: NDArray[Float]) -> tuple[NDArray[Float], NDArray[Float]]:
        """(…, 1) each: what is subtracted, and the mean square of what is left."""
        mean = self.mean(rows)
        return mean, np.asarray(np.square(rows - mean).mean(-1, keepdims=True))

    def normalized(self, rows: NDArray[np.floating], epsilon: float) -> NDArray[np.float64]:
        """(…, C) before γ and β, computed in double precision."""
        wide = rows.astype(np.float64)
        mean, size = self.statistics(wide)
        return np.asarray((wide - mean) / np.sqrt(size + epsilon))

    @abstractmethod
    def statistics_in_numbers(self, mean: str, size: str) -> str:
        """A line of LaTeX."""

    @abstractmethod
    def centred(self, x: str, mean: str) -> str:
        """The numerator of a formula."""

    @abstractmethod
    def size_of(self, index: str = "") -> str:
        """What stands under the root of a formula, in LaTeX. index: of the vector."""

    @abstractmethod
    def formula(self, *, shifts: bool = True) -> str:
        """The whole law in LaTeX. shifts: whether the model adds a β."""


class LayerNorm(NormLaw):
    """Ba et al. 2016. PyTorch's kernel gives its own mean and 1/√(σ² + ε)."""

    name, a_norm, short, in_map = "layer norm", "a layer norm", "LN", "norm"
    in_torch, size, spread = "layer_norm", "variance", "deviation"
    size_in_words = "Variance"
    spread_of_entry, entry = "deviation", "Difference from the mean"
    taken, around, of_row = "mean and deviation", "mean ± deviation", "mean and variance"
    in_text = "(x − μ) / √(σ² + ε)"
    compared = "the kernel's own mean differs by at most {mean}, its 1/√(σ²+ε)"
    measured = ("mean", "mean"), ("deviation", "spread")
    recalled = ""
    shifts = centres = True
    uses_variance = ", and so does this model."
    idea = ""
    words_in_code = "Layer norm: each token's vector brought to mean 0 and variance 1."
    code = (
        ("mean = x.mean(-1, keepdim=True)", False),
        ("variance = (x - mean).square().mean(-1, keepdim=True)", False),
        ("normalized = (x - mean) / (variance + {epsilon}).sqrt()", True),
    )

    def apply(
        self, x: "Tensor", gamma: "Tensor | None", beta: "Tensor | None", epsilon: float
    ) -> "tuple[Tensor, Tensor, Tensor]":
        import torch  # takes seconds to import: pages are drawn first

        return torch.native_layer_norm(x, (x.shape[-1],), gamma, beta, epsilon)

    def mean(self, rows: NDArray[Float]) -> NDArray[Float]:
        return np.asarray(rows.mean(-1, keepdims=True))

    def centred(self, x: str, mean: str) -> str:
        return f"{x} - {mean}"

    def statistics_in_numbers(self, mean: str, size: str) -> str:
        return rf"\mu &= {mean} \qquad \sigma^2 = {size}"

    def size_of(self, index: str = "") -> str:
        return rf"\sigma_{index}^2" if index else r"\sigma^2"

    def formula(self, *, shifts: bool = True) -> str:
        shift = r" + \beta_i" if shifts else ""
        return (
            r"\begin{aligned}"
            r"\mu &= \frac1d \sum_i x_i \\"
            r"\sigma^2 &= \frac1d \sum_i (x_i - \mu)^2 \\"
            r"\hat x_i &= \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}} \\"
            rf"y_i &= \gamma_i\, \hat x_i{shift}"
            r"\end{aligned}"
        )


class RmsNorm(NormLaw):
    """Zhang and Sennrich 2019."""

    name, a_norm, short, in_map = "RMS norm", "an RMS norm", "RMS", "RMS norm"
    in_torch, size, spread = "rms_norm", "mean square", "root mean square"
    size_in_words = "Mean of the squares"
    spread_of_entry, entry = "root", "x"
    taken, around, of_row = "root mean square", "± root mean square", "the mean square"
    in_text = "x / √(mean x² + ε)"
    compared = "the recorded 1/√(ms+ε) differs"
    measured = (("root mean square", "spread"),)
    recalled = r"\hat x = \frac{x}{\sqrt{\frac{1}{n}\sum_m x_m^2 + \varepsilon}}"
    shifts = centres = False
    uses_variance = ". This model uses neither: its RMS norm subtracts no mean."
    idea = (
        "**This model has RMS norms instead.** They subtract no mean and add no β: each vector is "
        "divided by the root of the mean of its squares, then multiplied by γ."
    )
    words_in_code = "RMS norm: each token's vector divided by the root of its mean square."
    code = (
        ("mean_square = x.square().mean(-1, keepdim=True)", False),
        ("normalized = x / (mean_square + {epsilon}).sqrt()", True),
    )

    def apply(
        self, x: "Tensor", gamma: "Tensor | None", beta: "Tensor | None", epsilon: float
    ) -> "tuple[Tensor, Tensor, Tensor]":
        import torch

        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
        normed = x * inverse
        normed = normed if gamma is None else normed * gamma
        return normed if beta is None else normed + beta, torch.zeros_like(inverse), inverse

    def mean(self, rows: NDArray[Float]) -> NDArray[Float]:
        return np.zeros_like(rows[..., :1])

    def centred(self, x: str, mean: str) -> str:
        return x

    def statistics_in_numbers(self, mean: str, size: str) -> str:
        return rf"\mathrm{{ms}} &= {size}"

    def size_of(self, index: str = "") -> str:
        return rf"\mathrm{{ms}}_{index}" if index else r"\mathrm{ms}"

    def formula(self, *, shifts: bool = False) -> str:
        shift = r" + \beta_i" if shifts else ""
        return (
            r"\begin{aligned}"
            r"\mathrm{ms} &= \frac1d \sum_i x_i^2 \\"
            r"\hat x_i &= \frac{x_i}{\sqrt{\mathrm{ms} + \epsilon}} \\"
            rf"y_i &= \gamma_i\, \hat x_i{shift}"
            r"\end{aligned}"
        )


NORMS: Mapping[NormKind, NormLaw] = {"layer": LayerNorm(), "rms": RmsNorm()}
NormPlace = Literal["pre", "post", "both", "after"]


@dataclass(frozen=True)
class NormOrder:
    """Where the norms of a sub-layer f stand.

    Args:
        title: of its drawing.
        steps: the parts of its drawing, from x to what is handed out.
        stream: how the stream goes on, in LaTeX.
        words: what is told of such a model, in Markdown.
    """

    title: str
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
        "pre-norm: x + f(norm(x))",
        ("x", "norm", "f", "+", "out"),
        r"x_{l+1} = x_l + f_l(\mathrm{norm}(x_l))",
        "This model is **pre-norm**, as GPT-2 is: each sub-layer reads a normalized copy, and "
        "the stream itself is never rescaled. A pre-norm stack therefore ends with one more norm.",
    ),
    "post": NormOrder(
        "post-norm: norm(x + f(x))",
        ("x", "f", "+", "norm", "out"),
        r"x_{l+1} = \mathrm{norm}(x_l + f_l(x_l))",
        "This model is **post-norm**, as the 2017 transformer and BERT are: the norm stands "
        "after the sum, so the stream itself is rescaled at every sub-layer. No final norm is needed.",
    ),
    "both": NormOrder(  # Gemma 2
        "before and after f: x + norm(f(norm(x)))",
        ("x", "norm", "f", "norm", "+", "out"),
        r"x_{l+1} = x_l + \mathrm{norm}(f_l(\mathrm{norm}(x_l)))",
        "This model norms **what each sub-layer reads and what it writes**, as Gemma 2 does. The norm "
        "after the sub-layer keeps what is added to the stream small; the stream itself is never rescaled.",
    ),
    "after": NormOrder(  # OLMo 2
        "after f: x + norm(f(x))",
        ("x", "f", "norm", "+", "out"),
        r"x_{l+1} = x_l + \mathrm{norm}(f_l(x_l))",
        "This model norms **what each sub-layer writes**, before that is added to the stream, as OLMo 2 "
        "does. The sub-layer reads the stream as it is; the stream itself is never rescaled.",
    ),
}
