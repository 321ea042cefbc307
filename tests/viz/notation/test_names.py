"""Plain names: every norm of every shape has its own, and says on which side it stands."""

import re
from dataclasses import replace

from model import Model, Trace
from model.nn.places import head_label
from tests.cases import cases
from tests.model import hub_models
from tests.model.tiny import SHAPES, loaded, sentence, target
from tests.viz.explorer.records import labels
from viz.explorer.heads import all_heads
from viz.explorer.layer import layer_arrays
from viz.notation.names import SUBLAYERS, kinds_of_layers, norm_name, part_name, sublayer_name
from viz.notation.readout import readout
from viz.state.intervention_words import patched_part_name


def traced(name: str) -> tuple[Model, Trace]:
    model = loaded(name)
    return model, model.trace(sentence(model), target(model))


def test_every_norm_and_sublayer_of_every_model_has_a_name_of_its_own() -> None:
    for shape in SHAPES:
        model, trace = traced(shape)
        stacks = len(trace.residual)
        names = [norm_name(norm.name, model.config, stacks=stacks) for norm in trace.norms]
        assert len(set(names)) == len(names), shape
        sublayers = [sublayer_name(name, stacks=stacks) for name in model.attention_names]
        assert len(set(sublayers)) == len(sublayers), shape


def test_a_name_says_where_the_norm_stands() -> None:
    pre = loaded("gpt").config
    post = replace(pre, norm_place="post")
    assert norm_name("decoder.0.self.norm", pre) == f"Layer 0, before {SUBLAYERS['self']}"
    after = f"Layer 5, after {SUBLAYERS['feed_forward']}"
    assert norm_name("encoder.5.feed_forward.norm", post) == after
    assert norm_name("encoder.embedding.norm", post) == "After the embeddings"
    assert norm_name("decoder.final.norm", pre, stacks=2).startswith("Decoder: after")
    assert sublayer_name("decoder.1.cross", stacks=2) == f"Decoder: layer 1, {SUBLAYERS['cross']}"


@cases("shape", ["translate-en-fr", "house-gpt"])
def test_a_head_has_one_name_in_every_place_and_no_other_has_it(shape) -> None:
    _, trace = traced(shape)
    layers = [layer for family in all_heads(trace) for layer in family["layers"]]
    offered = {layer["name"]: layer["full"] for layer in layers}
    names = []
    for attention in trace.attention:
        name = head_label((attention.name, 0))
        texts = [labels(len(vectors[0])) for vectors in attention.vectors[:2]]
        line = readout(attention, 0, 0, 0, queries=texts[0], keys=texts[1])
        assert line.startswith(f"{name}: ")
        assert f"{layer_arrays(attention, range(1), False)['label']}H0" == name
        assert f"{offered[attention.name]}H0" == name
        assert part_name(f"{attention.name}.0") == name
        assert patched_part_name(("head", attention.name, 0)) == name
        names.append(name)
    assert len(set(names)) == len(names)


def test_layers_that_look_differently_far_are_told_apart() -> None:
    kinds = {
        family: kinds_of_layers(hub_models.traced(hub_models.loaded(family)))
        for family in ("gemma3", "mistral", "llama")
    }
    said = re.findall(r"L\d|\d+ keys|all", kinds.pop("gemma3"))
    assert said == ["L0", "L1", "4 keys", "L2", "all"]
    assert kinds == {"mistral": "", "llama": ""}
