"""A question with its answer, and the runs of one sentence that it is made from. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from model.nn.intervention import Intervention
from model.nn.places import Head, head_label
from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from viz.notation.labels import token_label

CLEAR = 0.1  # no question where two weights or probabilities are closer than this
OPTIONS = 4  # of a question that could offer more
_LABEL = 20  # characters of a token in an option


@dataclass(frozen=True)
class Question:
    """One question, its options and what the model really does. All texts are plain, not Markdown.

    Raises ValueError where the options are not distinct or the answer is none of them.
    """

    prompt: str
    options: tuple[str, ...]
    answer: int  # position among the options
    numbers: str  # of the model, that bear the answer out
    why: str
    heads: tuple[Head, ...] = ()  # whose pictures the question shows, one an option

    def __post_init__(self) -> None:
        if len(self.options) < 2 or len(set(self.options)) < len(self.options):
            raise ValueError(f"The options {self.options} are not at least two distinct ones.")
        if not 0 <= self.answer < len(self.options):
            raise ValueError(f"Option {self.answer} is the answer; there are {len(self.options)}.")


@dataclass(frozen=True, eq=False)
class Scene:
    """One sentence, the open layer and head, and the way to run the sentence with an intervention."""

    run: Callable[[Intervention], Trace]
    named: Callable[[Sequence[int]], Sequence[Token]]  # ids of the vocabulary as tokens
    place: str
    head: int
    unembed: Callable[[Array], Array]  # a state of the stream to logits

    @property
    def trace(self) -> Trace:
        """The unchanged run."""
        return self.run(Intervention())

    @property
    def attention(self) -> Attention:
        """The open layer in the unchanged run."""
        return self.trace.find(self.place)

    @property
    def head_name(self) -> str:
        return head_label((self.place, self.head))

    def query_name(self, query: int) -> str:
        """The token that looks in a row of the open layer."""
        return token_name(self.trace.queries_of(self.attention)[query], query)

    @property
    def last_read(self) -> str:
        """The last token that the decoder reads."""
        tokens = self.trace.tokens_of("decoder")
        return token_name(tokens[-1], len(tokens) - 1)


QuestionMaker = Callable[
    [Scene, int], Question | None
]  # the number picks a row; None: no clear answer


def first_clear(
    scene: Scene, makers: Sequence[QuestionMaker], start: int
) -> tuple[Question, int] | None:
    """The first question from number `start` on that has a clear answer, and the number after it.

    Numbers go through the kinds in turn, then through the rows. None where this sentence has none.
    """
    for number in range(start, start + 4 * len(makers)):
        row, kind = divmod(number, len(makers))
        question = makers[kind](scene, row)
        if question is not None:
            return question, number + 1
    return None


def token_name(token: Token, position: int) -> str:
    """A token and its position, which tells equal tokens apart: “·Tom” (12)."""
    return f"{quoted(token)} ({position})"


def quoted(token: Token) -> str:
    return f"“{token_label(token.text, _LABEL)}”"
