"""The LaTeX of what a pass costs, with the numbers of the chosen sizes. Pure."""

from model.config import TransformerConfig

ATTENTION_SHAPES = (
    r"\underbrace{B \times h \times n \times d_k}_{Q,\,K,\,V} \;\to\;"
    r" \underbrace{B \times h \times n \times n}_{\text{scores, weights}} \;\to\;"
    r" \underbrace{B \times h \times n \times d_k}_{\text{context}}"
)
PARAMETERS = r"\underbrace{V d}_{\text{tokens}} + L\,\bigl(\underbrace{4 d^2}_{\text{attention}} + \underbrace{2\, d\, d_{\text{ff}}}_{\text{feed-forward}}\bigr) + \ldots"  # noqa: E501
MEMORY = r"\underbrace{3\, L\, B\, h\, n^2}_{\text{scores, scaled, weights}} \qquad \underbrace{2\, L\, B\, n\, d}_{\text{key–value cache}}"  # noqa: E501
GROWTH = r"\text{cost}(n) = \underbrace{a\, n^2}_{\text{pairs}} + \underbrace{b\, n}_{\text{all else}}, \qquad n^* = \frac{b}{a}"  # noqa: E501
OPERATIONS = r"\underbrace{8\, n\, d^2}_{\text{projections}} + \underbrace{4\, n^2 d}_{QK^\top,\ AV} + \underbrace{4\, n\, d\, d_{\text{ff}}}_{\text{feed-forward}}"  # noqa: E501


def head_width(config: TransformerConfig) -> str:
    """d_k of these sizes."""
    return (
        rf"d_k = \frac{{d}}{{h}} = \frac{{{config.width}}}{{{config.heads}}} = {config.head_width}"
    )
