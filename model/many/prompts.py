"""Prompts as they are written, and as one model reads them: where their roles stand, and the ids of their
answers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Union
from unicodedata import category

from model.run.inputs import TokenIds, row_of_ids
from model.run.protocols import check_id, check_length
from model.run.tokenizers import clean
from model.system.border import check_argument, check_fields
from model.trace.records import Attention, Token
from model.trace.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from model.run.model import Model

AnswerToken = str | int  # a word as it would follow the text, or the id of a token
QUOTED = 200  # characters of a text in a sentence about it
FIRST, LAST = "first", "last"


@dataclass(frozen=True)
class Prompt:
    """A text, and what is asked about it.

    >>> from model.many import Prompt, measure
    >>> prompt = Prompt("Tom saw Anna. Anna saw", roles={"second": "Anna. [Anna]"}, answers=(" Tom",))
    >>> measure(model, [prompt], weights=[("last", "second")]).shape
    (32, 8)

    Args:
        text: what the model reads: a text, or token ids.
        condition: the group that it belongs to, for `groupby`.
        roles: words of the text by a name: {"subject": "the key"}. Each must stand in the text once; where
            the words are there twice, give more of the text with brackets around them: "and [John] went".
            "first" and "last" are the first and the last token that the model reads.
        answers: the wanted next token, and the one that it is compared with, if there is one: a word as it
            would follow the text, or an id.
        corrupt: the text with what matters exchanged, of as many tokens: `patch_all` takes parts of its run.

    Raises ValueError for more than two answers, and for a role of the name "first" or "last".
    """

    text: str | TokenIds
    condition: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[AnswerToken, ...] = ()
    corrupt: str | TokenIds = ""

    def __post_init__(self) -> None:
        for name in ("text", "corrupt"):  # as a tuple of ids they can be hashed
            if not isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, tuple(row_of_ids(text)))
        given: Any = self.answers
        check_argument("answers", given, AnswerToken | Sequence[AnswerToken])
        single = isinstance(given, str) or hasattr(given, "__index__")
        object.__setattr__(self, "answers", (given,) if single else tuple(given))
        check_fields(self)
        object.__setattr__(self, "roles", dict(self.roles))
        if len(self.answers) > 2:
            raise ValueError(
                f"{self} has {len(self.answers)} answers; it can have two: the wanted one and the other."
            )
        for name in self.roles:
            if name in (FIRST, LAST):
                raise ValueError(
                    f"A role of {self} is called “{name}”, which is the {name} token of every prompt. Choose "
                    "another name."
                )

    def __str__(self) -> str:
        """The text in quotes, cut where it is long."""
        text = str(self.text)
        return f"“{text[:QUOTED]}{'…' if len(text) > QUOTED else ''}”"


# One, several, or a table with a column for each field.
GivenPrompts = Union[
    str, Prompt, Iterable[str | TokenIds | Prompt | Mapping[str, Any]], "pd.DataFrame"
]


def prompts_of(given: GivenPrompts) -> list[Prompt]:
    """Prompts of texts, of ids, of dictionaries with the fields of `Prompt`, or of a table with a column for
    each field."""
    if isinstance(given, str | Prompt):
        given = [given]
    rows = given.to_dict("records") if hasattr(given, "to_dict") else given
    return [_prompt(row) for row in rows]


def _prompt(row: Any) -> Prompt:
    if isinstance(row, Prompt):
        return row
    if isinstance(row, Sequence) or hasattr(row, "__array__"):
        return Prompt(row)
    if not isinstance(row, Mapping):
        raise ValueError(
            f"{row!r} is no prompt: a prompt is a text, token ids, a Prompt or a dictionary."
        )
    known = [one.name for one in fields(Prompt)]
    for name in row:
        if name not in known:
            raise ValueError(f"A prompt has no {name!r}; it has {', '.join(known)}.")
    if "text" not in row:
        raise ValueError("A prompt has no text.")
    return Prompt(**row)


@dataclass(frozen=True, eq=False)
class PlacedPrompt:
    """A prompt as a model reads it."""

    prompt: Prompt
    count: int  # of its tokens
    roles: Mapping[str, tuple[int, ...]]  # the tokens of each role's words, from the first on

    @property
    def role_of(self) -> tuple[str, ...]:
        """(token,): the role that a token has; "" for most."""
        names = {0: FIRST, self.count - 1: LAST}
        for name, places in self.roles.items():
            names |= dict.fromkeys(places, name)
        return tuple(names.get(at, "") for at in range(self.count))

    def queries(self, role: str, trace: Trace, attention: Attention) -> tuple[int, ...]:
        """The queries of a role in a sub-layer; none where its words stand in another text.

        Args:
            role: a name of the prompt's roles; "first" and "last" are those of the queries' text.
            trace, attention: a run of the prompt, and the sub-layer of it.
        """
        own = attention.stack == trace.source
        return self._places(role, attention.sizes[1], own=own)

    def keys(self, role: str, trace: Trace, attention: Attention) -> tuple[int, ...]:
        """The keys of a role in a sub-layer; none where its words stand in another text.

        Args:
            role, trace, attention: as in `queries`, of the keys' text.
        """
        own = attention.kind == "cross" or attention.stack == trace.source
        return self._places(role, attention.sizes[2], own=own)

    def _places(self, role: str, count: int, *, own: bool) -> tuple[int, ...]:
        """own: whether the tokens are those of the prompt's text."""
        if role in (FIRST, LAST):
            return (0 if role == FIRST else count - 1,)
        return self.roles[role] if own else ()


def placed(model: "Model", prompt: Prompt) -> PlacedPrompt:
    """Raises ValueError for a text that the model cannot read, and for a role whose words are not in it, or
    more than once."""
    tokens = model.tokens(prompt.text)
    check_length(len(tokens), model.config.n_ctx, model.name)
    read, spans = _as_text(model, prompt), tokens
    if prompt.roles and read is not prompt:  # ids do not say which letters they are
        again = model.tokens(read.text)
        spans = again if [one.id for one in again] == [one.id for one in tokens] else tokens
    roles = {name: _tokens_of(spans, read, name) for name in prompt.roles}
    return PlacedPrompt(prompt, len(tokens), roles)


def _as_text(model: "Model", prompt: Prompt) -> Prompt:
    """The prompt with its ids as a text."""
    if isinstance(prompt.text, str):
        return prompt
    return replace(prompt, text=model.spelled(model.tokens(prompt.text)))


def _tokens_of(tokens: tuple[Token, ...], prompt: Prompt, name: str) -> tuple[int, ...]:
    """Where the tokens of a role's words stand: those that share a letter with them."""
    start, end = _letters_of(prompt, name)
    places = tuple(
        at
        for at, token in enumerate(tokens)
        if token.span is not None and token.span[0] < end and start < token.span[1]
    )
    if not places:
        raise ValueError(
            f"The role “{name}” of {prompt} is “{prompt.roles[name]}”, but this model's tokenizer does not "
            "tell which of its tokens that is."
        )
    return places


_MARKED = re.compile(r"(.*)\[(.+)\](.*)", re.DOTALL)


def _letters_of(prompt: Prompt, name: str) -> tuple[int, int]:
    """From the first letter of a role's words to after the last."""
    text, words = clean(str(prompt.text)), clean(prompt.roles[name])
    marked = None if words in text else _MARKED.fullmatch(words)
    before, inner, after = marked.groups() if marked else ("", words, "")
    whole = before + inner + after
    starts = _starts(text, whole) if inner.strip() else []
    if len(starts) == 1:
        start = starts[0] + len(before)
        return start, start + len(inner)
    role = f"The role “{name}” is “{words}”, which stands"
    if not starts:
        raise ValueError(f"{role} nowhere in {prompt}.")
    raise ValueError(
        f"{role} {len(starts)} times in {prompt}. Give more of the text, with brackets around the right one: "
        f"“… [{inner}] …”."
    )


def _starts(text: str, words: str) -> list[int]:
    """Where words stand in a text, as whole words in scripts that set off words by spaces."""
    begins = r"(?<!\w)" if _is_letter(words[0]) else ""
    ends = r"(?!\w)" if _is_letter(words[-1]) else ""
    return [one.start() for one in re.finditer(f"(?={begins}{re.escape(words)}{ends})", text)]


def _is_letter(character: str) -> bool:
    """Of a script with spaces between its words: those without have letters of one case only."""
    return character.isalnum() and category(character) != "Lo"


def answer_id(model: "Model", prompt: Prompt, answer: AnswerToken) -> int:
    """The id of the token that an answer is after a prompt's text. A space stands between two words. Raises
    ValueError for an answer of several tokens, and for a model that does not continue its text."""
    if not isinstance(answer, str):
        check_id(answer, model.config.d_vocab, model.name)
        return int(answer)
    if model.config.shape != "decoder":
        raise ValueError(
            f"{model.name} does not continue the text that it reads, so “{answer}” is no answer to {prompt}."
        )
    text = str(_as_text(model, prompt).text)
    apart = answer[:1].isalnum() and not text[-1:].isspace()
    before = [token.id for token in model.tokens(prompt.text)]
    after = [token.id for token in model.tokens(text + " " * apart + answer)]
    if after[:-1] != before:
        spaced = " The text ends in a space, which tokenizers join to the next word." * (
            text[-1:].isspace()
        )
        raise ValueError(
            f"The answer “{answer}” is not one token after {prompt}: {model.name} reads {len(before)} tokens "
            f"without it and {len(after)} with it.{spaced} Choose another word, or give the id of a token."
        )
    return after[-1]
