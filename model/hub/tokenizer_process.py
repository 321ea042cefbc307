"""A tokenizer in a process of its own, which can be ended. It imports nothing of this project.

The first line of its input is the tokenizer. Each later line is a question, answered by one line. A
question that takes too long or too much memory ends the process.
"""

import json
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from tokenizers import PreTokenizedString, Tokenizer

IDLE = 60  # seconds without a question after which it ends itself
LOADING = 60  # seconds that a tokenizer may take to be made
TO_LOAD, TO_ANSWER = 4 * 2**30, 2**30  # bytes of memory
TOKENS_OF_A_LETTER, TOKENS_OF_NONE = 64, 4_096  # of a real tokenizer: 4 or fewer, and a few


def main() -> None:
    """Answers until there are no more questions."""
    signal.alarm(LOADING)  # it is not caught, so it ends the process
    _bound(TO_LOAD)
    described = json.loads(sys.stdin.buffer.readline())
    tokenizer = Tokenizer.from_str(described["tokenizer"])
    tokenizer.encode_special_tokens = described["split"]
    _bound(_taken() + TO_ANSWER)
    signal.alarm(0)
    print("ready", flush=True)  # the first question comes now: none waits unseen in a buffer
    while select.select([sys.stdin.buffer], [], [], IDLE)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            break
        asked = json.loads(line)
        signal.alarm(asked["seconds"])
        sys.stdout.write(json.dumps(_answer(tokenizer, asked)) + "\n")
        sys.stdout.flush()
        signal.alarm(0)


def _answer(tokenizer: Tokenizer, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if "words" in asked:
            return {"words": _words(tokenizer, asked["words"])}
        if "text" not in asked:
            return {"text": tokenizer.decode(asked["ids"], skip_special_tokens=asked["skip"])}
        text = asked["text"]
        encoding = tokenizer.encode(text, asked["pair"], add_special_tokens=asked["add"])
        if len(encoding) > TOKENS_OF_A_LETTER * len(text) + TOKENS_OF_NONE:
            return {"error": f"it makes {len(encoding):,} tokens of {len(text):,} letters"}
        return {
            "ids": encoding.ids,
            "type_ids": encoding.type_ids,
            "attention_mask": encoding.attention_mask,
            "special_tokens_mask": encoding.special_tokens_mask,
            "offsets": encoding.offsets,
        }
    except BaseException as error:  # a panic of the library is no Exception
        return {"error": (str(error).strip() or type(error).__name__).splitlines()[0]}


def _words(tokenizer: Tokenizer, text: str) -> list[tuple[str, tuple[int, int]]]:
    """What is cut on its own: the words of a text in the letters of the vocabulary, and their places in the
    text as it was typed."""
    words = PreTokenizedString(text)
    if tokenizer.normalizer is not None:
        words.normalize(tokenizer.normalizer.normalize)
    if tokenizer.pre_tokenizer is not None:
        tokenizer.pre_tokenizer.pre_tokenize(words)
    return [(word, place) for word, place, _ in words.get_splits("original", "char")]


def _taken() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _bound(size: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # where the system knows no such bound
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


if __name__ == "__main__":
    main()
