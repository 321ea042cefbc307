"""The LaTeX of what heads do together: concatenation, logits, averages, rollout, ablation."""

from model.nn.config import TransformerConfig

_CONCATENATION = (
    r"\begin{aligned} \mathrm{MultiHead}(x) &= [o_0; o_1; \dots; o_{h-1}]\, W_O + b_O \\"
    r" &= \sum_h o_h\, W_O^{(h)} + b_O \end{aligned}"
)
SCORE_PARTS = (
    r"\begin{aligned} x_i &= \textstyle\sum_a x_i^{(a)} \\"
    r" \text{score}_{ij} &= q_i \cdot k_j = \textstyle\sum_a \sum_b q_i^{(a)} \cdot k_j^{(b)} \end{aligned}"
)
EDGE = r"o_i\, W_O^{(h)} = \textstyle\sum_j \text{weight}_{ij}\; v_j\, W_O^{(h)}"
EDGE_BEFORE = r"o_i = \textstyle\sum_j \text{weight}_{ij}\; v_j"
_SUM_AND_LENGTH = (
    r"\textstyle\sum_j \text{weight}_{ij} = 1 \qquad"
    r" \text{length}_{ij} = \| \text{weight}_{ij}\; v_j\, W_O^{(h)} \|"
)
MEAN = r"\bar W = \frac{1}{h} \sum_{i=0}^{h-1} W_i"
ROLLOUT = (
    r"\begin{aligned} A_l &= \tfrac12 \bar W_l + \tfrac12 I \\"
    r" R_l &= A_l\, R_{l-1}, \quad R_{-1} = I \end{aligned}"
)
PAIR = r"w_{qk} = \mathrm{softmax}(\text{row } q)_k"
ABLATION = r"o_h \leftarrow 0 \;:\quad \Delta_h = m(\text{without } h) - m(\text{unchanged})"


def concatenation(config: TransformerConfig) -> str:
    """The heads' outputs side by side, times W_O, plus its bias if there is one."""
    return _CONCATENATION if config.output_bias else _CONCATENATION.replace(" + b_O", "")


def logit(config: TransformerConfig) -> str:
    """One logit as a sum over the parts of the residual stream, through this model's norm."""
    law, shift = config.norm_law, r" \;+\; \beta \cdot u_t" if config.shifts else ""
    above, below = law.centred("p_i", r"\bar p_i"), rf"\sqrt{{{law.size_of()} + \varepsilon}}"
    return (
        r"\begin{aligned} x &= \textstyle\sum_i p_i \\"
        rf" \text{{logit}}_t &= \sum_i \frac{{{above}}}{{{below}}} \odot \gamma \cdot u_t{shift}"
        r" \end{aligned}"
    )


def weights_and_lengths(*, sinks: bool) -> str:
    """What a row of weights sums to, and the length of what an edge writes. sinks: whether heads have one."""
    return _SUM_AND_LENGTH.replace("= 1", r"+ \text{sink}_i = 1") if sinks else _SUM_AND_LENGTH
