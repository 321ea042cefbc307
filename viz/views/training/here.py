"""A small model trained in the background while the visitor looks on."""

from functools import partial

import streamlit as st

from model.nn.places import Place, decoder_head, head_label
from model.training.induction import short_recipe
from model.training.workshop import PATIENCE, Report
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.notation.words import sentences_of
from viz.shell.panel import Panel, below_controls, draw_panel
from viz.state.engine import visitor
from viz.views.training.choice import LIST, archive, offer_training, read, text_box, workshop
from viz.views.training.player import message, player
from viz.views.training.views import check_of_traces, plateau, unread

say = sentences_of("training.here")

TICKET = "training-ticket"  # session state: the visitor's own run
REFUSAL = "training-refusal"  # session state: why a run could not be asked for
LOOKS = "training-looks"  # session state: seconds between the looks that the page was drawn with
EVERY = 1.0  # seconds between two looks at a run
EVERY_WAITING = 3.0  # at one that waits: a class waits together, and each look costs time
SEEDS = 20
STEPS = (200, 400, 600, 1000)
TEXT, HEAD = "training-here-text", "training-here-head"  # keys of widgets
BEST = {
    say("best_induction_head"): "induction",
    say("best_previous_token"): "previous_token",
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
        help=say("another_seed_draws"),
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
        look_for=say("shipped_model_training"),
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
            st.markdown(say("last_run_removed"))
        else:
            st.markdown(say("attention_only_gpt", patience=PATIENCE))
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
        place = "next" if report.place == 1 else say("number_queue", place=report.place)
        words.markdown(
            say("somebody_else_training", place=place, when=_when(report), patience=PATIENCE)
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
            return say("drawing_first_weights")
        loss = f", loss {report.losses[-1][1]:.2f}" if report.losses else ""
        return say("training_about_seconds", done=done, loss=loss, seconds_left=report.seconds_left)
    if report.state == "stopped":
        return say("stopped_results_far", done=done)
    if report.state == "gone":
        return say("ended_because_left", done=done)
    if report.training_run is None:
        return f"Done: {done}."
    scores, heads = report.training_run.history[-1], report.training_run.heads
    gates = say("pass_checks_shipped")
    if report.missed:
        gates = say("fail_checks_shipped", missed=" ".join(report.missed))
    return say(
        "done_induction_previous",
        done=done,
        induction_scores=scores["induction"],
        induction_heads=heads["induction"],
        previous_token_scores=scores["previous_token"],
        previous_token_heads=heads["previous_token"],
        gates=gates,
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
