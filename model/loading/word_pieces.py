"""A tokenizer that cuts words into pieces, for comparison: that of a registered model, where it is here."""

from functools import lru_cache
from pathlib import Path

from model.download.wheel import cache_folder
from model.loading.registry import models
from model.run.tokenizers import WordPieces
from model.system.files import file_hash

WORD_PIECES = "minilm"  # the model of the registry that cuts words into pieces


def word_pieces() -> WordPieces | None:
    """MiniLM's tokenizer where its files are on disk; None where they are not, or are damaged."""
    wheel = models[WORD_PIECES].wheel
    path = cache_folder(WORD_PIECES) / "tokenizer.json"
    if wheel is None or not path.is_file():
        return None
    return _opened(path, path.stat().st_mtime_ns, wheel.files["tokenizer.json"].sha256)


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int, sha256: str) -> WordPieces | None:
    """The tokenizer of a file; read again when the file was changed."""
    return WordPieces(path) if file_hash(path) == sha256 else None
