"""DeepSeek's latent attention and experts: what is cached, what is rebuilt, what a pass costs."""

import torch

from model.analysis.tokens.live_writing import KeptInLayer
from model.nn.recorder import Recorder, recording
from tests.model.hub_models import TEXT, loaded, saved
from tests.pages.reading import said, visit


def test_the_cache_holds_latent_vectors_and_keys_and_values_are_rebuilt() -> None:
    model = loaded("deepseek_v3")
    tokens, cache = model.tokens(TEXT), model.module.new_cache()
    with recording(Recorder(cache=cache)), torch.inference_mode():
        model.module(model.ids(tokens))
    config = model.module.body.config
    for kept in cache.kept.values():
        sizes = [tensor.shape for tensor in (kept.key, kept.value)]
        widths = [config.kv_lora_rank, config.qk_rope_head_dim]
        assert sizes == [(1, 1, len(tokens), width) for width in widths]
    attention = model.trace(TEXT).attention[0]
    used = tuple((len(each), each.shape[-1]) for each in attention.vectors[1:])
    assert used == ((6, 16), (6, 12))
    assert KeptInLayer(1, 1, ((1, 16), (1, 8))).rebuilds(attention)
    assert not KeptInLayer(1, 1, used).rebuilds(attention)


def test_the_page_counts_the_latent_vectors_in_bytes() -> None:
    app = visit("prediction", model=str(saved("deepseek_v3")), text=TEXT, show="KV cache")
    words = said(app)
    assert "one **latent vector** of 16 numbers and one rotated key of 8" in words
    assert "rebuilds the keys (6 × 16 numbers a token) and values (6 × 12)" in words
    assert any(r"3 \cdot (16 + 8) \cdot" in formula.value for formula in app.latex)


def test_the_page_of_costs_counts_experts_and_latent_vectors() -> None:
    name = str(saved("deepseek_v3"))
    app = visit("shapes_and_cost", model=name, text=TEXT, show="Parameters")
    words, model = said(app), loaded("deepseek_v3")
    assert "E = 8 experts, of which k = 2 read each token" in words
    assert "a latent vector of r = 16 numbers, and of a key of d_R = 8" in words
    counted = model.parameter_count
    values = {one.label: one.value for one in app.metric}
    assert values["All parameters"] == f"{counted:,}"
    unread = 2 * (8 - 2) * 3 * 48 * 40  # two layers, six experts, three matrices
    assert values["Of these, a token meets"] == f"{counted - unread:,}"
    shapes = said(visit("shapes_and_cost", model=name, text=TEXT, show="Shapes"))
    assert "shapes recorded in this run" in shapes
    for view in ("Memory", "Operations", "Growth"):
        assert not visit("shapes_and_cost", model=name, text=TEXT, show=view).exception
