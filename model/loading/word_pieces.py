"""MiniLM's tokenizer, which cuts words into pieces, for comparison."""

from functools import lru_cache
from pathlib import Path

from model.download.wheel import cache_folder
from model.loading.registry import models
from model.run.tokenizers import WordPieces
from model.system.files import file_hash

WORD_PIECES = "minilm"


def word_pieces() -> WordPieces | None:
    """The tokenizer; None where its file is missing or damaged."""
    wheel = models[WORD_PIECES].wheel
    path = cache_folder(WORD_PIECES) / "tokenizer.json"
    if wheel is None or not path.is_file():
        return None
    return _opened(path, path.stat().st_mtime_ns, wheel.files["tokenizer.json"].sha256)


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int, sha256: str) -> WordPieces | None:
    """`changed` is in the key of the cache: a changed file is read again."""
    return WordPieces(path) if file_hash(path) == sha256 else None
