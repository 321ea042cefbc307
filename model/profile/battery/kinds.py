"""The labels, what each means, and when a head gets it."""

from dataclasses import dataclass

from model.analysis.heads.labels import CLEAR as CLEAR  # of a row: more than on all its other keys
from model.analysis.heads.labels import TIMES as TIMES  # how much more than the strongest control
from model.nn.places import Kind as AttentionKind


@dataclass(frozen=True)
class HeadKind:
    """One label. `meaning` says which weight its score is; `source` who described such heads."""

    name: str
    title: str
    meaning: str
    source: str
    shares: tuple[str, ...] = ()  # columns of a profile's heads that are about the same keys
    across: bool = False  # also for queries and keys of two texts
    ahead: bool = False  # only where a query may look at later tokens
    continued: bool = False  # only in a model that continues the text that it reads

    def refusal(self, kind: AttentionKind, *, continued: bool) -> str:
        """Why heads of a sub-layer cannot be asked; "" where they can. continued: the model continues the
        text that it reads."""
        if kind == "cross" and not self.across:
            return "Its queries and keys are of two texts, so their places cannot be compared."
        if kind == "causal" and self.ahead:
            return "It may not look at later tokens."
        if self.continued and not continued:
            return "Only a model that continues the text that it reads has such heads."
        return ""


KINDS = (
    HeadKind(
        "previous",
        "Previous token",
        "Random tokens: weight on the token just before the query.",
        "Voita et al. 2019, positional heads; Olsson et al. 2022",
        shares=("previous",),
    ),
    HeadKind(
        "self",
        "Itself",
        "Random tokens: weight on the query's own token.",
        "Clark et al. 2019, 3.1",
        shares=("self",),
    ),
    HeadKind(
        "next",
        "Next token",
        "Random tokens: weight on the token just after the query.",
        "Voita et al. 2019, positional heads; Clark et al. 2019, 3.1",
        shares=("next",),
        ahead=True,
    ),
    HeadKind(
        "first",
        "First token",
        "Random tokens: weight on the first token of all, from the later half.",
        "Xiao et al. 2023, attention sinks",
        shares=("first",),
        across=True,
    ),
    HeadKind(
        "duplicate",
        "Duplicate token",
        "Random tokens, said twice: weight on the same token in the other half.",
        "Wang et al. 2022, duplicate token heads",
        shares=("same",),
    ),
    HeadKind(
        "induction",
        "Induction",
        "Random tokens, said twice: weight on what followed the same token the first time.",
        "Olsson et al. 2022, prefix matching",
        shares=("induction",),
        continued=True,
    ),
    HeadKind(
        "delimiter",
        "Delimiter",
        "Random tokens with full stops: weight on these and on special tokens, but the first token.",
        "Clark et al. 2019, 3.2",
        shares=("punctuation", "delimiter"),
        across=True,
    ),
    HeadKind(
        "brackets",
        "Brackets",
        "Nested brackets: weight of a closing bracket on the one that it closes.",
        "Clark et al. 2019, 4, ask heads in the same way about syntax",
    ),
    HeadKind(
        "agreement",
        "Agreement",
        "“The keys near the cabinet are”: weight of the verb on its subject.",
        "Linzen et al. 2016, the sentences; Voita et al. 2019, syntactic heads",
    ),
    HeadKind(
        "names",
        "Name mover",
        "“When Mary and John …, John gave a book to”: weight of the last token on the other name.",
        "Wang et al. 2022, name mover heads",
        continued=True,
    ),
)


def is_given(score: float, control: float) -> bool:
    """Whether a head gets a label. The mean row must be clear: more weight on the wanted keys than on all
    others together. And it must be TIMES the strongest control, as for labels on one sentence: a head that
    does the same without the reason, or half of it, has another reason. NaN is no evidence."""
    return score > CLEAR and score > TIMES * control
