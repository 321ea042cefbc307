"""The steps of the tour as data: where, what to do, why, and what is missing until it is done. Pure.

To add a step, add a `TourStep` to TOUR_STEPS: a page, the view it opens on, a sentence that says what to do,
and a function that says from the view what is missing. A test tries the act, and acts that are not quite
right.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from model.analysis.heads.statistics import mean_share
from model.loading.registry import models
from model.nn.intervention import Intervention
from model.nn.places import Head, head_label
from model.trace.blocks import of_query
from model.trace.trace import Trace
from model.trace.unproven import UnprovenError
from viz.notation.names import listed
from viz.notation.numbers import signed
from viz.questions.interventions import leaking_mask, without_head, without_scaling
from viz.questions.next_tokens import next_token, settled_state
from viz.questions.question import QuestionMaker, token_name
from viz.questions.rows import copied_cells, copying_heads, open_keys
from viz.state.intervention_words import parts
from viz.state.link import View
from viz.state.navigation import HOME
from viz.state.presets import FIRST

TEXT, MODEL = FIRST.text, FIRST.model
UNFINISHED, MISSING = TEXT.rsplit(" ", 1)  # the first step's sentence, and the word it lacks
_STRIP = {"query": "Q", "key": "K", "value": "V"}  # stages with another name in the strip


@dataclass(frozen=True, eq=False)
class Moment:
    """What decides whether a step is done."""

    view: View  # now
    before: View  # when the step was opened
    trace: Trace  # of the run on the page

    @property
    def head(self) -> Head:
        """The chosen head, within those that the layer has."""
        return self.view.place, min(self.view.head, self.trace.find(self.view.place).heads - 1)

    def cell(self, view: View) -> tuple[int, int]:
        """The chosen cell of a view, within the tokens there are."""
        attention = self.trace.find(self.view.place)
        rows, columns = attention.query.shape[1], attention.key.shape[1]
        return min(view.query, rows - 1), min(view.key, columns - 1)


Lack = Callable[[Moment], str | None]  # None: the step is done; "": its reader has not acted yet


def finished_sentence(moment: Moment) -> str | None:
    """The sentence has its last word, in the tour's model."""
    text, model = moment.view.text, moment.view.model
    if model != MODEL:
        return f"You opened {models[model].title}. This step needs {models[MODEL].title}."
    if text.split() == TEXT.split():
        return None
    if text.split() == UNFINISHED.split():
        return ""
    typed = text.removeprefix(UNFINISHED)
    if typed.strip() == MISSING:
        return f"The space is missing: put one before “{MISSING}”."
    if typed == text:
        return f"This is a different sentence. It should be “{TEXT}”."
    return f"You typed “{typed.strip()}”. Type “{MISSING}” there."


def largest_score(moment: Moment) -> str | None:
    """The scores are open, at the largest one of a row that the mask lets through."""
    view, (query, key) = moment.view, moment.cell(moment.view)
    if view.intervention.changes:
        return _left_on(view.intervention)
    moved = (query, key) != moment.cell(moment.before)
    if view.stage != "scores":
        if view.stage == moment.before.stage and not moved:
            return ""
        return f"“{_stage(view)}” is open. Choose “scores”, then click a cell."
    place, head = moment.head
    attention = moment.trace.find(place)
    keys = open_keys(attention, query, head)
    looking = token_name(moment.trace.queries_of(attention)[query], query)
    if len(keys) < 2:
        return f"The row of {looking} has only one score that counts. Choose another row."
    row = of_query(attention, query).scores(head)[0]
    if not moved:
        return f"The scores are open. Now click the largest one in the row of {looking}."
    chosen = token_name(moment.trace.keys_of(attention)[key], key)
    if key not in keys:
        return (
            f"{chosen} comes after {looking}, so this score will be masked. Click an earlier token."
        )
    if row[key] < row[keys].max():
        return (
            f"In the row of {looking}, {chosen} has a score of {signed(f'{row[key]:.1f}')}, and another "
            "token has a larger one. Click that."
        )
    return None


def intervention_alone(wanted: Intervention, act: str) -> Lack:
    """One thing is changed, and no other. act: how to change it."""
    aim = [part.words for part in parts(wanted)]

    def lack(moment: Moment) -> str | None:
        now = [part.words for part in parts(moment.view.intervention)]
        others = [words for words in now if words not in aim]
        if not others:
            return None if now == aim else ""
        if set(aim) <= set(now):
            return f"That is right, but something else is changed too: {listed(others)}. Undo it."
        return f"You changed something else: {listed(others)}. Undo it, then {act}."

    return lack


def head_left_out(moment: Moment) -> str | None:
    """Nothing but the head that the step opened is left out."""
    head = moment.before.place, moment.before.head
    act = f"switch off “Use head {head_label(head)}”"
    return intervention_alone(Intervention(ablated=frozenset({head})), act)(moment)


def read(moment: Moment) -> None:
    """There is nothing to do but to read off the answer."""


def largest_then_output(moment: Moment) -> str | None:
    """The largest weight of a row is chosen, and the output is open."""
    view, (query, key) = moment.view, moment.cell(moment.view)
    if view.intervention.changes:
        return _left_on(view.intervention)
    if (view.stage, query, key) == (moment.before.stage, *moment.cell(moment.before)):
        return ""
    if view.stage not in ("weights", "output"):
        return f"“{_stage(view)}” is open. Choose “weights”."
    place, head = moment.head
    attention = moment.trace.find(place)
    row = of_query(attention, query).weights(head)[0]
    looking = token_name(moment.trace.queries_of(attention)[query], query)
    chosen = token_name(moment.trace.keys_of(attention)[key], key)
    click = "Go back to “weights” and click" if view.stage == "output" else "Click"
    if query != attention.query.shape[1] - 1:
        return f"This is the row of {looking}. {click} in the last row."
    if row[key] < row.max():
        return (
            f"In the row of {looking}, {chosen} has {row[key]:.3f}, and another token has more. "
            f"{click} the largest weight of the row."
        )
    if view.stage == "weights":
        return f"Right: in the row of {looking}, {chosen} has the most, {row[key]:.3f}. Choose “output”."
    return None


def copying(moment: Moment) -> str | None:
    """A head that copies is open."""
    head, attention = moment.head, moment.trace.find(moment.view.place)
    copies = copying_heads(moment.trace, attention)
    if head in copies:
        return None
    if head == (moment.before.place, moment.before.head):
        return ""
    cells = copied_cells(moment.trace, attention)
    opened = moment.trace.find(head[0]).weights(head[1])
    mean = 0.0 if cells is None else float(mean_share(opened, cells))
    return (
        f"You opened {head_label(head)}. On average it gives a weight of {mean:.3f} to what "
        "followed the same word earlier. These heads copy here: "
        f"{listed([head_label(one) for one in copies])}. Open one of them."
    )


def _left_on(intervention: Intervention) -> str:
    words = listed([part.words for part in parts(intervention)])
    return f"The model is changed: {words}. This step needs the unchanged model. Undo the change."


def _stage(view: View) -> str:
    return _STRIP.get(view.stage, view.stage)


_LAST = 12  # position of the last token of the tour's sentence
# Whether a step can be done with a trace and a view, and why it cannot.
Need = tuple[Callable[[Trace, View], bool], str]

_PREDICTION: Need = (
    lambda trace, view: trace.prediction is not None,
    "This step needs a model that predicts the next token; {model} is an encoder.",
)
_CAUSAL_MASK: Need = (
    lambda trace, view: trace.find(view.place).kind == "causal",
    "This step needs a layer with a causal mask; in this layer every token may attend to every "
    "other.",
)
_DIVIDED_SCORES: Need = (
    lambda trace, view: trace.find(view.place).scale != 1,
    "This step needs scores that are divided by √d; {model} does not divide them.",
)
_COPYING_HEAD: Need = (
    lambda trace, view: bool(copying_heads(trace, trace.find(view.place))),
    "This step needs a GPT with a head that copies, and a sentence that repeats a word.",
)


@dataclass(frozen=True, eq=False)
class TourStep:
    """One step. `name` is its name in the link; `opens` are the fields of the view that it opens on."""

    name: str
    title: str
    page: str
    do: str
    why: str
    learned: str
    missing: Lack
    opens: Mapping[str, object] = field(default_factory=dict)
    question: QuestionMaker | None = None
    reads_off: bool = False  # whether the question comes after the act, beside the picture
    needs: tuple[Need, ...] = ()
    changes: bool = False  # whether the reader is to change the model


TOUR_STEPS: tuple[TourStep, ...] = (
    TourStep(
        "tokens",
        "The next word",
        HOME,
        f"The sentence lacks its last word. Type “{MISSING}” at its end and press Enter.",
        "A model reads tokens: words and pieces of words. After each it gives every token of its list a "
        "probability to come next; beside the map stand the likeliest.",
        "A text becomes tokens, and the model says how likely each possible next one is.",
        finished_sentence,
        {"text": UNFINISHED, "model": MODEL, "place": "decoder.1.self", "head": 7},
        question=next_token,
        reads_off=True,
    ),
    TourStep(
        "scores",
        "Scores",
        HOME,
        "Above the map choose “scores”. Then click the largest score in the row of the last token.",
        "Each row belongs to a query, each column to a key. A score is the dot product of the two: it says "
        "how well the query fits the key.",
        "A score says how well a query fits a key.",
        largest_score,
        {
            "place": "decoder.1.self",
            "head": 7,
            "stage": "weights",
            "query": _LAST,
            "key": _LAST,
        },
    ),
    TourStep(
        "scaling",
        "Scaling",
        HOME,
        "Beside the map, switch off “Divide scores by √d”.",
        "A score is a sum of many products, so it can be large, and with large scores the softmax gives most "
        "of the weight to one token.",
        "Without the division by √d the weights pile up on single tokens.",
        intervention_alone(Intervention(scale=1.0), "switch off “Divide scores by √d”"),
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=without_scaling,
        needs=(_DIVIDED_SCORES,),
        changes=True,
    ),
    TourStep(
        "mask",
        "The mask",
        HOME,
        "Beside the map, switch off “Hide the future”.",
        "Hatched cells were the future, which a model that predicts the next token must not see. Now a token "
        "can attend to the very one that it must predict. The bars under the words show how sure the "
        "model is of each.",
        "The causal mask hides the future: a token attends to itself and to earlier tokens.",
        intervention_alone(Intervention(mask="none"), "switch off “Hide the future”"),
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=leaking_mask,
        needs=(_CAUSAL_MASK, _PREDICTION),
        changes=True,
    ),
    TourStep(
        "weights",
        "Weights and output",
        HOME,
        "Above the map choose “weights” and click the largest weight of the last row. Then choose “output”.",
        "The softmax turns a row of scores into weights that sum to 1. A row of the output is the sum of the "
        "values, each times its weight: the row now carries what the token has read.",
        "Weights sum to 1 in each row; the output is the weighted sum of the values.",
        largest_then_output,
        {"place": "decoder.1.self", "head": 1, "stage": "scaled", "query": 5, "key": 5},
    ),
    TourStep(
        "heads",
        "All heads",
        HOME,
        "Among the small maps of all heads, click one that gives a repeated word what followed it earlier.",
        "All heads use the same formula. Each has its own matrices, so each looks for something different. "
        "Heads that copy so are called induction heads.",
        "Each head looks for something different; some copy what followed a word earlier.",
        copying,
        {"place": "decoder.0.self", "head": 0, "stage": "weights"},
        needs=(_COPYING_HEAD,),
    ),
    TourStep(
        "head",
        "One head less",
        HOME,
        "Beside the map, switch this head off: “Use head …”.",
        "You see best what a part is for when it is missing. Heads of later layers read what this one "
        "writes.",
        "Every part can be switched off, and the page shows what is lost.",
        head_left_out,
        {"place": "decoder.0.self", "head": 1, "stage": "weights"},
        question=without_head,
        needs=(_PREDICTION,),
        changes=True,
    ),
    TourStep(
        "stream",
        "Layer by layer",
        "pages/stream.py",
        "Go down the last column of the picture, and answer.",
        "Attention and feed-forward layers add to the vector of each token. Read as if it were the last, "
        "each sum already says a next word.",
        "Each layer adds to the vectors of the tokens, until the last one says the next word.",
        read,
        question=settled_state,
        needs=(_PREDICTION,),
    ),
)
NAMES = tuple(step.name for step in TOUR_STEPS)


def opened(step: TourStep, view: View) -> View:
    """The view a step opens on, made from the open one.

    The first step alone replaces the reader's sentence and model. In another model than the tour's the
    reader's layer and head stay too. The unfinished sentence of the first step is finished.
    """
    plain = replace(view, show="", intervention=Intervention(), target=None)
    if plain.text == UNFINISHED:
        plain = replace(plain, text=TEXT)
    fields = dict(step.opens)
    if plain.model != MODEL and "model" not in fields:
        fields = {name: value for name, value in fields.items() if name not in ("place", "head")}
    return replace(plain, **fields)  # type: ignore[arg-type]


def on_tour_sentence(step: TourStep, view: View) -> View:
    """The view a step opens on, with the sentence and model of the tour."""
    return opened(step, replace(view, text=TEXT, model=MODEL))


def unfit(step: TourStep, trace: Trace, view: View) -> str | None:
    """Why a step cannot be done with this sentence and model; None where it can.

    trace: the unchanged run.
    """
    if len(trace.tokens) < 2 and step.name != "tokens":
        return "This step needs a sentence of two tokens or more."
    try:
        lacking = [reason for fits, reason in step.needs if not fits(trace, view)]
    except UnprovenError as refusal:
        return str(refusal)
    return next((reason.format(model=trace.model) for reason in lacking), None)
