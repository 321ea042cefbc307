"""Many prompts at once: their traces one after another, and their numbers in one table.

```python
from model.many import Prompt, measure

prompts = [
    Prompt("When Mary and John went home, John gave a key to", "two names", {"other": "Mary"}),
    Prompt("When Tom and Anna went home, Anna gave a key to", "two names", {"other": "Tom"}),
]
frame = measure(model, prompts, weights=[("last", "other")])
frame.groupby(["condition", "layer", "head"])["weight"].agg(["mean", "std", "count"])
```
"""

from model.many.measuring import measure
from model.many.metrics import AnswerMetric, Metric, accuracy, logit_difference, loss
from model.many.prompts import Prompt
from model.many.replacing import patch_all
from model.many.traces import trace_all

__all__ = [
    "AnswerMetric",
    "Metric",
    "Prompt",
    "accuracy",
    "logit_difference",
    "loss",
    "measure",
    "patch_all",
    "trace_all",
]
