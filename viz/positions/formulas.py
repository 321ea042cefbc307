"""The LaTeX of positions, in general and with the numbers of a cell. Pure. No token text."""

from typing import Literal

Kind = Literal["sinusoidal", "learned", "rotary"]

SINUSOIDAL = (
    r"\begin{aligned} PE_{p,\,2i} &= \sin\!\left(\frac{p}{10000^{2i/d}}\right) \\"
    r" PE_{p,\,2i+1} &= \cos\!\left(\frac{p}{10000^{2i/d}}\right) \end{aligned}"
)
LEARNED = r"PE_p = W_p \quad \text{(row } p \text{ of a learned table)}"
ROTARY = (
    r"\begin{aligned} \begin{bmatrix} q_{2i}' \\ q_{2i+1}' \end{bmatrix} &= \begin{bmatrix}"
    r" \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{bmatrix}"
    r" \begin{bmatrix} q_{2i} \\ q_{2i+1} \end{bmatrix} \\"
    r" \alpha_{p,i} &= p / b^{\,2i/d_k} \end{aligned}"
)
TABLES: dict[Kind, str] = {"sinusoidal": SINUSOIDAL, "learned": LEARNED, "rotary": ROTARY}
LIKENESS = r"\cos(PE_m, PE_n) = \frac{PE_m \cdot PE_n}{\lVert PE_m \rVert \, \lVert PE_n \rVert}"
ROTARY_LIKENESS = r"\frac{2}{d_k} \sum_i \cos(\alpha_{m,i} - \alpha_{n,i})"
ORDER_BLIND = r"f(P X) = P\, f(X)"


def cell_in_numbers(
    kind: Kind, position: int, column: int, value: float, *, width: int, base: float = 10_000.0
) -> str:
    """One cell of a table with its numbers. value: the number of the table, of rotary positions the
    angle. width: d_model, of rotary positions d_k. base: of rotary positions."""
    if kind == "learned":
        return rf"W_{{{position},\,{column}}} = {value:.4f}"
    if kind == "rotary":
        power = rf"{base:g}^{{{2 * column}/{width}}}"
        return rf"\alpha_{{{position},\,{column}}} = {position} / {power} = {value:.4f}"
    wave = r"\cos" if column % 2 else r"\sin"
    power = rf"10000^{{{column - column % 2}/{width}}}"
    return (
        rf"PE_{{{position},\,{column}}} = {wave}\!\left(\frac{{{position}}}{{{power}}}\right)"
        rf" = {value:.4f}"
    )


def sum_of(parts: tuple[str, ...]) -> str:
    """What is added up before the first layer, by the names of the parts in a trace."""
    symbols = {"tokens": r"E_{\mathrm{id}_p}", "positions": "PE_p", "segments": "S_0"}
    return "x_p = " + " + ".join(symbols[part] for part in parts)
