"""The model writes: in the background, with a key–value cache, shown while it grows. Token by token: what it
could say, what was chosen, and what it read for it; the time of each step; and beam search beside greedy."""

import html
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.cost.timing import machine
from model.analysis.run_comparison import rounding
from model.analysis.tokens.live_writing import (
    BeamSearch,
    BeamStep,
    Choice,
    Continuation,
    GrowingRows,
    Writing,
    beam_search,
    live_writing,
)
from model.analysis.tokens.prediction import Sampling, log_probabilities
from model.serving.engine import Request
from model.trace.blocks import block_of, of_query
from model.trace.records import Token
from model.trace.trace import Trace
from viz.elements.one_of import one_of, one_step
from viz.elements.plot import plot
from viz.figures.bars import weights_row
from viz.figures.curves import TokenLine, token_lines
from viz.figures.diagrams import DrawnPath, Leaf, beam_tree
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.names import sublayer_name
from viz.notation.numbers import (
    certain,
    counted,
    difference,
    power_of_ten,
    probability,
    rounded,
    settled,
    significant,
)
from viz.notation.theme import KEY, MASKED, PROBABILITY, rgba
from viz.shell import page
from viz.shell.background import Offer, Passes, is_stopped, passes_or_offer
from viz.shell.controls import choose_layer_and_head
from viz.shell.panel import (
    Caption,
    Check,
    Columns,
    Formula,
    Panel,
    Table,
    below_controls,
)
from viz.state.look import Look, labels_of, traced
from viz.state.session import current
from viz.views.prediction.next_token import WHOLE, bars_of, listed_ids, row_of, sampling_controls
from viz.views.tokens.chat import offer_chat

SHOWN = 160  # tokens of the text so far: the end of a long one
_STYLE = "margin:0; font-size:1.15rem; line-height:1.8; overflow-wrap:anywhere"


def growing(look: Look, tokens: tuple[Token, ...], run: Passes[Writing]) -> None:
    """A run under way: its text so far and, of the chosen head, its matrix."""
    text = run.found
    if text is None or not text.steps:
        return
    given, new = look.model.begun(tokens), look.model.tokenizer.named(text.ids)
    so_far(given, new)
    _matrix(look, text.rows, tokens, (*given, *new))


def so_far(given: Sequence[Token], new: Sequence[Token]) -> None:
    """The given text, what was written after it marked, and its last token underlined."""
    st.html(marked_text(given, new))


def marked_text(given: Sequence[Token], new: Sequence[Token]) -> str:
    """The same as HTML. Words of a closed list carry no spaces of their own, so they get some."""
    spaced = not any(token.raw for token in (*given, *new))
    shown = max(SHOWN - len(new), 1)
    start = "… " if len(given) > shown else ""
    before = " " * (spaced and len(new) > 1)
    mark = f"background:{rgba(PROBABILITY, 0.28)};color:inherit;border-radius:3px"
    return (
        f'<p style="{_STYLE}">{start}{_joined(given[-shown:], spaced)}{" " * spaced}'
        f'<mark style="{mark}">{_joined(new[:-1], spaced)}{before}'
        f"<b><u>{_joined(new[-1:], spaced)}</u></b></mark></p>"
    )


def _matrix(
    look: Look, rows: GrowingRows, source: Sequence[Token], written: Sequence[Token]
) -> None:
    """The rows so far of the chosen layer and head; of the first layer where the chosen one has none."""
    names = [name for name in look.model.attention_names if name.startswith("decoder")]
    name = look.place if look.place in names else names[0]
    read = source if name.endswith("cross") else written
    if rows.is_full or block_of(len(written), len(read)) != (1, 1):
        st.caption("The matrix of so long a text is drawn when the text is written.")
        return
    weights = rows.weights(name, current().head)
    if weights is None:
        return
    queries, keys = weights.shape
    future = None if name.endswith("cross") else ~np.tri(queries, keys, dtype=bool)
    figure = heatmap(
        weights,
        rows=Axis("query", [token.text for token in written[:queries]]),
        columns=Axis("key", [token.text for token in read[:keys]]),
        quantity="weight",
        blocked=future,
        words=(),
        square=True,
    )
    plot(figure, "prediction-growing")
    head = min(current().head, look.model.layer(name).heads - 1)
    st.caption(f"{sublayer_name(name)}, head {head}: each written token adds a row.")


def _joined(tokens: Sequence[Token], spaced: bool) -> str:
    """Tokens as running text: a leading space is a space, what cannot be seen is spelled."""
    texts = [token.text for token in tokens]
    return (" " if spaced else "").join(
        " " + html.escape(token_label(text[1:]))
        if text.startswith(" ") and text.strip()
        else html.escape(token_label(text))
        for text in texts
    )


LENGTHS = (16, 32, 64, 128)
LIKELIEST, DRAW = "the most likely token", "a token drawn at random"


def room_of(look: Look) -> int:
    """Steps that the model's context has room for."""
    return look.model.config.n_ctx - len(look.model.begun(look.trace.tokens)) + 1


def choice_of(look: Look, *, draws: bool) -> Choice:
    """The likeliest token, or one drawn with a seed under the reader's temperature, top-k and top-p."""
    if not draws:
        return Choice(Sampling())
    with st.popover("Temperature, top-k, top-p and seed"):
        sampling, _ = sampling_controls(look.model.config.d_vocab)
        seed = st.number_input("Seed", 0.0, 9_999.0, value=0.0, step=1.0, format=WHOLE,
                               key="prediction-seed", bind="query-params")  # fmt: skip
    return Choice(sampling, int(seed))


def tokens_to_write(look: Look) -> int:
    """How many tokens are written: no more than the context has room for."""
    asked = st.select_slider(
        "Tokens to write", LENGTHS, key="prediction-length", bind="query-params"
    )
    return min(int(asked), room_of(look))


def writing(look: Look, choice: Choice, steps: int, *, compared: bool = False) -> Writing | None:
    """The text once it is written, or as far as it was before it was stopped, from its first token on; the
    text so far and the growing matrix while it is under way.

    Args:
        look: the text that is written on.
        choice: how a token is chosen at each step.
        steps: tokens to write.
        compared: whether each step is run without the cache too.
    """
    model, tokens = look.model, look.trace.tokens
    passes = steps * (len(tokens) + steps) if compared else len(tokens) + steps
    twice = ", each with the cache and without it" if compared else ""
    offer = Offer(
        "prediction-compared" if compared else "prediction-writing",
        f"The model writes {counted(steps, 'token')}{twice}.",
        "Measure" if compared else "Write",
        "tokens",
        "written",
        steps,
        passes * model.parameter_count,
    )
    key = key_of(look.request, choice, steps, compared=compared)
    run = passes_or_offer(
        key,
        lambda run: live_writing(
            model, tokens, choice, steps=steps, compared=compared, turn=run.turn
        ),
        offer,
        partial(growing, look, tokens),
    )
    if run is None or not (run.ended.is_set() or is_stopped(offer, key)):
        return None
    return run.found if run.found is not None and run.found.steps else None


def key_of(request: Request, choice: Choice, steps: int, *, compared: bool = False) -> Hashable:
    """What the passes of a text are known by."""
    return "writing", request, choice, steps, compared


def choose_step(look: Look, text: Writing, key: str, first: int = 1) -> int:
    """The step shown, from 1; it is `first` again whenever the text or the model is another.

    key: of the session state, which holds the step.
    """
    given, last = f"{key}-of", len(text.steps)
    if st.session_state.get(given) != look.request or key not in st.session_state:
        st.session_state[given] = look.request
        st.session_state[key] = min(first, last)
    return one_step(key, last, partial(_go, key), key) if last > 1 else 1


def _go(key: str, by: int) -> None:
    st.session_state[key] += by


def say_end(look: Look, text: Writing, step: int, steps: int) -> None:
    """Says why no step follows. steps: how many were asked for."""
    last = len(text.steps)
    if last < text.total and text.done == text.total:
        st.info(f"The model ended its text at step {last}.")
    elif step == last == steps == room_of(look):
        n_ctx = look.model.config.n_ctx
        st.info(f"The text now fills the model's context of {n_ctx:,} tokens.")


def request_after(look: Look, ids: tuple[int, ...]) -> Request:
    """The pass over the text and what was written after it."""
    target = "" if look.model.config.shape == "encoder-decoder" else None
    return replace(look.request, target=target, continued=ids)


WITH, WITHOUT = "with the cache", "without it"


def step_times(look: Look, choice: Choice, count: int) -> Panel:
    """Both times of each step, and how far their logits are apart. count: tokens to write."""
    text = writing(look, choice, count, compared=True)
    if text is None:
        return Panel("prediction-step-times")
    cached = [1_000 * step.seconds for step in text.steps]
    again = [1_000 * (step.without or 0.0) for step in text.steps]
    tokens = [token.text for token in look.model.tokenizer.named(text.ids)]
    lines = (TokenLine(WITHOUT, again, MASKED, "dash"), TokenLine(WITH, cached, KEY))
    apart = max(step.apart or 0.0 for step in text.steps)
    words = ""
    if len(cached) > 1:
        words = (
            f"The first step reads the whole text in both. The {counted(len(cached) - 1, 'step')} after it "
            f"take {sum(cached[1:]):,.0f} ms with the cache and {sum(again[1:]):,.0f} ms without it. "
        )
    return Panel(
        "prediction-step-times",
        picture=token_lines(tokens, lines, unit="milliseconds of the step", zero=True),
        below=[
            Caption(
                words
                + plain(
                    f"Each pass ran once, on {machine()}, which others may be using, so single times vary. "
                    "Waiting for a turn is not counted."
                )
            )
        ],
        check=Check(
            f"Check: both ways give the same logits; over {counted(len(cached), 'step')} they differ by at "
            f"most {difference(apart)}.",
            apart,
        ),
        table=Table(
            {
                "written": list(map(token_label, tokens)),
                "tokens read by then": [step.read for step in text.steps],
                "computed with the cache": [step.new for step in text.steps],
                f"{WITH}, ms": cached,
                f"{WITHOUT}, ms": again,
                "largest difference of logits": [step.apart for step in text.steps],
            },
            decimals=2,
            formats={"largest difference of logits": "%.1e"},
        ),
    )


GREEDY = r"y_t = \mathrm{arg\,max}_i\; p_i(y_1, \ldots, y_{t-1})"
DRAWN = r"y_t \sim p(y_1, \ldots, y_{t-1})"
BEAMS = "the best beams"
LISTED = 6


def token_by_token(look: Look) -> Panel:
    """Forward and back through what the model writes, or the tree of the best beams."""
    ways = (LIKELIEST, DRAW, BEAMS)
    how = one_of("At each step, take", ways, "prediction-how", bind="query-params")
    if how == BEAMS:
        return best_beams(look)
    choice = choice_of(look, draws=how == DRAW)
    count = tokens_to_write(look)
    text = writing(look, choice, count)
    if text is None:
        return Panel("prediction-step")
    step = choose_step(look, text, "prediction-step")
    ids = text.ids[:step]
    request = request_after(look, ids[:-1])
    run = traced(request)
    read = run.tokens_of("decoder")
    row = row_of(run, run.require_prediction().after(-1), choice.sampling)
    bars = listed_ids(row, LISTED, ids[-1])
    given = read[: len(read) - len(ids) + 1]
    grows = " Go to the next step to see it grow." * (step < len(text.steps))
    reading = _reading(run, ids)
    return Panel(
        "prediction-step",
        look_for="Each step adds the underlined token. The second picture shows which tokens the model "
        "attended to when it predicted that token.",
        below=[
            partial(so_far, given, look.model.tokenizer.named(ids)),
            partial(say_end, look, text, step, count),
            Columns([bars_of(look, row, "prediction-step-bars", bars, ids[-1]), reading]),
            Formula(GREEDY if choice.seed is None else DRAWN),
            partial(offer_chat, look),
            "**The matrix of the text so far.** Each token that is read adds a row below and a column on the "
            f"right. The rows above stay as they were: no token attends to a later one.{grows}",
            partial(page.explored, Look(request)),
        ],
    )


def _reading(run: Trace, ids: tuple[int, ...]) -> Panel:
    """What the last token read, in a layer and head of the reader's."""
    names = [one.name for one in run.attention if one.stack == "decoder"]
    attention, head = choose_layer_and_head(run, names)
    weights = of_query(attention, attention.sizes[1] - 1).weights(head)[0]
    queries, texts = labels_of(run, attention)
    total = f"{weights.sum():.4f}"
    if attention.sinks is not None:
        taken = attention.sink_weights(head)[-1]
        total += f"; with the sink's {taken:.4f} that is {weights.sum() + taken:.4f}"
    written = 0 if attention.kind == "cross" else len(ids) - 1
    keys, last = list(map(token_label, texts)), token_label(queries[-1], 24)
    return Panel(
        "prediction-step-reading",
        picture=weights_row(weights, texts, written=written),
        below=[
            Caption(
                f"The row of the last token: its weights on {counted(len(texts), 'token')} sum to {total}."
            )
        ],
        check=Check(
            "Check: attention outputs and norms of this pass, recomputed, differ from the model's own by at "
            f"most {difference(run.check())}.",
            run.check(),
        ),
        table=Table({"query": last, "key": keys, "weight": weights}),
    )


LOG_PROBABILITY = r"\ln p(y_1, \ldots, y_n) = \sum_t \ln p(y_t \mid y_1, \ldots, y_{t-1})"
FEWEST, MOST, STEPS = 2, 5, 8
LARGE = 1e6  # a ratio from here on is written as a power of ten
HUNDREDTH = 5e-3  # of a total in the tree: two decimals


def best_beams(look: Look) -> Panel:
    """Beam search: the tree, as soon as every step is done."""
    room = room_of(look)
    beams = st.slider("Beams", FEWEST, MOST, value=3, key="prediction-beams", bind="query-params")
    steps = st.slider(
        "Steps of the search", 1, STEPS, value=4, key="prediction-beam-steps", bind="query-params"
    )
    count = min(steps, room)
    offer = Offer(
        "prediction-search",
        f"The search runs the model on up to {beams + 1} texts at each of its {counted(count, 'step')}.",
        "Search",
        "steps",
        "done",
        count,
        count * (beams + 1) * (len(look.trace.tokens) + count) * look.model.parameter_count,
    )
    with below_controls():
        if steps > room:
            st.info(f"The model's context has room for {counted(room, 'step')}.")
    run = passes_or_offer(
        ("beams", look.request, beams, count),
        lambda run: beam_search(look.model, look.trace, beams=beams, steps=count, turn=run.turn),
        offer,
    )
    if run is None or not run.complete or (search := run.found) is None:
        return Panel("prediction-beams-tree")
    error = rounding(look.trace, look.trace.require_prediction().after(-1))
    rows = [_rows(step) for step in search.steps]
    leaves = _leaves(look, rows, search, error)
    last = look.model.begun(look.trace.tokens)[-1]
    best, greedy = (_path(rows, search, one) for one in (search.best, search.greedy))
    return Panel(
        "prediction-beams-tree",
        look_for="The thick line is the best text of the beams, the dashed line the greedy one.",
        picture=beam_tree(leaves, last.text, best=best, greedy=greedy),
        below=[
            _compared(look, search, error * count, beams),
            Caption(
                "Below each token: its probability, and the sum of the log-probabilities so far. A text that "
                f"ended keeps its place and its sum. {_check(look, search.best)}"
            ),
            Formula(LOG_PROBABILITY),
        ],
        table=Table(
            {
                "step": [leaf.step for leaf in leaves],
                "row": [leaf.row + 1 for leaf in leaves],
                "token": [token_label(leaf.token) for leaf in leaves],
                "continues row": [leaf.before + 1 if leaf.step > 1 else None for leaf in leaves],
                "probability": [leaf.probability for leaf in leaves],
                "sum of log-probabilities": [leaf.total for leaf in leaves],
                "fate": [leaf.kind for leaf in leaves],
            },
            decimals=settled(error * count),
            formats={"probability": f"%.{significant(error * count)}g"},
        ),
    )


def _compared(look: Look, search: BeamSearch, error: float, beams: int) -> str:
    """Which of the two texts is more probable. error: how far rounding may move a total."""
    best, greedy = search.best, search.greedy
    words, others = (
        " ".join(bold_token(token.text) for token in look.model.tokenizer.named(text.ids))
        for text in (best, greedy)
    )
    total, other = (certain(text.total, error) for text in (best, greedy))
    if best.ids == greedy.ids:
        return f"Beam search and greedy found the same text, {words}, with log-probability {total}."
    sentence = (
        f"Beam search found {words} with log-probability {total}, greedy {others} with {other}."
    )
    apart = best.total - greedy.total
    if abs(apart) <= 2 * error:
        return f"{sentence} They are equally probable, as far as single precision can tell."
    ratio = np.exp(abs(apart))
    times = rounded(ratio, ratio * 2 * error, 2) if ratio < LARGE else power_of_ten(ratio, 1)
    if apart > 0:
        return f"{sentence} The text of beam search is {times} times as probable."
    lost = next(
        number
        for number, step in enumerate(search.steps, 1)
        if step.greedy.ids not in [text.ids for text in step.kept]
    )
    return (
        f"{sentence} Here greedy's is {times} times as probable: at step {lost} its beginning was not among "
        f"the best {beams}, so the search dropped it."
    )


BeamRow = dict[tuple[int, ...], int]  # ids of a text -> its row at a step


def _rows(step: BeamStep) -> BeamRow:
    """What was kept, what was dropped, and then the greedy text where it is neither."""
    texts = dict.fromkeys(one.ids for one in (*step.kept, *step.dropped, step.greedy))
    return {ids: row for row, ids in enumerate(texts)}


def _path(rows: Sequence[BeamRow], search: BeamSearch, text: Continuation) -> DrawnPath:
    """Where the beginnings of a text lie, up to its last token."""
    length = len(text.ids)
    path = [(step, rows[step - 1][text.ids[:step]]) for step in range(1, length + 1)]
    after = range(length + 1, len(search.steps) + 1)
    return [(0, 0), *path, *((step, rows[step - 1][text.ids]) for step in after)]


def _leaves(look: Look, rows: Sequence[BeamRow], search: BeamSearch, error: float) -> list[Leaf]:
    """error: how far rounding may move a log-probability."""
    leaves = []
    for number, (step, places) in enumerate(zip(search.steps, rows, strict=True)):
        kept = {text.ids for text in step.kept}
        dropped = {text.ids for text in step.dropped}
        texts = {text.ids: text for text in (*step.kept, *step.dropped, step.greedy)}
        above = rows[number - 1] if number else {}
        for ids, row in places.items():
            (token,) = look.model.tokenizer.named(ids[-1:])
            share, total = float(np.exp(texts[ids].log_probability)), texts[ids].total
            leaves.append(
                Leaf(
                    step=number + 1,
                    row=row,
                    kind="kept" if ids in kept else "dropped" if ids in dropped else "greedy",
                    token=token.text,
                    probability=share,
                    total=total,
                    words=(
                        probability(share, error, 3),
                        certain(total, max(error * len(ids), HUNDREDTH)),
                    ),
                    # the row of the text that it continues, or of itself where it ended earlier
                    before=above.get(ids, above.get(ids[:-1], 0)),
                )
            )
    return leaves


def _check(look: Look, best: Continuation) -> str:
    """The best text, read in one recorded pass of its own, beside the sum of the search."""
    prediction = traced(request_after(look, best.ids[:-1]), passing=True).require_prediction()
    end = prediction.shape[0]
    rows = log_probabilities(prediction.rows(end - len(best.ids), end))
    apart = abs(float(rows[np.arange(len(best.ids)), list(best.ids)].sum()) - best.total)
    return (
        "Check: one pass over the best text alone gives the same sum; they differ by at most "
        f"{difference(apart)}."
    )
