"""The LaTeX of positions, in general and with the numbers of a cell. Pure. No token text."""

from typing import Literal

from model.nn.config import RotaryPairs, TransformerConfig
from model.worked.equality import settled

Kind = Literal["sinusoidal", "learned", "rotary"]
BiasKind = Literal["alibi", "buckets"]

SINUSOIDAL = (
    r"\begin{aligned} PE_{p,\,2i} &= \sin\!\left(\frac{p}{10000^{2i/d}}\right) \\"
    r" PE_{p,\,2i+1} &= \cos\!\left(\frac{p}{10000^{2i/d}}\right) \end{aligned}"
)
LEARNED = r"PE_p = W_p \quad \text{(row } p \text{ of a learned table)}"
LIKENESS = r"\cos(PE_m, PE_n) = \frac{PE_m \cdot PE_n}{\lVert PE_m \rVert \, \lVert PE_n \rVert}"
ROTARY_LIKENESS = r"\frac{2}{r} \sum_i \cos(\alpha_{m,i} - \alpha_{n,i})"
ORDER_BLIND = r"f(P X) = P\, f(X)"


_PAIRS: dict[RotaryPairs, tuple[str, str] | None] = {
    "halves": ("i", "i+r/2"),
    "neighbours": ("2i", "2i+1"),
    "other": None,
}


def table_formula(kind: Kind, config: TransformerConfig) -> str:
    """Where the numbers of a table come from. Of rotary positions the pairs are those that the model
    turns; where it has none of them, those of the paper (Su et al. 2021, section 3.4.2)."""
    if kind != "rotary":
        return SINUSOIDAL if kind == "sinusoidal" else LEARNED
    pairs = _PAIRS[config.rotary_pairs if config.turns_positions else "neighbours"]
    angles = r"\alpha_{p,i} &= p / b^{\,2i/r}"
    width = rf"r &= {config.turned_width}"
    turned = r"q' &= R(\alpha_p)\, q"
    if pairs is not None:
        one, other = pairs
        turned = (
            rf"\begin{{bmatrix}} q_{{{one}}}' \\ q_{{{other}}}' \end{{bmatrix}} &= \begin{{bmatrix}}"
            r" \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{bmatrix}"
            rf" \begin{{bmatrix}} q_{{{one}}} \\ q_{{{other}}} \end{{bmatrix}}"
        )
    return rf"\begin{{aligned}} {turned} \\ {angles} \\ {width} \end{{aligned}}"


def cell_in_numbers(
    kind: Kind, position: int, column: int, value: float, *, width: int, base: float = 10_000.0
) -> str:
    """One cell of a table with its numbers. value: the number of the table, of rotary positions the
    angle. width: d_model, of rotary positions the turned part of d_k. base: of rotary positions."""
    if kind == "learned":
        return rf"W_{{{position},\,{column}}} = {value:.4f}"
    if kind == "rotary":
        power = rf"{base:g}^{{{2 * column}/{width}}}"
        return settled(rf"\alpha_{{{position},\,{column}}} = {position} / {power} = {value:.4f}")
    wave = r"\cos" if column % 2 else r"\sin"
    power = rf"10000^{{{column - column % 2}/{width}}}"
    return settled(
        rf"PE_{{{position},\,{column}}} = {wave}\!\left(\frac{{{position}}}{{{power}}}\right)"
        rf" = {value:.4f}"
    )


def bias_formula(kind: BiasKind, *, two_ways: bool) -> str:
    """What is added to the score of query i and key j."""
    if kind == "alibi":
        return r"b_{ij} = -m_h \cdot (i - j)"
    steps, bucket = (r"\max(-d,\, 0)", "f(s)")
    if two_ways:
        steps, bucket = (r"\lvert d \rvert", r"f(s) + \tfrac{B}{2}\,[d > 0]")
    return (
        r"\begin{aligned} b_{ij} &= W_{\beta(j - i),\, h} \\"
        rf" \beta(d) &= {bucket},\quad s = {steps} \\"
        r" f(s) &= \begin{cases} s & s < e \\ \min\!\left(n - 1,\; e + \left\lfloor"
        r" \frac{\ln (s / e)}{\ln (D / e)} (n - e) \right\rfloor\right) & s \ge e \end{cases} \end{aligned}"
    )


def bias_in_numbers(
    kind: BiasKind,
    distance: int,
    value: float,
    *,
    slope: float = 0.0,
    bucket: int = 0,
    head: int = 0,
) -> str:
    """One head's bias at one distance with its numbers."""
    if kind == "alibi":
        return settled(rf"b = -{slope:.6g} \cdot {-distance} = {value:.4f}")
    return settled(
        rf"b = W_{{\beta({distance}),\, {head}}} = W_{{{bucket},\, {head}}} = {value:.4f}"
    )


def sum_of(parts: tuple[str, ...], *, scaled: bool = False) -> str:
    """What is added up before the first layer, by the names of the parts in a trace. scaled: whether
    rows of the table are multiplied by √d first."""
    token = r"E_{\mathrm{id}_p}"
    symbols = {
        "tokens": rf"\sqrt{{d}}\, {token}" if scaled else token,
        "positions": "PE_p",
        "segments": "S_0",
    }
    return "x_p = " + " + ".join(symbols[part] for part in parts)
