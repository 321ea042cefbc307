"""A tokenizer in a process of its own, `model.system.bounded_process`. It imports nothing of the project."""

from collections.abc import Callable
from typing import Any

from tokenizers import PreTokenizedString, Tokenizer

TOKENS_OF_A_LETTER, TOKENS_OF_NONE = 64, 4_096  # of a real tokenizer: 4 or fewer, and a few


def load(described: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What answers questions about the texts of a tokenizer."""
    tokenizer = Tokenizer.from_str(described["tokenizer"])
    tokenizer.encode_special_tokens = described["split"]

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if "words" in asked:
            return {"words": _words(tokenizer, asked["words"])}
        if "text" not in asked:
            return {"text": tokenizer.decode(asked["ids"], skip_special_tokens=asked["skip"])}
        text = asked["text"]
        encoding = tokenizer.encode(text, asked["pair"], add_special_tokens=asked["add"])
        if len(encoding) > TOKENS_OF_A_LETTER * len(text) + TOKENS_OF_NONE:
            raise ValueError(f"it makes {len(encoding):,} tokens of {len(text):,} letters")
        return {
            "ids": encoding.ids,
            "type_ids": encoding.type_ids,
            "attention_mask": encoding.attention_mask,
            "special_tokens_mask": encoding.special_tokens_mask,
            "offsets": encoding.offsets,
        }

    return answer


def _words(tokenizer: Tokenizer, text: str) -> list[tuple[str, tuple[int, int]]]:
    """What is cut on its own: the words of a text in the letters of the vocabulary, and their places in the
    text as it was typed."""
    words = PreTokenizedString(text)
    if tokenizer.normalizer is not None:
        words.normalize(tokenizer.normalizer.normalize)
    if tokenizer.pre_tokenizer is not None:
        tokenizer.pre_tokenizer.pre_tokenize(words)
    return [(word, place) for word, place, _ in words.get_splits("original", "char")]
