"""See, number by number, what a transformer does with a text.

```python
from attention_lens import load_model

trace = load_model("house-gpt").trace("The cat sat on the mat")
trace.find("decoder.0.self").weights(head=1)  # (query, key), rows sum to 1
```

Each name is imported when it is first used: what needs PyTorch waits until then.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model import (
        Attention,
        Intervention,
        Model,
        TextTooLongError,
        Token,
        Trace,
        load_model,
        load_trace,
        models,
    )
    from model.capture import capture
    from model.loading.in_memory import trace
    from model.loading.record import record
    from model.training.training_file import load_training
    from model.training.training_record import TrainingRecord
    from viz import figures
    from viz.notebook import compare, show

# Packages that come with an extra.
EXTRAS = {"transformers": "hub", "anywidget": "notebook"}
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
    "capture": ".model.capture",
    "TrainingRecord": ".model.training.training_record",
    "load_training": ".model.training.training_file",
    "compare": ".viz.notebook",
    "figures": ".viz",
    "show": ".viz.notebook",
}

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
    "figures",
    "load_model",
    "load_trace",
    "load_training",
    "models",
    "record",
    "show",
    "trace",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("attention-lens")
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "figures":
        return import_module(".viz.figures", __name__)
    try:
        return getattr(import_module(NAMES[name], __name__), name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing not in EXTRAS:
            raise
        raise ImportError(
            f"{name} needs the package {missing}, which is not installed: it comes with the extra "
            f"“{EXTRAS[missing]}”",
            name=missing,
        ) from error


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
