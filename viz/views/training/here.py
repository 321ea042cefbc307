"""A small model trained in the background while the visitor looks on."""

from functools import partial

import streamlit as st

from model.nn.places import Place, decoder_head, head_label
from model.training.induction import short_recipe
from model.training.workshop import PATIENCE, Report
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.panel import Panel, below_controls, draw_panel
from viz.state.engine import visitor
from viz.views.training.choice import LIST, archive, offer_training, read, text_box, workshop
from viz.views.training.player import message, player
from viz.views.training.views import check_of_traces, plateau, unread

TICKET = "training-ticket"  # session state: the visitor's own run
REFUSAL = "training-refusal"  # session state: why a run could not be asked for
LOOKS = "training-looks"  # session state: seconds between the looks that the page was drawn with
EVERY = 1.0  # seconds between two looks at a run
EVERY_WAITING = 3.0  # at one that waits: a class waits together, and each look costs time
SEEDS = 20
STEPS = (200, 400, 600, 1000)
TEXT, HEAD = "training-here-text", "training-here-head"  # keys of widgets
BEST = {
    "The best induction head so far": "induction",
    "The best previous-token head so far": "previous_token",
}
HEADS = (
    *BEST,
    *(
        head_label((Place("decoder", layer, "self").name, head))
        for layer in range(2)
        for head in range(4)
    ),
)


def here() -> Panel:
    """Train one here: the choices, then the run as far as it is."""
    report = _own_report()
    training = report is not None and not report.over
    offer_training()
    st.selectbox(
        "Seed",
        range(SEEDS),
        3,
        key="training-seed",
        disabled=training,
        help="Another seed draws different starting weights and different lists to learn from.",
    )
    st.segmented_control(
        "Steps", STEPS, default=STEPS[-1], required=True, key="training-steps", disabled=training
    )
    st.button("Train", key="training-start", type="primary", disabled=training, on_click=_start)
    text_box(TEXT, LIST, listed=True)
    st.selectbox("Head", HEADS, key=HEAD)
    with below_controls():
        if REFUSAL in st.session_state:
            st.error(plain(st.session_state.pop(REFUSAL)))
    every = st.session_state[LOOKS] = _every(report)
    return Panel(
        "training-here",
        look_for="In the shipped model's training the loss stayed above 2.6 for 300 steps. Then it dropped, "
        "and the induction score jumped up in the same steps. With another seed this happens at "
        "other steps, and 200 steps may be too few.",
        picture=st.fragment(_run, run_every=every),
    )


def _every(report: Report | None) -> float | None:
    """Seconds between two looks; None where nothing will be added."""
    if report is None or report.over:
        return None
    return EVERY_WAITING if report.state == "waiting" else EVERY


def _own_report() -> Report | None:
    ticket = st.session_state.get(TICKET)
    return None if ticket is None else workshop().look(ticket)


def _start() -> None:
    recipe = short_recipe(st.session_state["training-seed"], st.session_state["training-steps"])
    try:
        st.session_state[TICKET] = workshop().ask(recipe, visitor())
    except ValueError as refusal:
        st.session_state[REFUSAL] = str(refusal)


def _stop() -> None:
    workshop().stop(st.session_state[TICKET])


def _run() -> None:
    """The run as it stands now; drawn again every few seconds until it is over."""
    report = _own_report()
    with st.container():
        if report is not None:
            _progress(report)
        elif TICKET in st.session_state:
            st.markdown("Your last run was removed to make room for those of others. Train again.")
        else:
            st.markdown(
                "An attention-only GPT with 2 layers and 38,784 weights learns from random lists of 32 "
                "symbols. 1,000 steps take about half a minute on a free core. One visitor trains at a "
                f"time. The run ends when you leave this page for {PATIENCE:.0f} seconds, and nothing is "
                "written to disk."
            )
    if report is None:
        draw_panel(plateau())
    else:
        _player(report)
    if st.session_state[LOOKS] != _every(report):
        st.rerun()  # the whole page, so that it looks as often as this needs


def _progress(report: Report) -> None:
    """How far the run is, or its place in the queue, with a button that ends it."""
    words, button = st.columns([5, 1], vertical_alignment="center")
    label, key = "Stop", "training-stop"
    if report.state == "waiting":
        label, key = "Leave the queue", "training-leave"
        place = "next" if report.place == 1 else f"number {report.place} in the queue"
        words.markdown(
            f"Somebody else is training. You are {place}. Your run will start by itself{_when(report)}. You "
            "can read other pages meanwhile: your place is kept as long as one is open. Come back by then: a "
            f"run ends when you leave this page for {PATIENCE:.0f} seconds."
        )
    else:
        words.progress(report.step / report.recipe.steps, text=_where(report))
    button.button(label, key=key, on_click=_stop, disabled=report.over, width="stretch")


def _when(report: Report) -> str:
    """How long a run waits, once a step has shown how long one takes."""
    if report.wait is None:
        return ""
    if report.wait < 60:
        return f" in about {max(report.wait, 1):.0f} seconds"
    return f" in about {counted(round(report.wait / 60), 'minute')}"


def _where(report: Report) -> str:
    done = f"step {report.step:,} of {report.recipe.steps:,}"
    if report.state == "training":
        if report.seconds_left is None:
            return "Drawing the first weights"
        loss = f", loss {report.losses[-1][1]:.2f}" if report.losses else ""
        return f"Training: {done}{loss}, about {report.seconds_left:.0f} seconds left"
    if report.state == "stopped":
        return f"Stopped at {done}. The results so far stay below."
    if report.state == "gone":
        return f"Ended at {done}, because you had left this view. The results so far stay below."
    if report.training_run is None:
        return f"Done: {done}."
    scores, heads = report.training_run.history[-1], report.training_run.heads
    gates = "It would pass the checks that the shipped model had to pass."
    if report.missed:
        gates = (
            "It would fail the checks that the shipped model had to pass: "
            f"{' '.join(report.missed)}"
        )
    return (
        f"Done: {done}. Induction {scores['induction']:.2f} in {heads['induction']}, previous token "
        f"{scores['previous_token']:.2f} in {heads['previous_token']}. {gates}"
    )


def _player(report: Report) -> None:
    run = report.training_run
    traces = None if run is None else read(run, st.session_state[TEXT])
    if run is None or traces is None:
        return
    label: str = st.session_state[HEAD]
    if what := BEST.get(label):  # before the first evaluation no head is the best, and one is taken
        place, head = run.head(what) if what in run.heads else ("decoder.1.self", 0)
    else:
        place, head = decoder_head(label)
    data = message(
        run,
        traces,
        archive().movement(run),
        place=place,
        head=head,
        losses=report.losses,
        planned=report.recipe.steps,
    )
    drawn = partial(player, data, mount="training-here")
    draw_panel(
        Panel("training-run", picture=drawn, below=unread(traces), check=check_of_traces(traces))
    )
