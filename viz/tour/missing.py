"""What is missing until a step of the tour is done, in a sentence that also says what was done. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from model.analysis.heads.statistics import mean_share
from model.loading.registry import models
from model.nn.intervention import Intervention
from model.nn.places import Head, head_label
from model.trace.some_queries import of_query
from model.trace.trace import Trace
from viz.questions.question import listed, token_name
from viz.questions.rows import copied_cells, copying_heads, open_keys
from viz.state.examples import FIRST
from viz.state.intervention_words import parts
from viz.state.view import View

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


def shown(name: str) -> Lack:
    """One of the page's row of buttons is chosen."""

    def lack(moment: Moment) -> str | None:
        chosen = moment.view.show
        if chosen == name:
            return None
        return f"You chose “{chosen}”. Choose “{name}”." if chosen else ""

    return lack


def another_score(moment: Moment) -> str | None:
    """The scores are open, with another cell than the first one."""
    view = moment.view
    if view.intervention.changes:
        return _left_on(view.intervention)
    moved = moment.cell(view) != moment.cell(moment.before)
    if view.stage == "scores":
        return None if moved else "The scores are open. Now click a cell outside the frame."
    if view.stage == moment.before.stage and not moved:
        return ""
    return f"“{_stage(view)}” is open. Choose “scores”, then click a cell."


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
    seen = token_name(moment.trace.keys_of(attention)[key], key)
    click = "Go back to “weights” and click" if view.stage == "output" else "Click"
    if len(open_keys(attention, query, head)) < 2:
        return f"The row of {looking} has only one cell. {click} in another row."
    if row[key] < row.max():
        return (
            f"In the row of {looking}, {seen} has {row[key]:.3f}, and another token has more. "
            f"{click} the darkest cell of a row."
        )
    if view.stage == "weights":
        return (
            f"Right: in the row of {looking}, {seen} has the most, {row[key]:.3f}. Choose “output”."
        )
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
