r"""LaTeX of what training is. Pure."""

LOSS = r"""L = -\frac{1}{n} \sum_{t=1}^{n} \ln p\left(x_{t+1} \mid x_1 \dots x_t\right)"""
STEP = r"""\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}"""
MOVED = r"""\frac{\lVert \theta_{\text{now}} - \theta_{\text{then}} \rVert}
{\lVert \theta_{\text{step } 0} \rVert}"""
STRIPE = r"""\frac{1}{|R|} \sum_{i \in R}\ \sum_{j < i,\ x_{j-1} = x_i} w_{ij}"""
BEFORE = r"""\frac{1}{n-1} \sum_{i=1}^{n-1} w_{i,\,i-1}"""
SHARPEST = r"""\frac{1}{n} \sum_{i} \max_j w_{ij}"""
