"""DeepSeek's latent attention: what is cached, and what is rebuilt."""

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
    assert "one **latent vector** of 16 numbers and one turned key of 8" in words
    assert "rebuilds the keys (6 × 16 numbers a token) and values (6 × 12)" in words
    assert any(r"3 \cdot (16 + 8) \cdot" in formula.value for formula in app.latex)
