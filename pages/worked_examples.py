"""Worked examples: every example of the notes, step by step, with inputs to change; and code that fails."""

from viz.shell import page
from viz.shell.panel import Panel, PanelView, refusals
from viz.state.session import current
from viz.views.worked.by_hand import ERRATA, STEPS, stepped
from viz.views.worked.choice import adopt_link, choice, chosen, write_link
from viz.views.worked.failing_code import code_that_fails
from viz.views.worked.inputs import with_own_numbers
from viz.views.worked.notes import errata_of_the_notes


def step_by_step() -> Panel:
    """The open step of the chosen example."""
    choice()
    with refusals():
        example = with_own_numbers(chosen())
    return stepped(example, write_link)


VIEWS: dict[str, PanelView] = {STEPS: step_by_step, "Code that fails": code_that_fails}

page.open_page("pages/worked_examples.py")
adopt_link()
is_errata = (
    current().show == ERRATA
)  # behind a link: they stand in the row only while they are open
page.views(VIEWS | ({ERRATA: errata_of_the_notes} if is_errata else {}))
