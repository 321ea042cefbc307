"""The steps of the tour as plain data: where, what to do, why, and when it is done. Pure.

To add a step, add a `Step` to STEPS: a page, the view it opens on, a sentence that says what to do, and
a function that says from the view whether it was done. A test tries each one before and after.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from model.intervention import Intervention
from model.trace import Trace
from viz.examples import FIRST
from viz.questions.changes import lifted_mask, without_positions, without_scaling
from viz.questions.next_tokens import next_token
from viz.questions.question import Maker
from viz.questions.rows import copying_head, largest_weight
from viz.view import View

TEXT, MODEL = FIRST.text, FIRST.model
UNFINISHED, MISSING = TEXT.rsplit(" ", 1)  # the first step's sentence, and the word it lacks
_LAST = 12  # position of the last token of the tour's sentence


@dataclass(frozen=True, eq=False)
class Moment:
    """What is known when a step's condition is read."""

    view: View  # now
    before: View  # when the step was opened
    trace: Trace  # of the run on the page

    def cell(self, view: View) -> tuple[int, int]:
        """The chosen cell of a view, within the tokens there are."""
        attention = self.trace.find(self.view.place)
        rows, columns = attention.query.shape[1], attention.key.shape[1]
        return min(view.query, rows - 1), min(view.key, columns - 1)


@dataclass(frozen=True, eq=False)
class Step:
    """One step. `name` stands in the link; `opens` are the fields of the view that it opens on."""

    name: str
    title: str
    page: str
    do: str
    why: str
    learned: str
    done: Callable[[Moment], bool]
    opens: Mapping[str, object] = field(default_factory=dict)
    question: Maker | None = None
    hides: bool = False  # the page's picture, until the question is answered
    needs: Literal["anything", "a causal mask", "a prediction"] = "anything"


def _looked_at_largest(moment: Moment) -> bool:
    """Whether the chosen cell is the largest of its row, and the output is shown."""
    view, (query, key) = moment.view, moment.cell(moment.view)
    attention = moment.trace.find(view.place)
    row = attention.weights(min(view.head, attention.heads - 1))[query]
    return view.stage == "output" and int(row.argmax()) == key


STEPS: tuple[Step, ...] = (
    Step(
        "tokens",
        "Tokens",
        "pages/tokens.py",
        f"The sentence lacks its last word. Type “{MISSING}” at its end and press Enter.",
        "A model reads tokens: pieces from a fixed list, each with a number. This “Tom” is another token "
        "than the first one, for the space before it belongs to it.",
        "A text becomes tokens, and each token a number.",
        lambda moment: moment.view.text != moment.before.text,
        {"text": UNFINISHED, "model": MODEL},
    ),
    Step(
        "positions",
        "Positions",
        "pages/positions.py",
        "In the row of buttons choose “Added to the tokens”.",
        "The number looks up a vector. A second vector says where the token stands, and the two are "
        "added: attention alone would not know which word comes first.",
        "A token's vector and its position's are added: what a word is, and where it stands.",
        lambda moment: moment.view.show == "Added to the tokens",
    ),
    Step(
        "scores",
        "Scores",
        "pages/attention.py",
        "In the strip of small pictures choose “scores”, then click any cell of the large picture.",
        "Each row is a token that looks, each column one it may look at. A score is the dot product of "
        "the row's query and the column's key: the formula beside it fills with the numbers of your cell.",
        "A score says how well a query fits a key.",
        lambda moment: (
            moment.view.stage == "scores" and moment.cell(moment.view) != moment.cell(moment.before)
        ),
        {"place": "decoder.1.self", "head": 7, "stage": "query", "query": _LAST, "key": _LAST},
    ),
    Step(
        "scaling",
        "Scaling",
        "pages/attention.py",
        "Above the picture, switch off “Divide scores by √dₖ”.",
        "A sum of many products is large. Undivided, it makes the softmax give most of the weight to one "
        "token. Switched off, the picture shows the model's own run, the changed one and the difference.",
        "Without the division by √dₖ the weights crowd on single tokens.",
        lambda moment: moment.view.change.scale is not None,
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=without_scaling,
    ),
    Step(
        "mask",
        "The mask",
        "pages/attention.py",
        "Above the picture, under Mask, choose “none: all may look”.",
        "Grey cells are the future, which a model that guesses the next token must not see. Lifted, the "
        "rows above the last one spread over tokens that come later.",
        "The causal mask closes the future: a token looks at itself and at those before it.",
        lambda moment: moment.view.change.mask != "model",
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=lifted_mask,
        needs="a causal mask",
    ),
    Step(
        "weights",
        "Weights and output",
        "pages/attention.py",
        "Choose “weights” and click the largest cell of a row. Then choose “output”.",
        "The softmax turns a row of scores into weights that sum to 1. A row of the output is the sum of "
        "the values, each times its weight: the row now carries what the token read.",
        "Weights sum to 1 in each row; the output is the weighted sum of the values.",
        _looked_at_largest,
        {"place": "decoder.1.self", "head": 1, "stage": "scaled", "query": _LAST, "key": _LAST},
        question=largest_weight,
    ),
    Step(
        "heads",
        "All heads",
        "pages/all_heads.py",
        "Click the tile of a head that copies, or choose its layer and head in the two lists.",
        "All heads share one formula. Each has matrices of its own, so each looks for something else.",
        "Each head looks for something of its own; some copy what followed a word before.",
        lambda moment: (
            (moment.view.place, moment.view.head) != (moment.before.place, moment.before.head)
        ),
        {"place": "decoder.0.self", "head": 0},
        question=copying_head,
    ),
    Step(
        "feed-forward",
        "Feed-forward",
        "pages/feed_forward.py",
        "In the row of buttons choose “Contributions”.",
        "Attention moved vectors between tokens. The feed-forward layer then works on each token alone. "
        "Both add their result to the token's stream, and these bars show how much.",
        "Attention mixes tokens, the feed-forward works on each alone; both add to the stream.",
        lambda moment: moment.view.show == "Contributions",
    ),
    Step(
        "prediction",
        "Prediction",
        "pages/prediction.py",
        "Answer the question first. Then choose “Token by token” and see how the sentence goes on.",
        "The last state of the stream is compared with every token of the vocabulary: that gives one "
        "logit each, and the softmax makes probabilities of them.",
        "The last token's vector becomes a probability for every token of the vocabulary.",
        lambda moment: moment.view.show == "Token by token",
        question=next_token,
        hides=True,
        needs="a prediction",
    ),
    Step(
        "laboratory",
        "Take something away",
        "pages/laboratory.py",
        "In the row of changes choose “Positions” and switch them off.",
        "What a part is for shows best when it is missing. The bars compare what the model expects next, "
        "with and without.",
        "Every part can be switched off, and the page shows what is lost.",
        lambda moment: not moment.view.change.positions,
        {"show": "Next token"},
        question=without_positions,
        needs="a prediction",
    ),
)
NAMES = tuple(step.name for step in STEPS)


def opened(step: Step, view: View) -> View:
    """The view a step opens on, from the one that is open.

    The reader's own sentence and model stay, but for the first step; so does their layer where the
    model is another than the tour's. A sentence left unfinished is finished.
    """
    plain = replace(view, show="", change=Intervention(), target=None)
    if plain.text == UNFINISHED:
        plain = replace(plain, text=TEXT)
    fields = dict(step.opens)
    if plain.model != MODEL and "model" not in fields:
        fields = {name: value for name, value in fields.items() if name not in ("place", "head")}
    return replace(plain, **fields)  # type: ignore[arg-type]


def on_tour_sentence(step: Step, view: View) -> View:
    """The same, on the sentence and model of the tour."""
    return opened(step, replace(view, text=TEXT, model=MODEL))


def unfit(step: Step, trace: Trace, view: View) -> str | None:
    """Why a step cannot be done with this sentence and model; None where it can."""
    if len(trace.tokens) < 2 and step.name != "tokens":
        return "This step needs a sentence of two tokens or more."
    if step.needs == "a prediction" and trace.prediction is None:
        return f"This step needs a model that predicts the next token; {trace.model} is an encoder."
    if step.needs == "a causal mask" and trace.find(view.place).kind != "causal":
        return _NO_MASK
    return None


_NO_MASK = "This step needs a layer with a causal mask; the open one may look at everything."
