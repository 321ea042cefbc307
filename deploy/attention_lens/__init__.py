"""See, number by number, what a transformer does with a text.

```python
from attention_lens import load_model

trace = load_model("house-gpt").trace("The cat sat on the mat")
trace.find("decoder.0.self").weights(head=1)  # (query, key), rows sum to 1
```

Each name is imported when it is first used: what needs PyTorch waits until then.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model import (
        Attention,
        Intervention,
        Model,
        TextTooLongError,
        Token,
        Trace,
        exchange,
        load_model,
        load_trace,
        models,
    )
    from model.analysis import first_difference
    from model.capture import capture
    from model.loading.in_memory import trace
    from model.loading.record import record
    from model.many import measure, trace_all
    from model.training.training_file import load_training
    from model.training.training_record import TrainingRecord
    from viz import figures
    from viz.notebook import compare, show

MODULES = ("exchange", "figures")  # names that are modules themselves
# The public names, and the module of each.
NAMES = {
    "Attention": ".model",
    "Intervention": ".model",
    "Model": ".model",
    "TextTooLongError": ".model",
    "Token": ".model",
    "Trace": ".model",
    "load_model": ".model",
    "load_trace": ".model",
    "models": ".model",
    "record": ".model.loading.record",
    "trace": ".model.loading.in_memory",
    "first_difference": ".model.analysis",
    "exchange": ".model",
    "capture": ".model.capture",
    "measure": ".model.many",
    "trace_all": ".model.many",
    "TrainingRecord": ".model.training.training_record",
    "load_training": ".model.training.training_file",
    "compare": ".viz.notebook",
    "figures": ".viz",
    "show": ".viz.notebook",
}

# Those that need a package of an extra.
NEEDS = {"trace": "transformers", "compare": "anywidget", "show": "anywidget"}

__all__ = [
    "Attention",
    "Intervention",
    "Model",
    "TextTooLongError",
    "Token",
    "Trace",
    "TrainingRecord",
    "capture",
    "compare",
    "exchange",
    "figures",
    "first_difference",
    "load_model",
    "load_trace",
    "load_training",
    "measure",
    "models",
    "record",
    "show",
    "trace",
    "trace_all",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("attention-lens")
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in MODULES:
        return import_module(f"{NAMES[name]}.{name}", __name__)
    from model.system.extras import needed_by

    with needed_by(name):
        return getattr(import_module(NAMES[name], __name__), name)


def __dir__() -> list[str]:
    """Without the names whose extra is not installed: `help` reads each of the others."""
    return [name for name in __all__ if find_spec(NEEDS.get(name, __name__))] + ["__version__"]
