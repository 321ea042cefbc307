"""What training is, and the shipped trainings: one head along the checkpoints, untrained beside trained;
claims about transformers, tried by training; and a recurrent network beside attention."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.heads.ranking import STATISTICS
from model.nn.places import head_label
from model.training import claims
from model.training.checkpoints import CheckpointTraces, shipped_training_run
from model.training.claims import ACCURACY, CLAIMS, REPEATED, Claim, Runs
from model.training.recurrent import Comparison, compare
from model.training.training_file import RecordedTraining
from viz.elements.one_of import one_of
from viz.explorer.packing import Json
from viz.figures.curves import (
    Curve,
    Seeds,
    first_drawn,
    heads_forming,
    seed_curves,
    training_curves,
)
from viz.figures.diagrams import paths_and_gradients
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.theme import CURVES
from viz.shell.panel import (
    Caption,
    Check,
    Columns,
    Formula,
    Panel,
    Part,
    Table,
    draw_panel,
)
from viz.state.engine import engine
from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import glossary_link
from viz.views.training.choice import LIST, TrainedHead, archive, choose_training, text_box
from viz.views.training.player import message, player
from viz.views.training.player.message import PATTERN_NAMES, measures, patterns

LOSS = r"""L = -\frac{1}{n} \sum_{t=1}^{n} \ln p\left(x_{t+1} \mid x_1 \dots x_t\right)"""
STEP = r"""\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}"""
SHOWN = {
    "induction": "induction head",
    "previous_token": "previous-token head",
    "repeat_accuracy": "second half of lists predicted",
}


def idea() -> None:
    words, picture = st.columns(2, gap="large")
    with words:
        st.markdown(
            f"""
A model starts as random numbers. It reads a text and gives each possible next token a
{glossary_link("probability")}. The **{glossary_link("cross-entropy loss", "loss")}** is the mean of −ln
p over the tokens that really came next. It is 0 if each was predicted with certainty, and ln V if all V
tokens are thought equally likely.
"""
        )
        st.latex(LOSS)
        st.markdown(
            """
Back-propagation computes the slope of the loss for every weight θ: the **gradient**. One **step** moves
every weight a little against its slope; η is the learning rate. Then the next batch of texts is read,
and so on. The models here use AdamW, which adapts the rate of each weight.
"""
        )
        st.latex(STEP)
        st.markdown(
            f"""
A **{glossary_link("checkpoint")}** is a copy of all weights at one step. Laid one after another,
checkpoints show when a head finds its job.

Learning need not be smooth. Here the loss stays high for 300 steps. Then a
{glossary_link("previous-token head")} in layer 0 and an {glossary_link("induction head")} in layer 1
form together, and the loss drops: a **phase change**. Nothing told the model to build these heads. They
make the next token easier to predict.
"""
        )
    with picture:
        st.markdown("**The induction model's training: a plateau, a drop, a plateau**")
        draw_panel(_curves())


def _curves() -> Panel:
    history = shipped_training_run("induction").history
    steps = [int(record["step"]) for record in history]
    losses = Curve(steps[1:], [record["loss"] for record in history if "loss" in record])
    scores = {
        name: Curve(steps, [record[score] for record in history]) for score, name in SHOWN.items()
    }
    columns = {name: line.values for name, line in scores.items()}
    return Panel(
        "training-idea",
        picture=training_curves({"loss": losses}, scores),
        below=[
            Caption(
                "Each loss is the mean of the 100 steps before it. The scores are for new lists, each "
                "repeated once."
            )
        ],
        table=Table({"step": steps, "loss": [None, *losses.values], **columns}),
    )


MOVED = r"""\frac{\lVert \theta_{\text{now}} - \theta_{\text{then}} \rVert}
{\lVert \theta_{\text{step } 0} \rVert}"""
STRIPE = r"""\frac{1}{|R|} \sum_{i \in R}\ \sum_{j < i,\ x_{j-1} = x_i} w_{ij}"""
BEFORE = r"""\frac{1}{n-1} \sum_{i=1}^{n-1} w_{i,\,i-1}"""
SHARPEST = r"""\frac{1}{n} \sum_{i} \max_j w_{ij}"""
ROLES = {
    "induction": (
        "In a repeated list, the framed cells are the tokens that followed each token the "
        "first time."
    ),
    "previous_token": (
        "The induction head of the next layer needs this one: on repeated lists both form in "
        "the same steps."
    ),
    "alignment": (
        "The token of a row predicts the next French word. Where the two languages order words "
        "differently, the cells should leave the diagonal."
    ),
}


def watch() -> Panel:
    """The head at every checkpoint, in the player."""
    chosen = choose_training()
    if chosen is None:
        return Panel("training-watch")
    every = [] if chosen.record is None else [_every_head(chosen, chosen.record)]
    return Panel(
        "training-watch",
        look_for=_look_for(chosen),
        picture=partial(player, player_message(chosen), mount="training-player"),
        below=[*every, *unread(chosen.traces), formulas(chosen)],
        check=check_of(chosen),
    )


def player_message(chosen: TrainedHead, *, together: bool = False) -> Json:
    record, run = chosen.record, chosen.training_run
    return message(
        run,
        chosen.traces,
        archive().movement(run) if record is None else None,
        place=chosen.place,
        head=chosen.head,
        losses=() if record is None else record.losses,
        planned=None if record is None else record.steps[-1],
        probe=record is not None,
        together=together,
    )


def _every_head(chosen: TrainedHead, record: RecordedTraining) -> Panel:
    """One statistic of every head, at every step that was recorded."""
    probe = record.probes[chosen.probe]
    (own,) = (layer for layer in probe.layers if layer.place.name == chosen.place)
    known = {one.title: one for one in STATISTICS if one.name in own.statistics}
    if not known:
        return Panel("training-heads")
    titles = sorted(known, key=lambda title: known[title].name != "induction")  # that first
    title = st.selectbox("Of every head", titles, key="training-statistic", bind="query-params")
    statistic = known[title]
    layers = probe.measured(statistic.name)
    heads = [(layer.place.name, head) for layer in layers for head in range(layer.heads)]
    values = np.concatenate([layer.of(statistic.name) for layer in layers], axis=1)
    names = [head_label(head) for head in heads]
    at = heads.index((chosen.place, chosen.head))
    end = int(values[-1].argmax())
    return Panel(
        "training-heads",
        look_for=f"When does which head form? {title}, of every head: {_lowered(statistic.meaning)} "
        f"{chosen.name} is drawn strong. At the last step {names[end]} has most, {values[-1, end]:.2f}.",
        picture=heads_forming(
            record.steps, values, heads=names, chosen=at, unit=f"{title.lower()} ({statistic.unit})"
        ),
        table=Table({"step": record.steps} | dict(zip(names, values.T, strict=True))),
    )


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def formulas(chosen: TrainedHead) -> Columns:
    """The formulas of the numbers that are drawn, side by side."""
    shown = {"Largest weight of a row": SHARPEST}
    if chosen.record is None:
        shown["How far the weights moved, those of a sub-layer with its norm"] = MOVED
    masks = patterns(chosen.traces, chosen.place)
    if "previous_token" in masks:
        shown = {"The token before": BEFORE, **shown}
    if "induction" in masks:
        shown = {
            "Weight on what followed the same token earlier; R: the rows that have such a key": STRIPE,
            **shown,
        }
    return Columns(
        [Panel(name, below=[Caption(name), Formula(latex)]) for name, latex in shown.items()]
    )


def unread(traces: CheckpointTraces) -> list[Part]:
    """How much of a long text is left out."""
    if not traces.unread:
        return []
    read = len(traces.last.tokens)
    words = f"The first {read:,} tokens are read; {traces.unread:,} more are left out."
    return [partial(st.warning, words)]


def check_of(chosen: TrainedHead) -> Check:
    """For a record: what was compared in the training, and its statistics with the weights in the file."""
    record, traces = chosen.record, chosen.traces
    if record is None:
        return check_of_traces(traces)
    gap = record.gap(chosen.probe, chosen.place, chosen.head)
    return Check(
        f"Check: at all {len(record.steps)} recorded steps, attention outputs that were recomputed in the "
        f"training differ from the module's own by at most {difference(float(record.checks.max()))}. The "
        f"statistics of {chosen.name} that were measured then differ from those of its weights in the file, "
        f"which hold {len(traces.steps)} steps, by at most {difference(gap)}.",
        max(gap, float(record.checks.max())),
    )


def check_of_traces(traces: CheckpointTraces) -> Check:
    return Check(
        f"Check: at all {len(traces.steps)} checkpoints, attention outputs and norms recomputed from "
        f"what was recorded differ from the model's own by at most {difference(traces.check)}.",
        traces.check,
    )


def _look_for(chosen: TrainedHead) -> str:
    run, traces, head = chosen.training_run, chosen.traces, (chosen.place, chosen.head)
    for example in EXAMPLES:
        view = example.view
        if (view.model, view.text, view.place, view.head) == (run.key, traces.text, *head):
            return plain(f"Press Play. {example.look_for}")
    roles = [what for what in run.heads if run.head(what) == head]
    # The number that says most of this head, from the first checkpoint to the last.
    numbers = measures(traces, *head)
    named = [f"Mean {PATTERN_NAMES[what]}" for what in roles if what in PATTERN_NAMES]
    most = next((one for one in numbers if one.name in named), numbers[-1])
    sentences = [
        "Press Play, or move the slider.",
        f"{most.name}: {most.values[0]:.2f} at the first checkpoint, {most.values[-1]:.2f} at the last.",
        *(ROLES[what] for what in roles if what in ROLES and chosen.record is None),
    ]
    return plain(" ".join(sentences))


CLAIM = "claim"  # of the choice, and of the link's parameter
COMMAND = "python -m tools.training experiments"
MEASURES = {
    claims.LOSS: "loss on held-out rows, nats per token",
    ACCURACY: "share of the second half of lists that is predicted",
}
VERDICTS = {
    "supported": "These runs support the claim: in every seed the claimed order held.",
    "in part": "These runs support the claim only in part, as the table says.",
    "contradicted": "These runs contradict the claim: in no seed did the claimed order hold.",
}


def tried() -> Panel:
    """One claim: what the runs say of it, its curves, what was measured, and what is not shown."""
    titles = {claim.title: claim for claim in CLAIMS}
    title = one_of("Which claim", list(titles), CLAIM, bind="query-params")
    claim = titles[title]
    try:
        runs, by_processor = claims.shipped_runs(), claims.runs_by_processor()
    except (OSError, ValueError):
        words = "The file of the runs is missing or damaged. Reinstall the app to repair it."
        return Panel("claim", picture=partial(st.error, words))
    drawn = _drawn(claim, runs)
    columns: dict[str, object] = {}
    for one in drawn:
        columns["step"] = one.steps
        for seed, values in zip(claims.SEEDS, one.values, strict=True):
            columns[f"{one.name}, seed {seed}"] = values
    curves = Panel(
        f"claim-{title}",
        look_for=f"A line is the mean of {len(claims.SEEDS)} seeds; its band reaches from the lowest to "
        f"the highest seed. {_dashes(claim)}{_begins(drawn)}",
        picture=seed_curves(
            drawn, measure="loss, nats per token" if claim.beside else MEASURES[claim.measure]
        ),
        below=[
            partial(
                st.table, pd.DataFrame(measured(claim, runs, by_processor)).set_index("variant")
            ),
            Caption(
                f"{drawn[0].steps[-1]} steps each. Sizes and rates were chosen after trials with one seed at "
                "other settings. Processors round in different ways, and some runs magnify that. To show how "
                f"much, seed {REPEATED} was also trained without AVX instructions and with AVX-512. In the "
                "repository this command makes all runs anew, in about 20 minutes on a free core; with "
                "`ATEN_CPU_CAPABILITY=default` before it and `--resume` after it, those without AVX:"
            ),
            partial(st.code, COMMAND, language="bash"),
        ],
        table=Table(columns),
    )
    verdict = VERDICTS[claims.verdict(claim, runs)]
    said = f"**The claim:** {plain(claim.words)} **{verdict}** What they do not show: {plain(claim.limits)}"
    return Panel("claim", below=[said, curves])


def measured(claim: Claim, runs: Runs, by_processor: Runs) -> list[dict[str, str]]:
    """What was measured: a row for each variant, with each comparison of the claim."""
    rows = []
    for name, variant in claim.variants.items():
        end = claims.ending(claim, name, runs)
        low, high = end.spread
        row = {"variant": plain(name), "at the last step": f"{end.mean:.3f}"}
        row["seeds"] = f"{low:.3f} to {high:.3f}"
        low, high = claims.ending(claim, name, by_processor).spread
        row[f"seed {REPEATED}, by processor"] = f"{low:.3f} to {high:.3f}"
        if claim.beside:
            own = claims.ending(claim, name, runs, claim.beside).mean
            row["on the rows it learned from"] = f"{own:.3f}"
        row["claimed order"] = plain("; ".join(_compared(claim, name, runs, by_processor)) or "–")
        row["numbers that are learned"] = f"{claims.parameters(runs, variant):,}"
        rows.append(row)
    return rows


def _compared(claim: Claim, name: str, runs: Runs, by_processor: Runs) -> Iterator[str]:
    """How often a variant ended better than those that it should beat."""
    processors = len(by_processor[claim.variants[name]])
    how = "higher" if claim.measure == ACCURACY else "lower"
    for pair in claim.better:
        if pair[0] == name:
            won = claims.wins(claim, pair, runs)
            also = claims.wins(claim, pair, by_processor)
            yield (
                f"ended {how} than “{pair[1]}” in {won} of {len(claims.SEEDS)} seeds "
                f"and on {also} of {processors} processors"
            )


def _drawn(claim: Claim, runs: Runs) -> list[Seeds]:
    drawn = []
    for name, (colour, dash) in _looks(claim).items():
        curves = claims.curves(runs, claim.variants[name], claim.measure)
        drawn.append(Seeds(name, *curves, colour, dash))
        if claim.beside:
            beside = claims.curves(runs, claim.variants[name], claim.beside)
            drawn.append(Seeds(f"{name}, its own rows", *beside, colour, "dash"))
    return drawn


def _begins(drawn: list[Seeds]) -> str:
    begin = first_drawn(drawn)
    if not begin:
        return ""
    step = drawn[0].steps[begin]
    return f"The picture begins at step {step}; earlier numbers are in “The numbers as a table”."


def _in_pairs(claim: Claim) -> bool:
    """Whether no variant is compared twice, and dashes are free to tell the two of a pair apart."""
    compared = {name for pair in claim.better for name in pair}
    return len(compared) == 2 * len(claim.better) and not claim.beside


def _looks(claim: Claim) -> dict[str, tuple[str, str]]:
    """Colour and dashes of each variant: one colour a pair, or one a variant."""
    if not _in_pairs(claim):
        return {
            name: (colour, "solid") for name, colour in zip(claim.variants, CURVES, strict=False)
        }
    return {
        name: (colour, dash)
        for pair, colour in zip(claim.better, CURVES, strict=False)
        for name, dash in zip(pair, ("solid", "dash"), strict=True)
    }


def _dashes(claim: Claim) -> str:
    if claim.beside:
        return "Solid: the loss on held-out rows; dashed: on the rows it learns from. "
    return (
        "Solid: what should be better; dashed: what it is compared with. "
        if _in_pairs(claim)
        else ""
    )


RECURRENT = "training-recurrent"
GRU = {
    "gates": (
        r"r_t = \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr})",
        r"z_t = \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz})",
    ),
    "states": (
        r"n_t = \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn}))",
        r"h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}",
    ),
}
GRADIENT = r"g_i = \left\lVert \frac{\partial\, \text{logits}_n}{\partial\, x_i} \right\rVert"


def beside_recurrent() -> Panel:
    """Path, gradient and accuracy of a GRU and of attention."""
    text = text_box(f"{RECURRENT}-text", LIST, listed=True)
    try:
        with engine().turn():
            both = compare(text)
    except ValueError as refusal:
        return Panel(f"{RECURRENT}-picture", picture=partial(st.error, plain(str(refusal))))
    count = len(both.tokens)
    start = stop = 0
    if count > 1:
        start, stop = st.slider(
            "Two tokens, by position", 0, count - 1, (0, count - 1), key=f"{RECURRENT}-ends"
        )
    apart = stop - start
    gradients = {each.network.name: each.gradient for each in both.both}
    labels = [token.text for token in both.tokens]
    unread = f"The first {count:,} tokens are read; {both.unread:,} more are left out."
    largest = " and at ".join(
        f"token {place}, {labels[place]} ({each.network.name})"
        for each in both.both
        for place in (int(each.gradient.argmax()),)
    )
    picture = Panel(
        f"{RECURRENT}-picture",
        look_for="A GRU is a recurrent network: it reads one token after the other, and one vector keeps "
        f"what it has read. It computes {count} states in turn, one for each token; attention computes all "
        f"{count} tokens of a layer at once. From the first chosen token to the second the GRU takes "
        f"{apart} of its steps, attention {min(apart, 1)}. The gradient of the last output is largest at "
        f"{plain(largest)}; its scale is logarithmic. Tokens are counted from 0.",
        picture=paths_and_gradients(labels, start, stop, gradients),
        below=[
            *([partial(st.warning, unread)] if both.unread else []),
            partial(st.table, _compared_networks(both, apart)),
            Caption(
                "On your list a token is scored where the same pair of tokens stood earlier. On fresh lists: "
                "16 random symbols, repeated once; measured on the shipped weights."
            ),
            Caption("The state of the GRU, step by step, and the gradient that is drawn"),
            Columns([Panel(name, below=list(map(Formula, lines))) for name, lines in GRU.items()]),
            Formula(GRADIENT),
        ],
        check=Check(
            "Check: the states of the GRU, computed with this formula one step after the other, differ from "
            f"PyTorch's by at most {difference(both.difference)}. Both networks learned from the same rows.",
            both.difference,
        ),
        table=Table(
            {"token": numbered_labels(labels)}
            | {f"gradient, {name}": lengths for name, lengths in gradients.items()}
        ),
    )
    return Panel(RECURRENT, below=[_prediction(both), picture])


def _prediction(both: Comparison) -> str:
    """Who predicts more, first on the reader's list, then on fresh ones."""
    attention, gru = both.both
    fresh = " against ".join(f"{each.network.repeat_accuracy:.0%}" for each in both.both)
    right = "On your list no pair of tokens is repeated, so there is nothing to predict"
    if both.scored:
        right = (
            f"On your list attention predicts {attention.right} of {both.scored} tokens that can be copied, "
            f"the GRU {gru.right} of {both.scored}"
        )
    return f"**{right}; on fresh lists, each repeated once, {fresh}.**"


def _compared_networks(both: Comparison, apart: int) -> pd.DataFrame:
    layers = {"attention": "2 layers, each at once", "GRU": f"{len(both.tokens)} states in turn"}
    path = {"attention": min(apart, 1), "GRU": apart}
    columns = {
        each.network.name: {
            "parameters": f"{each.network.parameters:,}",
            "computed in": layers[each.network.name],
            "steps between the two": str(path[each.network.name]),
            "right on fresh repeated lists": f"{each.network.repeat_accuracy:.1%}",
            "right on your list": f"{each.right} of {both.scored}",
        }
        for each in both.both
    }
    return pd.DataFrame(columns)
