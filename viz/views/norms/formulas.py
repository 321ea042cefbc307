"""The LaTeX of layer norm and RMS norm: in general, and with the numbers of one token. Pure."""

from model.trace.records import NormRecord
from model.worked.equality import sign
from model.worked.latex import factor, number


def norm_in_numbers(norm: NormRecord, token: int, dimension: int, *, shifts: bool = True) -> str:
    """One token and dimension of a recorded norm, with every number of the formula."""
    x, mean = float(norm.input[token, dimension]), float(norm.mean[token])
    variance = float(norm.variance[token])
    unit = float(norm.normalized[token, dimension])
    gamma, beta = float(norm.gamma[dimension]), float(norm.beta[dimension])
    output = float(norm.output[token, dimension])
    root = rf"\sqrt{{{number(variance)} + {_small(norm.epsilon)}}}"
    place = f"_{{{dimension}}}"
    law = norm.law
    end = rf" + {factor(beta)}" if shifts and law.shifts else ""
    share = rf"\frac{{{law.centred(number(x), factor(mean))}}}{{{root}}}"
    scaled = rf"{factor(gamma)} \cdot {factor(unit)}{end}"
    return (
        rf"\begin{{aligned}} {law.statistics_in_numbers(number(mean), number(variance))} \\"
        rf"\hat x{place} &= {share} \\"
        rf"&{sign(share, number(unit))} {number(unit)} \\"
        rf"y{place} &= {scaled} \\"
        rf"&{sign(scaled, number(output))} \mathbf{{{number(output)}}}"
        r"\end{aligned}"
    )


def _small(epsilon: float) -> str:
    """Epsilon as a power of ten where it is one."""
    mantissa, _, power = f"{epsilon:e}".partition("e")
    ten = f"10^{{{int(power)}}}"
    return ten if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot {ten}"
