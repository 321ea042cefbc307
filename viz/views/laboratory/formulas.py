"""The LaTeX beside the laboratory's pictures. Token text never enters it. Pure."""

DIVERGENCE = r"D_{\mathrm{KL}}(p \,\|\, q) = \sum_v p_v \ln \frac{p_v}{q_v}"
LOSS = r"\text{loss}_t = -\ln p(\text{token}_{t+1} \mid \text{tokens} \le t)"
ENTROPY = r"H_i = -\sum_j w_{ij} \ln w_{ij} \qquad \text{from } 0 \text{ to } \ln n"
LARGEST = r"\max_j\, w_{ij}"
MOVED = (
    r"\text{moved}_t = \frac{\lVert x_t^{\text{changed}} - x_t^{\text{unchanged}} \rVert}"
    r"{\lVert x_t^{\text{unchanged}} \rVert}"
)
VARIANCE = (
    r"\begin{aligned} \mathrm{Var}(q \cdot k) &= \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = d_k \\"
    r" \mathrm{Var}\!\left(\tfrac{q \cdot k}{\sqrt{d_k}}\right) &= 1 \end{aligned}"
)
SLOPE = (
    r"\frac{\partial p_i}{\partial s_i} = p_i (1 - p_i) \le \tfrac14 \qquad"
    r"\frac{\partial p_i}{\partial s_j} = -p_i\, p_j"
)
ROUTES = (
    r"\text{softmax}(s + M)_{ij} = \frac{m_{ij}\, \text{softmax}(s)_{ij}}"
    r"{\sum_l m_{il}\, \text{softmax}(s)_{il}}"
)
FILL = (
    r"w_{ij} = \frac{e^{\,\text{fill}}}{\sum_l e^{\,\text{masked}_{il}}}"
    r"\qquad e^{-\infty} = 0, \quad e^{0} = 1"
)
MASKED_ATTENTION = (
    r"\begin{aligned} \text{Attention}(Q, K, V) &= \text{softmax}\!\left(s\, QK^\top + M\right) V \\"
    r" s &= \tfrac{1}{\sqrt{d_k}} \end{aligned}"
)
