"""The switches of modern attention: a stage switched off is a model built without it, bit for bit; switched
on again it is the model's own run; and each changes what the model says."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from model import Intervention, Model, Trace
from model.nn.transformer import Transformer
from tests.cases import cases
from tests.model.tiny import loaded, run

SWITCHES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("all-stages", {"cap": False}, {"cap": 0.0}),
    ("all-stages", {"bias": False}, {"positions": "none"}),
    ("all-stages", {"sinks": False}, {"sinks": False}),
    ("all-stages", {"window": 3}, {"window": 3, "full_every": 0}),
    ("distance-buckets", {"bias": False}, {"positions": "none"}),
    ("gpt", {"window": 3}, {"window": 3}),
    ("bert", {"window": 3}, {"window": 3}),
)
IDS = [f"{name}, {next(iter(off))}" for name, off, _ in SWITCHES]


def built(model: Model, changed: dict[str, Any]) -> Model:
    """The same weights in a model of another config."""
    module = Transformer(replace(model.config, **changed))
    module.load_state_dict(model.module.state_dict(), strict=False)
    return Model(model.name, module.eval(), model.tokenizer, model.device)


def same(one: Trace, other: Trace) -> bool:
    """Whether two runs ended in the same vectors, to the last bit."""
    pairs = zip(one.residual.values(), other.residual.values(), strict=True)
    return all(np.array_equal(ours[-1], theirs[-1]) for ours, theirs in pairs)


@cases("name, off, config", SWITCHES)
def test_a_switch_gives_the_model_that_was_built_so(name, off, config) -> None:
    torch.manual_seed(0)
    model = loaded(name)
    own, changed = run(model), run(model, Intervention(**off))
    assert same(changed, run(built(model, config)))
    assert not np.allclose(
        own.residual[own.source][-1], changed.residual[own.source][-1], atol=1e-3
    )
    assert changed.check() < 1e-4
    assert same(own, run(model))
