"""A model whose weights are in few bits, on a page: its numbers are named as what they are."""

import shutil
from pathlib import Path

from tests.model.hub.test_quantized import eight
from tests.model.hub_models import TEXT, saved
from tests.pages.reading import said, visit


def test_every_page_of_a_quantized_model_says_that_its_weights_are_dequantized(
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(saved("llama"), tmp_path / "copy")
    eight(folder)
    for page in ("attention", "all_heads"):
        words = said(visit(page, model=str(folder), text=TEXT))
        assert "Weights dequantized from 8 bits." in words
    assert "dequantized" not in said(visit("attention", model=str(saved("llama")), text=TEXT))
