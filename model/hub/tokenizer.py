"""The tokenizer of a hub model, with the bytes and the place of each token, and its chat template.

Its ids are exactly those of Hugging Face's library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from tokenizers import Tokenizer

from model.download.hub_folder import TOKENIZER, TOKENIZER_CONFIG, check_file, read_json
from model.hub import template_process
from model.hub.isolated_tokenizer import IsolatedTokenizer, Rules, model_type
from model.run.tokenizers import TEXTS_KEPT, clean, spelled
from model.run.word_cuts import NO_RULE, WordCut
from model.system.processes import Bounded
from model.trace.records import Token

FILE = "chat_template.jinja"
LONGEST = 64 * 1024  # characters of a template
SECONDS, MEMORY = 3, 512 * 2**20  # in which it is rendered; bytes
_ONE_AT_A_TIME = Lock()


def chat_template(folder: Path) -> str | None:
    """The template of a model's folder, of several the one named “default”; None where it has none that can
    be read, or a very long one."""
    found: object = None
    with suppress(ValueError, OSError, KeyError, TypeError):
        if (folder / FILE).exists():
            check_file(folder, folder / FILE)
            found = (folder / FILE).read_text(encoding="utf-8")
        elif (folder / TOKENIZER_CONFIG).exists():
            found = read_json(folder / TOKENIZER_CONFIG).get("chat_template")
            if isinstance(found, list):
                found = {one["name"]: one["template"] for one in found}.get("default")
    return found if isinstance(found, str) and 0 < len(found) <= LONGEST else None


@lru_cache(maxsize=128)
def wrapped(template: str, text: str, **special: str) -> str:
    """A sentence of the user as the template wraps it, up to where the assistant begins to write. special:
    tokens of the model that the template may name, such as bos_token.

    Raises ValueError for a template that fails, or that takes too much time, memory or room.
    """
    asked = {
        "template": template,
        "messages": [{"role": "user", "content": text}],
        "add_generation_prompt": True,
        **special,
    }
    with _ONE_AT_A_TIME:
        try:
            answer = Bounded(template_process.__file__, MEMORY, dict).ask(asked, SECONDS)
        except ValueError as error:
            raise ValueError(f"The chat template cannot be rendered ({error}).") from None
    return str(answer["text"])


NO_TOKENIZER = "it has no tokenizer (tokenizer.json)"
SPACE = "▁"  # how SentencePiece writes a space


class HubTokenizer:
    """A tokenizer of Hugging Face's library.

    rows: how many tokens the model has a vector for. template: how it wraps a chat. behind_end: how many
    tokens it adds behind the end of a target, which the decoder does not read there (mBART's language).

    Raises ValueError, with a sentence, for a text that it or its model cannot read.
    """

    languages: Mapping[str, int] = MappingProxyType({})  # of a multilingual translator: code -> id
    language = ""  # the code of the one that it reads
    in_languages: Callable[[str, str], tuple["HubTokenizer", "HubTokenizer"]]  # of text and target

    def __init__(
        self,
        tokenizer: Any,
        *,
        start: int | None,
        end: int | None,
        rows: int,
        template: str | None = None,
        behind_end: int = 0,
    ) -> None:
        self._tokenizer = tokenizer
        self.template = template
        self._behind_end = behind_end
        self._rows = rows
        languages = languages_of(tokenizer).values()
        self._special = {*tokenizer.all_special_ids, *languages}
        self._added = {*tokenizer.get_added_vocab().values(), *languages}
        self._bytes = tokenizer.is_fast and "ByteLevel" in str(tokenizer.backend_tokenizer.decoder)
        self.size = max(len(tokenizer), *(id_ + 1 for id_ in languages), 0)
        self.start = start
        self.end = end
        self._kept = lru_cache(TEXTS_KEPT)(self._cut)

    def tokens(self, text: str) -> tuple[Token, ...]:
        """The ids that the library makes, each with its place in the text."""
        return self._kept(text)

    def _cut(self, text: str) -> tuple[Token, ...]:
        cut = clean(text)
        with _refusing():
            read = self._by_places(cut) if self._tokenizer.is_fast else self._by_pieces(cut)
        for token in read:
            if not 0 <= token.id < self._rows:
                raise ValueError(
                    f"This model has no vector for the token {token.text[:40]!r}: its tokenizer "
                    f"gives it the number {token.id:,}, and the model knows {self._rows:,} tokens."
                )
        return read[: len(read) - self._behind_end]

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(self._token(int(id_), special=int(id_) in self._special) for id_ in ids)

    def decode(self, ids: Sequence[int]) -> str:
        with _refusing():
            decoded: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return decoded

    def new_words(self, text: str) -> tuple[str, ...]:
        """The words that contain an unknown token."""
        unknown = self._tokenizer.unk_token_id
        if unknown is None or self._bytes:
            return ()
        words = dict.fromkeys(clean(text).split())
        return tuple(word for word in words if unknown in (token.id for token in self._cut(word)))

    def beginning(self, text: str, tokens: int) -> str:
        read = self.tokens(text)
        added = sum(token.special for token in read)
        ends = [token.span[1] for token in read if token.span is not None]
        fitting = ends[: max(tokens - added, 0)]
        return clean(text)[: fitting[-1]] if fitting else ""

    def words_of(self, text: str) -> tuple[str, ...]:
        """The words of a text, each cut on its own; none where no rule that is known here cuts them."""
        if self._rules is None:
            return ()
        with _refusing():
            found = self._rules.backend.words(clean(text))
        return tuple(self._spelled(word) for word, _ in found)

    def word_cut(self, text: str, number: int) -> WordCut:
        """How one of those words is cut, and the tokens that the library makes there."""
        if self._rules is None:
            raise ValueError(NO_RULE)
        with _refusing():
            word, place = self._rules.backend.words(clean(text))[number]
        start, end = place
        own = tuple(
            token.raw or self._tokenizer.convert_ids_to_tokens(token.id)
            for token in self.tokens(text)
            if token.span is not None and start <= token.span[0] and token.span[1] <= end
        )
        steps = tuple(
            step._replace(pieces=tuple(self._raw(str(piece)) or piece for piece in step.pieces))
            for step in self._rules.steps(word)
        )
        return WordCut(self._rules.kind, steps, own)

    def wrapped(self, text: str) -> str | None:
        """A sentence as the model's chat template wraps it; None without one. `tokens` gives it the ids of
        the library's `apply_chat_template`.

        Raises ValueError for a template that fails, and for one that writes nothing around the sentence where
        the tokenizer does: such a chat looks like any other text, which has other ids.
        """
        if self.template is None:
            return None
        written = wrapped(self.template, clean(text), **self._tokenizer.special_tokens_map)
        with _refusing():
            ids = self._tokenizer(written, add_special_tokens=False)["input_ids"]
        if [token.id for token in self.tokens(written)] == ids:
            return written
        shorter = written.removeprefix(self._tokenizer.bos_token or "")
        if [
            token.id for token in self.tokens(shorter)
        ] == ids:  # its first token is left to the tokenizer
            return shorter
        raise ValueError(
            "The chat template writes nothing around a sentence, and the tokenizer adds tokens to every "
            "text: a chat could not be told from other texts."
        )

    @cached_property
    def _around_chats(self) -> tuple[str, str] | None:
        """What the template writes before and behind a sentence; None where the tokenizer adds nothing to a
        text, or the template writes no more than a first token."""
        probes, special = ("Q", "x"), self._tokenizer.special_tokens_map
        try:
            if self.template is None or not encoded(self._tokenizer, ""):
                return None
            one, other = (wrapped(self.template, probe, **special) for probe in probes)
        except ValueError:
            return None
        before, found, behind = one.rpartition(probes[0])
        is_form = bool(found) and other == before + probes[1] + behind
        says_more = before.removeprefix(self._tokenizer.bos_token or "").strip() or behind.strip()
        return (before, behind) if is_form and says_more else None

    def _is_chat(self, text: str) -> bool:
        """Whether a text has the form of the template, which writes its special tokens itself."""
        around = self._around_chats
        if around is None:
            return False
        before, behind = (part.strip() for part in around)
        words = text.strip()
        fits = len(words) >= len(before) + len(behind)
        return fits and words.startswith(before) and words.endswith(behind)

    def marked(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        """The tokens; those that are part of no text are marked as special, also where they were typed."""
        return tuple(
            replace(token, special=token.special or token.id in self._added) for token in tokens
        )

    @cached_property
    def is_unigram(self) -> bool:
        """Whether it takes the most probable pieces (Kudo 2018), by its description."""
        return (
            self._tokenizer.is_fast and model_type(self._tokenizer.backend_tokenizer) == "Unigram"
        )

    @cached_property
    def _rules(self) -> Rules | None:
        return Rules.of(self._tokenizer.backend_tokenizer) if self._tokenizer.is_fast else None

    def _spelled(self, word: str) -> str:
        raw = self._raw(word)
        return spelled(raw) if raw else word

    def _token(self, id_: int, *, special: bool, span: tuple[int, int] | None = None) -> Token:
        piece = self._tokenizer.convert_ids_to_tokens(id_) or ""
        raw = b"" if id_ in self._added or special else self._raw(piece)
        text = spelled(raw) if raw else piece
        return Token(id_, text, raw, special, span)

    def _raw(self, piece: str) -> bytes:
        """The bytes of a piece, where the tokenizer works on bytes."""
        letters = _bytes_of_letters()
        if self._bytes and all(letter in letters for letter in piece):
            return bytes(letters[letter] for letter in piece)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes.fromhex(piece[3:5])
        return b""

    def _by_places(self, text: str) -> tuple[Token, ...]:
        """The tokens of a tokenizer that gives their places."""
        added = not self._is_chat(text)
        encoding = self._tokenizer(text, add_special_tokens=added).encodings[0]
        return tuple(
            self._token(id_, special=bool(special), span=None if special else (span[0], span[1]))
            for id_, special, span in zip(
                encoding.ids, encoding.special_tokens_mask, encoding.offsets, strict=True
            )
        )

    def _by_pieces(self, text: str) -> tuple[Token, ...]:
        """The tokens of a tokenizer that gives no places: each piece is searched for in the text."""
        ids = self._tokenizer(text, add_special_tokens=not self._is_chat(text))["input_ids"]
        added = self._tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        unknown, found, at = self._tokenizer.unk_token_id, [], 0
        for id_, special in zip(ids, added, strict=True):
            own = (bool(special) or id_ in self._special) and id_ != unknown
            piece = str(self._tokenizer.convert_ids_to_tokens(id_)).replace(SPACE, "")
            where = text.find(piece, at) if piece and not own else -1
            span = None if own else (at, at)
            if where >= 0:
                span, at = (where, where + len(piece)), where + len(piece)
            found.append(self._token(id_, special=own, span=span))
        return tuple(found)


def load_tokenizer(folder: Path) -> Any:
    """The library's tokenizer of a folder. Raises ValueError where there is none that works."""
    from transformers import AutoTokenizer

    there = {file.name for file in folder.iterdir() if TOKENIZER.fullmatch(file.name)}
    there.discard(TOKENIZER_CONFIG)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except BaseException as error:  # the library raises the bare class for damaged files
        if not isinstance(error, Exception) and not _is_panic(error):
            raise
        why = f"its tokenizer cannot be read ({first_line(error)})" if there else NO_TOKENIZER
        raise ValueError(why) from error
    if tokenizer.vocab_files_names and not there:  # one of bytes (ByT5) reads no file
        raise ValueError(NO_TOKENIZER)
    return isolated(tokenizer)


def isolated(tokenizer: Any, *, source: str | None = None, target: str | None = None) -> Any:
    """A tokenizer like this one, whose Rust part, if it has one, runs in a process of its own, and cuts and
    pads nothing. The given one stays as it is. source: the language that it reads. target: it reads the texts
    of a decoder, in this language; "" where it knows no languages."""
    made: Any = object.__new__(type(tokenizer))
    vars(made).update(vars(tokenizer))  # `copy` asks it for names that it looks up in itself
    if tokenizer.is_fast:
        backend = made._tokenizer = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = tokenizer.split_special_tokens
    if source:
        made.src_lang = source
    if target is not None and hasattr(made, "_switch_to_target_mode"):
        if target:
            made.tgt_lang = target
        made._switch_to_target_mode()
        made._in_target_context_manager = True  # else the library switches back before each text
    if tokenizer.is_fast:
        made._tokenizer = IsolatedTokenizer(made._tokenizer)
    return made


def languages_of(tokenizer: Any) -> dict[str, int]:
    """The languages that a multilingual translator's tokenizer tells apart, with the ids of their tokens."""
    if not hasattr(tokenizer, "set_tgt_lang_special_tokens"):
        return {}
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if codes is None:  # NLLB
        codes = {str(one): 0 for one in tokenizer.extra_special_tokens}
        codes = {code: tokenizer.convert_tokens_to_ids(code) for code in codes}
    return dict(codes)


def encoded(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text. Raises ValueError where the tokenizer fails."""
    with _refusing():
        ids: list[int] = tokenizer(text)["input_ids"]
    return ids


@contextmanager
def _refusing() -> Iterator[None]:
    """Raises ValueError for an error in the library. A panic of its Rust part is not an Exception, and
    would end the thread."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, MemoryError) or not (isinstance(error, Exception) or _is_panic(error)):
            raise
        raise ValueError(f"Its tokenizer cannot read this ({first_line(error)}).") from error


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def first_line(error: BaseException) -> str:
    """The first line of what the library says."""
    if isinstance(error, KeyError):
        return f"{error} is not known"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:200]


@lru_cache(maxsize=1)
def letters_of_bytes() -> dict[int, str]:
    """The letter that stands for each byte in a byte-level vocabulary (Radford et al. 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    return letters | {byte: chr(256 + place) for place, byte in enumerate(hidden)}


@lru_cache(maxsize=1)
def _bytes_of_letters() -> dict[str, int]:
    return {letter: byte for byte, letter in letters_of_bytes().items()}
