"""The LaTeX of embeddings and windows. Pure. Token text never enters LaTeX."""

LOOK_UP = r"h_{\mathrm{id}}\, E = E_{\mathrm{id}}"
ONE_HOT = r"h_{\mathrm{id}} = (0, \ldots, 0, \underset{\mathrm{id}}{1}, 0, \ldots, 0)"
COSINE = r"\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert \, \lVert v \rVert}"
INPUTS = (
    r"\begin{aligned} x_k &= (t_{sk}, \ldots, t_{sk+n-1}) \\"
    r" y_k &= (t_{sk+1}, \ldots, t_{sk+n}) \end{aligned}"
)


def look_up_of(id_: int, vocabulary: int, width: int) -> str:
    """The look-up of one id, with the shapes."""
    return (
        rf"\underset{{1 \times {vocabulary}}}{{h_{{{id_}}}}}\;"
        rf"\underset{{{vocabulary} \times {width}}}{{E}} ="
        rf" \underset{{1 \times {width}}}{{E_{{{id_}}}}}"
    )


def number_of_windows(tokens: int, length: int, stride: int, found: int) -> str:
    """How many windows fit, in general and with the numbers of one text."""
    return (
        r"\begin{aligned} \#\text{windows} &= \left\lceil \frac{N - n}{s} \right\rceil \\ &="
        rf" \left\lceil \frac{{{tokens} - {length}}}{{{stride}}} \right\rceil = {found}"
        r" \end{aligned}"
    )
