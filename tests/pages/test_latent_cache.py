"""DeepSeek's latent attention and experts: what is cached, what is rebuilt, what a pass costs."""

import pytest
import torch

from model.analysis.tokens.live_writing import KeptInLayer
from model.nn.recorder import Recorder, recording
from tests.model.hub_models import TEXT, loaded, saved
from tests.pages.reading import said, visit

pytestmark = pytest.mark.slow


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
    app = visit("writing", model=str(saved("deepseek_v3")), text=TEXT, show="KV cache")
    words = said(app)
    assert all(part in words for part in (" 16 numbers", "key of 8,", "(6 × 16 ", "(6 × 12)"))
    assert any(r"3 \cdot (16 + 8) \cdot" in formula.value for formula in app.latex)


def test_the_page_of_costs_counts_experts_and_latent_vectors() -> None:
    name = str(saved("deepseek_v3"))
    app = visit("shapes_and_cost", model=name, text=TEXT, **{"cost-measure": "parameters"})
    words, model = said(app), loaded("deepseek_v3")
    assert all(part in words for part in ("E = 8 ", " k = 2 ", " r = 16 ", " d_R = 8 "))
    counted = model.parameter_count
    unread = 2 * (8 - 2) * 3 * 48 * 40  # two layers, six experts, three matrices
    values = [one.value for one in app.metric]
    assert values[:2] == [
        f"{counted:,}",
        f"{counted - unread:,}",
    ]  # all, and those that a token meets
    assert "recorded shapes" in words
    for measure in ("memory", "operations"):
        assert not visit(
            "shapes_and_cost", model=name, text=TEXT, **{"cost-measure": measure}
        ).exception
