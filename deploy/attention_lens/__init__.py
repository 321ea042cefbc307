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
    from model.analysis import (
        edge_values,
        first_difference,
        largest_numbers,
        patch_map,
        precision_by_layer,
        scan,
        score_parts,
    )
    from model.capture import capture
    from model.code import listing, script
    from model.loading.in_memory import opened, trace
    from model.loading.record import record
    from model.many import (
        Prompt,
        accuracy,
        logit_difference,
        loss,
        measure,
        patch_all,
        trace_all,
    )
    from model.nn.steering import Steering
    from model.papers import results
    from model.profile import open_profile, profile
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
    "opened": ".model.loading.in_memory",
    "trace": ".model.loading.in_memory",
    "edge_values": ".model.analysis",
    "first_difference": ".model.analysis",
    "largest_numbers": ".model.analysis",
    "patch_map": ".model.analysis",
    "precision_by_layer": ".model.analysis",
    "scan": ".model.analysis",
    "score_parts": ".model.analysis",
    "Steering": ".model.nn.steering",
    "listing": ".model.code",
    "script": ".model.code",
    "results": ".model.papers",
    "open_profile": ".model.profile",
    "profile": ".model.profile",
    "exchange": ".model",
    "capture": ".model.capture",
    "Prompt": ".model.many",
    "accuracy": ".model.many",
    "logit_difference": ".model.many",
    "loss": ".model.many",
    "measure": ".model.many",
    "patch_all": ".model.many",
    "trace_all": ".model.many",
    "TrainingRecord": ".model.training.training_record",
    "load_training": ".model.training.training_file",
    "compare": ".viz.notebook",
    "figures": ".viz",
    "show": ".viz.notebook",
}

# Those that need a package of an extra.
NEEDS = {
    "opened": "transformers",
    "trace": "transformers",
    "compare": "anywidget",
    "show": "anywidget",
    "open_profile": "pyarrow",
    "profile": "pyarrow",
}

__all__ = [
    "Attention",
    "Intervention",
    "Model",
    "Prompt",
    "Steering",
    "TextTooLongError",
    "Token",
    "Trace",
    "TrainingRecord",
    "accuracy",
    "capture",
    "compare",
    "edge_values",
    "exchange",
    "figures",
    "first_difference",
    "largest_numbers",
    "listing",
    "load_model",
    "load_trace",
    "load_training",
    "logit_difference",
    "loss",
    "measure",
    "models",
    "open_profile",
    "opened",
    "patch_all",
    "patch_map",
    "precision_by_layer",
    "profile",
    "record",
    "results",
    "scan",
    "score_parts",
    "script",
    "show",
    "trace",
    "trace_all",
]
for _name, _package in NEEDS.items():
    if find_spec(_package) is None:  # `import *` takes all names, and works without extras
        __all__.remove(_name)


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
    return [*__all__, "__version__"]
