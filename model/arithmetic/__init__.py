"""The arithmetic of the worked examples: pure functions on float64 arrays, each written once."""

import numpy as np
from numpy.typing import NDArray

Array64 = NDArray[np.float64]
