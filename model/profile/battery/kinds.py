"""The labels, what each means, and when a head gets it: where it looks, and what it does."""

from dataclasses import dataclass
from math import isnan, nan
from typing import Literal, NamedTuple, get_args

from model.analysis.heads.labels import CLEAR as CLEAR  # of a row: more than on all its other keys
from model.analysis.heads.labels import TIMES as TIMES  # how much more than the strongest control
from model.nn.places import Kind as AttentionKind
from model.system.words import Words

say = Words("profile.battery_kinds")

EffectMeasure = Literal["logit", "moved", ""]  # "": nothing was measured
Does = Literal["raises", "lowers", "moves", "nothing", ""]  # "": nobody asked
MEASURES: tuple[EffectMeasure, ...] = get_args(EffectMeasure)
VERDICTS: tuple[Does, ...] = get_args(Does)
SURE = 2  # standard errors that a change must exceed
LEAST = {"logit": 0.05, "moved": 0.01}  # smaller changes are none: of a logit; of a vector's length


class Change(NamedTuple):
    """A mean over prompts, its standard error, and the same mean of the controls; NaN where nobody asked.

    apart: the standard error of mean − control: of the mean of their differences, prompt by prompt.
    """

    mean: float = nan
    spread: float = nan
    control: float = nan
    apart: float = nan

    def is_clear(self, measure: EffectMeasure) -> bool:
        """Whether it is more than SURE standard errors from 0, than the control, and than nothing. NaN as
        control counts as 0. Of "moved", the other rows move too: it lies SURE standard errors of the
        difference above them."""
        control, apart = abs(self.control), self.apart
        if isnan(control):
            control, apart = 0.0, self.spread
        if measure == "moved":
            control += SURE * apart
        return abs(self.mean) > max(SURE * self.spread, control, LEAST.get(measure, nan))


UNASKED = Change()


@dataclass(frozen=True)
class HeadEffect:
    """What one head does to the answer of one label's prompts.

    effect: what it adds directly to the answer's logit. left_out: what the pass without it changes: the same
    logit, or (measure "moved") the final vectors of the asked rows, as a share of their length.
    """

    effect: Change = UNASKED
    left_out: Change = UNASKED
    measure: EffectMeasure = ""
    reason: str = ""  # why one of them is NaN

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers by the names of their columns."""
        found: dict[str, float] = {}
        for name, change in (("effect", self.effect), ("left_out", self.left_out)):
            found |= {name: change.mean, f"{name}_spread": change.spread}
            found[f"{name}_control"] = change.control
        return found

    @property
    def does(self) -> Does:
        """The verdict: by the pass without the head where there is one, else by its direct effect. It
        "raises" the answer where leaving it out lowers that, and it "moves" vectors that have no answer."""
        by_passes = not isnan(self.left_out.mean)
        change = self.left_out if by_passes else self.effect
        if isnan(change.mean):
            return ""
        if not change.is_clear(self.measure):
            return "nothing"
        if self.measure == "moved":
            return "moves"
        return "raises" if (change.mean < 0) == by_passes else "lowers"


def is_given(score: float, control: float) -> bool:
    """Whether the weights of a head give it a label. The mean row must be clear: more weight on the wanted
    keys than on all others together. And it must be TIMES the strongest control, as for labels on one
    sentence: a head that does the same without the reason, or half of it, has another reason. NaN is no
    evidence."""
    return score > CLEAR and score > TIMES * control


@dataclass(frozen=True)
class HeadKind:
    """One label. `meaning` says which weight its score is; `source` who described such heads. `looks` and
    `answer` end a sentence: "0.61 of …", "without it … falls"."""

    name: str
    title: str
    meaning: str
    source: str
    looks: str
    answer: str = say("next_token_lead")
    shares: tuple[str, ...] = ()  # columns of a profile's heads that are about the same keys
    across: bool = False  # also for queries and keys of two texts
    ahead: bool = False  # only where a query may look at later tokens
    continued: bool = False  # only in a model that continues the text that it reads
    like: str = ""  # the label with whose prompts, cells and answers it is asked; "": its own
    does: Does = (
        ""  # what its name says that it does to the answer; "": it says where a head looks only
    )

    def refusal(self, kind: AttentionKind, *, continued: bool) -> str:
        """Why heads of a sub-layer cannot be asked; "" where they can. continued: the model continues the
        text that it reads."""
        if kind == "cross" and not self.across:
            return say("queries_keys_texts")
        if kind == "causal" and self.ahead:
            return say("may_not_look_later")
        if self.continued and not continued:
            return say("only_model_continues")
        return ""

    def is_given(self, score: float, control: float, does: Does) -> bool:
        """Whether a head gets the label. Its weights give it (`is_given`), also where the head does something
        else; but of two labels with the same cells, the second needs what its name says.

        Args:
            score: mean weight of a row on the wanted keys, 0 to 1.
            control: the strongest control's, 0 to 1; NaN: there is none, and no label.
            does: what becomes of the answer; "": nobody asked.
        """
        return is_given(score, control) and (not self.like or does == self.does)

    def is_earned(self, does: Does) -> bool:
        """Whether a head that gets the label also does what its name says. Where nothing has an answer it is
        enough that the head matters more to the asked rows than to others."""
        return self.does != "" and does in (self.does, "moves")


KINDS = (
    HeadKind(
        "previous",
        "Previous token",
        say("random_tokens_weight"),
        say("voita_et_al_2019"),
        say("token_weight_before"),
        shares=("previous",),
    ),
    HeadKind(
        "self",
        "Itself",
        say("random_tokens_weight_query"),
        "Clark et al. 2019, 3.1",
        say("token_weight_itself"),
        shares=("self",),
    ),
    HeadKind(
        "next",
        "Next token",
        say("random_tokens_weight_token"),
        say("voita_et_al_2019_positional"),
        say("token_weight_after"),
        shares=("next",),
        ahead=True,
    ),
    HeadKind(
        "first",
        "First token",
        say("random_tokens_weight_first"),
        say("xiao_et_al_2023"),
        say("token_weight_first"),
        shares=("first",),
        across=True,
    ),
    HeadKind(
        "duplicate",
        "Duplicate token",
        say("random_tokens_said"),
        say("wang_et_al_2022"),
        say("token_weight_same"),
        shares=("same",),
    ),
    HeadKind(
        "induction",
        "Induction",
        say("random_tokens_said_twice"),
        say("olsson_et_al_2022"),
        say("token_weight_followed"),
        shares=("induction",),
        continued=True,
        does="raises",
    ),
    HeadKind(
        "delimiter",
        "Delimiter",
        say("random_tokens_full"),
        "Clark et al. 2019, 3.2",
        say("word_weight_full"),
        shares=("punctuation", "delimiter"),
        across=True,
    ),
    HeadKind(
        "brackets",
        "Brackets",
        say("nested_brackets_weight"),
        say("clark_et_al_2019"),
        say("closing_bracket_weight"),
        say("closing_bracket_lead"),
        does="raises",
    ),
    HeadKind(
        "agreement",
        "Agreement",
        say("keys_near_cabinet"),
        say("linzen_et_al_2016"),
        say("verb_weight_subject"),
        say("right_verb_lead"),
        does="raises",
    ),
    HeadKind(
        "names",
        "Name mover",
        say("mary_john_john_gave"),
        say("wang_et_al_2022_name"),
        say("last_token_weight"),
        say("name_lead_over_occurs"),
        continued=True,
        does="raises",
    ),
    HeadKind(
        "negative_names",
        "Negative name mover",
        say("same_weight_name"),
        say("wang_et_al_2022_negative"),
        say("last_token_weight"),
        say("name_lead_over_occurs"),
        continued=True,
        like="names",
        does="lowers",
    ),
    HeadKind(
        "copy_suppression",
        "Copy suppression",
        say("same_weight_induction"),
        say("mcdougall_et_al"),
        say("token_weight_followed"),
        shares=("induction",),
        continued=True,
        like="induction",
        does="lowers",
    ),
)
LOOKED_FOR = tuple(kind for kind in KINDS if not kind.like)  # those with cells of their own
BY_NAME = {kind.name: kind for kind in KINDS}
