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
from viz.notation.words import sentences_of
from viz.questions.interventions import leaking_mask, without_head, without_scaling
from viz.questions.next_tokens import next_token, settled_state
from viz.questions.question import QuestionMaker, token_name
from viz.questions.rows import copied_cells, copying_heads, open_keys
from viz.state.intervention_words import parts
from viz.state.link import View
from viz.state.navigation import HOME
from viz.state.presets import FIRST

say = sentences_of("tour.steps")

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
        return say("opened_step_needs", title=models[model].title, models_title=models[MODEL].title)
    if text.split() == TEXT.split():
        return None
    if text.split() == UNFINISHED.split():
        return ""
    typed = text.removeprefix(UNFINISHED)
    if typed.strip() == MISSING:
        return say("space_missing_put", missing=MISSING)
    if typed == text:
        return say("different_sentence_should", text=TEXT)
    return say("typed_type", typed=typed.strip(), missing=MISSING)


def largest_score(moment: Moment) -> str | None:
    """The scores are open, at the largest one of a row that the mask lets through."""
    view, (query, key) = moment.view, moment.cell(moment.view)
    if view.intervention.changes:
        return _left_on(view.intervention)
    moved = (query, key) != moment.cell(moment.before)
    if view.stage != "scores":
        if view.stage == moment.before.stage and not moved:
            return ""
        return say("open_choose_scores", stage=_stage(view))
    place, head = moment.head
    attention = moment.trace.find(place)
    keys = open_keys(attention, query, head)
    looking = token_name(moment.trace.queries_of(attention)[query], query)
    if len(keys) < 2:
        return say("row_only_score_counts", looking=looking)
    row = of_query(attention, query).scores(head)[0]
    if not moved:
        return say("scores_open_now", looking=looking)
    chosen = token_name(moment.trace.keys_of(attention)[key], key)
    if key not in keys:
        return say("comes_after_score", chosen=chosen, looking=looking)
    if row[key] < row[keys].max():
        return say("row_score_another", looking=looking, chosen=chosen, key_row=row[key])
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
            return say("right_something_else", others=listed(others))
        return say("changed_something_else", others=listed(others), act=act)

    return lack


def head_left_out(moment: Moment) -> str | None:
    """Nothing but the head that the step opened is left out."""
    head = moment.before.place, moment.before.head
    act = say("switch_off_use_head", head_label=head_label(head))
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
        return say("open_choose_weights", stage=_stage(view))
    place, head = moment.head
    attention = moment.trace.find(place)
    row = of_query(attention, query).weights(head)[0]
    looking = token_name(moment.trace.queries_of(attention)[query], query)
    chosen = token_name(moment.trace.keys_of(attention)[key], key)
    click = say("go_back_weights") if view.stage == "output" else "Click"
    if query != attention.query.shape[1] - 1:
        return say("row_last_row", looking=looking, click=click)
    if row[key] < row.max():
        return say(
            "row_another_token", looking=looking, chosen=chosen, key_row=row[key], click=click
        )
    if view.stage == "weights":
        return say("right_row_most_choose", looking=looking, chosen=chosen, key_row=row[key])
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
    return say(
        "opened_average_gives",
        head_label=head_label(head),
        mean=mean,
        listed_head_label=listed([head_label(one) for one in copies]),
    )


def _left_on(intervention: Intervention) -> str:
    words = listed([part.words for part in parts(intervention)])
    return say("model_changed_step", words=words)


def _stage(view: View) -> str:
    return _STRIP.get(view.stage, view.stage)


_LAST = 12  # position of the last token of the tour's sentence
# Whether a step can be done with a trace and a view, and why it cannot.
Need = tuple[Callable[[Trace, View], bool], Callable[[str], str]]

_PREDICTION: Need = (
    lambda trace, view: trace.prediction is not None,
    lambda model: say("step_needs_model", model=model),
)
_CAUSAL_MASK: Need = (
    lambda trace, view: trace.find(view.place).kind == "causal",
    lambda model: say("step_needs_layer"),
)
_DIVIDED_SCORES: Need = (
    lambda trace, view: trace.find(view.place).scale != 1,
    lambda model: say("step_needs_scores", model=model),
)
_COPYING_HEAD: Need = (
    lambda trace, view: bool(copying_heads(trace, trace.find(view.place))),
    lambda model: say("step_needs_gpt_head"),
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
        say("sentence_lacks_last", missing=MISSING),
        say("model_reads_tokens"),
        say("text_becomes_tokens"),
        finished_sentence,
        {"text": UNFINISHED, "model": MODEL, "place": "decoder.1.self", "head": 7},
        question=next_token,
        reads_off=True,
    ),
    TourStep(
        "scores",
        "Scores",
        HOME,
        say("above_map_choose"),
        say("row_belongs_query"),
        say("score_says_well"),
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
        say("beside_map_switch"),
        say("score_sum_many_products"),
        say("without_division_weights"),
        intervention_alone(Intervention(scale=1.0), say("switch_off_divide")),
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=without_scaling,
        needs=(_DIVIDED_SCORES,),
        changes=True,
    ),
    TourStep(
        "mask",
        "The mask",
        HOME,
        say("beside_map_switch_off"),
        say("hatched_cells_future"),
        say("causal_mask_hides"),
        intervention_alone(Intervention(mask="none"), say("switch_off_hide")),
        {"place": "decoder.0.self", "head": 3, "stage": "weights", "query": _LAST, "key": 1},
        question=leaking_mask,
        needs=(_CAUSAL_MASK, _PREDICTION),
        changes=True,
    ),
    TourStep(
        "weights",
        "Weights and output",
        HOME,
        say("above_map_choose_weights"),
        say("softmax_turns_row"),
        say("weights_sum_1_row"),
        largest_then_output,
        {"place": "decoder.1.self", "head": 1, "stage": "scaled", "query": 5, "key": 5},
    ),
    TourStep(
        "heads",
        "All heads",
        HOME,
        say("among_small_maps"),
        say("heads_use_same_formula"),
        say("head_looks_something"),
        copying,
        {"place": "decoder.0.self", "head": 0, "stage": "weights"},
        needs=(_COPYING_HEAD,),
    ),
    TourStep(
        "head",
        "One head less",
        HOME,
        say("beside_map_switch_head"),
        say("see_best_part_missing"),
        say("every_part_switched"),
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
        say("go_down_last_column"),
        say("attention_feed_forward"),
        say("layer_adds_vectors"),
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
        return say("step_needs_sentence")
    try:
        lacking = [reason for fits, reason in step.needs if not fits(trace, view)]
    except UnprovenError as refusal:
        return str(refusal)
    return next((reason(trace.model) for reason in lacking), None)
