"""What pages ask of a model or a trace that may lie on the cluster: every function that is marked as asked,
and arguments that fit a model, by the names of its parameters. A name that is missing here fails a test."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import model as ours
from model import Intervention, Model, Trace
from model.analysis.attribution.head_matrices import head_matrices
from model.analysis.heads.statistics import families
from model.analysis.stream.feed_forward import dropped, part_named
from model.analysis.stream.stream import contributions
from model.analysis.tokens.live_writing import Choice
from model.analysis.tokens.prediction import Sampling
from model.nn.key_value_cache import Eviction
from model.profile.tables import ProfileScope
from model.run.weights_hash import weights_hash
from model.system.remote import asked_function
from model.trace.records import FeedForwardRecord


@dataclass(frozen=True)
class Asked:
    """A model, here or elsewhere, and what is asked of it: an attribute for each parameter."""

    model: Model
    text: str
    other: str  # a text of as many tokens

    head, query, key, position, token, seed, rate = 1, 2, 1, 1, 2, 1, 0.5
    answer, watched, reads, side, what, kind = (
        (1, 2),
        (2, 3),
        ("query", "key"),
        "key",
        "head",
        "head",
    )
    steps, window, turn = 3, 2, nullcontext
    choice = Choice(Sampling(), seed=None)

    @cached_property
    def trace(self) -> Trace:
        return self.model.trace(self.text, record="full")

    @cached_property
    def trace_b(self) -> Trace:
        """The other text, read towards the first one's target."""
        return self.model.trace(self.other, self._target, record="full")

    @cached_property
    def after(self) -> Trace:
        """The same text, with a head cut off."""
        changes = Intervention(ablated=frozenset({(self.name, 0)}))
        return self.model.trace(self.text, self._target, changes)

    @property
    def _target(self) -> str | None:
        shown = [one for one in self.trace.target_tokens if not one.special]
        return " ".join(one.text for one in shown) if shown else None

    @property
    def feed_forward(self) -> FeedForwardRecord:
        if not self.trace.feed_forward:
            raise ValueError("This model has no feed-forward layers.")
        return self.trace.feed_forward[0]

    @property
    def about(self) -> ProfileScope:
        return ProfileScope(
            self.model.name, weights_hash(self.model), "0" * 64, "corpus", False, 64
        )

    @property
    def given(self) -> Any:
        return contributions(self.model, self.trace, self.trace.source)

    def __getattr__(self, parameter: str) -> Any:
        return FOUND[parameter](self)


FOUND: dict[str, Callable[[Asked], Any]] = {
    "self": lambda of: of.model,
    "trace_a": lambda of: of.trace,
    "before": lambda of: of.trace,
    "attention": lambda of: of.trace.attention[-1],
    "layers": lambda of: of.trace.attention[-1:],
    "name": lambda of: of.attention.name,
    "receiver": lambda of: (of.name, 1),
    "family": lambda of: families(of.trace)[-1],
    "matrices": lambda of: head_matrices(of.model, of.trace, of.name, 1),
    "recorded": lambda of: of.trace.embeddings,
    "tokens": lambda of: (of.trace.target_tokens or of.trace.tokens)[:4],
    "texts": lambda of: (of.text, of.other),
    "part": lambda of: part_named(of.model, of.trace, of.name),
    "hidden": lambda of: of.feed_forward.hidden,
    "found": lambda of: dropped(of.hidden, 0.5, 1),
    "norm": lambda of: of.trace.norms[-1].name,
    "stream": lambda of: of.trace.residual[of.trace.stacks[-1]][-1],
    "stack": lambda of: of.trace.source,
    "written": lambda of: [token.id for token in of.tokens[2:]],
}
STEERING: dict[str, Callable[[Asked], Any]] = {
    "toward": lambda of: np.linspace(-1, 1, of.model.config.d_model, dtype=np.float32),
    "place": lambda of: of.trace.attention[0].name,
    "multiples": lambda of: (0.0, 2.0),
    "multiple": lambda of: 2.0,
}
# Arguments of one function, where another has something else by that name, and those with a default.
OWN: dict[str, dict[str, Callable[[Asked], Any]]] = {
    "continuation": {**STEERING, "tokens": lambda of: 2},
    "steered": STEERING,
    "Model.generate": {"limit": lambda of: 3},
    "log_probabilities_of": {"eviction": lambda of: Eviction(2, 1)},
    "merged": {"tokens": lambda of: slice(1, 3)},
    "of_neurons": {"part": lambda of: part_named(of.model, of.trace, of.feed_forward.name)},
    "padded_batch": {"first": lambda of: of.text, "second": lambda of: of.other},
    "path_map": {"reads": lambda of: of.reads},
    "projected": {"token": lambda of: 1},
    "relevances": {"steps": lambda of: 4},
    "shorter_caches": {"first": lambda of: 1},
    "spots_of": {"what": lambda of: "feed_forward"},
    "table_factor": {"tokens": lambda of: of.trace.tokens},
}


def arguments(name: str, of: Asked) -> dict[str, Any]:
    """The arguments of an asked function."""
    own = OWN.get(name.partition(":")[2], {})
    return {
        parameter: own[parameter](of) if parameter in own else getattr(of, parameter)
        for parameter, about in inspect.signature(asked_function(name)).parameters.items()
        if parameter in own or about.default is inspect.Parameter.empty or parameter == "turn"
    }


def asked_names() -> Iterator[str]:
    """The names under which functions and methods may be asked."""
    for found in pkgutil.walk_packages(ours.__path__, "model."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        classes = [one for one in vars(module).values() if isinstance(one, type)]
        for place in (module, *(one for one in classes if one.__module__ == module.__name__)):
            for value in vars(place).values():
                function = value.fget if isinstance(value, property) else value
                if getattr(function, "is_asked", False) and function.__module__ == found.name:
                    yield f"{found.name}:{function.__qualname__}"
