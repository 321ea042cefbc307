"""A run of a page tokenizes each text once."""

from collections import Counter

import pytest
import tiktoken

from model.run.tokenizers import gpt2_ids
from tests.pages.reading import visit
from viz.state.navigation import PAGES

TEXT = "A sentence that is read by nobody else"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often GPT-2's tokenizer cuts which text."""
    found: Counter[str] = Counter()
    cut = tiktoken.Encoding.encode

    def counting(self: tiktoken.Encoding, text: str, **how: object) -> list[int]:
        found[text] += 1
        return cut(self, text, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(tiktoken.Encoding, "encode", counting)
    gpt2_ids.cache_clear()
    return found


@pytest.mark.parametrize("file", [page.file for page in PAGES])
def test_no_page_tokenizes_a_text_twice(file: str, read: Counter[str]) -> None:
    visit(file, text=TEXT)
    assert set(read.values()) <= {1}


@pytest.mark.parametrize("mask", ["model", "none"])
def test_the_pass_reads_the_tokens_that_the_page_has_read(mask: str, read: Counter[str]) -> None:
    visit("attention", text=f"{TEXT}, under the mask {mask}", mask=mask)
    assert read == {f"{TEXT}, under the mask {mask}": 1}
