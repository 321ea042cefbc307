"""The words of the micro-stories that `stories` and `house-gpt` learned from, by kind."""

import tomllib
from pathlib import Path

_WRITTEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
WORDS = {kind: tuple(words.split()) for kind, words in _WRITTEN.items()}
