"""The questions that ask for a guess, each answered by a changed run of the visitor's sentence: what is to be
seen before, what becomes of it, and which of the choices of experiments.toml that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from model.analysis.run_comparison import losses, row_statistics
from model.analysis.tokens.prediction import expectation
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.trace.records import Attention
from model.trace.trace import Trace
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed
from viz.figures.bars import next_tokens
from viz.figures.cells import panels
from viz.figures.curves import before_and_after
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import counted, fixed
from viz.notation.theme import PROBABILITY
from viz.notation.words import sentences_of
from viz.shell.background import UNASKED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table, refusals
from viz.state.look import traced
from viz.views.experiments.examples import TriedRun
from viz.views.experiments.moving_bars import moving_bars

say = sentences_of("experiments.guesses")

LOSS = r"\text{loss} = -\frac{1}{n-1} \sum_{t} \ln p(\text{token}_{t+1} \mid \text{tokens} \le t)"
ENTROPY = (
    r"w_i = \text{softmax}\!\left(\frac{q_i K^\top}{\sqrt{d}}\right) \qquad"
    r" H_i = -\sum_j w_{ij} \ln w_{ij}"
)
APART = (
    r"\text{apart}_t = \frac{\lVert x_t^{\text{one order}} - x_t^{\text{the other}} \rVert}"
    r"{\lVert x_t^{\text{one order}} \rVert}"
)
EMPTY_ROW = r"w_i = \text{softmax}(-\infty, \ldots, -\infty) = \frac{0}{0}"
SINK = r"w_{ij} = \frac{e^{s_{ij}}}{e^{\,\text{sink}} + \sum_l e^{s_{il}}}"
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
AS_GOOD = 0.05  # nats by which the loss may rise
MAPPED = 64  # tokens of a map that stands beside another
LISTED = 6  # next tokens
LABEL = 18  # characters of a token


@dataclass(frozen=True)
class TrialResult:
    """right: the choice that holds, by number. moved: the number before and after, as printed. unit: what it
    is. words: in Markdown."""

    right: int
    moved: tuple[str, str]
    unit: str
    words: str


@dataclass(frozen=True)
class Trial:
    """What is shown. change: what the answer changes in the model. verdict: None before the guess."""

    panel: Panel
    change: Intervention
    verdict: TrialResult | None = None


TrialOf = Callable[[TriedRun, bool], Trial]  # the run of the visitor, and whether the guess is made


def no_mask(look: TriedRun, answered: bool) -> Trial:
    """How sure the model is of each word, and what becomes of it without the mask."""
    if all(one.kind != "causal" for one in look.trace.attention):
        raise NotShownError(f"{look.title} hides no token from another: it has no such mask.")
    return _of_sureness(look, Intervention(mask="none"), answered, "without the mask")


def without_head(look: TriedRun, answered: bool) -> Trial:
    """The same without the chosen head."""
    head = look.place, look.head
    name = head_label(head)
    return _of_sureness(look, Intervention(ablated=frozenset({head})), answered, f"without {name}")


def _of_sureness(look: TriedRun, change: Intervention, answered: bool, how: str) -> Trial:
    tokens, before = _predicted(look)
    sure = np.exp(-before)
    if not answered:
        return Trial(_sureness(look, tokens, sure), change)
    changed = _changed(look, change)
    after = losses(changed)
    now = np.exp(-after)
    differs = [fixed(was, 2) != fixed(is_now, 2) for was, is_now in zip(sure, now, strict=True)]
    most = int((np.abs(now - sure) * (differs if any(differs) else 1)).argmax())
    moved = fixed(before.mean(), 2), fixed(after.mean(), 2)
    words = say(
        "before_now",
        look=look.title,
        choice="surer" if now[most] > sure[most] else "less sure",
        tokens=_named(tokens, most + 1),
        how=how,
        most_sure=sure[most],
        most_now=now[most],
    )
    way = _way(before.mean(), after.mean())
    if not any(differs):
        words = say("word_probability_changes", how=how)
    elif way == (0 if now[most] > sure[most] else 2):  # the other way than this word's
        words = say("over_words_loss", words=words[:-1], way_value=("rises", "", "falls")[way])
    verdict = TrialResult(way, moved, say("nats_per_token_mean"), words)
    saved = partial(
        before_and_after, tokens, sure, now, unit=_SURE, colour=PROBABILITY, first=1, top=1.05
    )
    table = {"token": numbered_labels(tokens)[1:], "before": sure, "after": now}
    panel = _bars(
        "sureness", [look.trace, changed], tokens[1:], (sure, now), table, unit=_SURE, most=most
    )
    return Trial(replace(panel, beside=[Formula(LOSS)], saved=saved), change, verdict)


_SURE = say("sure_word")


def _predicted(look: TriedRun) -> tuple[list[str], np.ndarray]:
    """The tokens of the run, and -ln p of each but the first."""
    if look.trace.prediction is None:
        raise NotShownError(f"{look.title} predicts no next token, so there is no loss to look at.")
    tokens = [token.text for token in look.trace.tokens_of("decoder")]
    if len(tokens) < 2:
        raise NotShownError("A single token has no next one to predict. Type a longer sentence.")
    return tokens, losses(look.trace)


def _sureness(look: TriedRun, tokens: list[str], sure: np.ndarray) -> Panel:
    """The unchanged run."""
    top, low = int(sure.argmax()), int(sure.argmin())
    words = say(
        "sure_word_unchanged",
        look=look.title,
        tokens=_named(tokens, top + 1),
        top_sure=sure[top],
        named_tokens=_named(tokens, low + 1),
        low_sure=sure[low],
    )
    table = {"token": numbered_labels(tokens)[1:], _SURE: sure}
    panel = _bars("sureness", [look.trace], tokens[1:], (sure,), table, unit=_SURE, most=top)
    beside: list[Part] = [Formula(LOSS), say("loss_sentence_nats", value=-np.log(sure).mean())]
    return replace(panel, look_for=words, beside=beside)


def _bars(
    name: str,
    runs: Sequence[Trace],
    tokens: Sequence[str],
    numbers: Sequence[Sequence[float] | np.ndarray],
    table: Mapping[str, object],
    **how: Any,
) -> Panel:
    """The numbers of tokens in one run, or in both. how: as `moving_bars`."""
    return Panel(
        f"experiment-{name}" + ("-changed" if len(numbers) > 1 else ""),
        picture=partial(moving_bars, _labels(tokens), *map(list, numbers), **how),
        check=_check(*runs),
        table=Table(table),
    )


def hidden_word(look: TriedRun, answered: bool) -> Trial:
    """The next token, and what becomes of it where no token may attend to one word."""
    if look.trace.prediction is None:
        raise NotShownError(f"{look.title} predicts no next token.")
    texts = [token.text for token in look.trace.tokens]
    at = one_listed(
        "Hidden word",
        numbered_labels(texts, 24),
        f"experiment-hidden-{hash(tuple(texts))}",
        first=min(look.cell[1], len(texts) - 1),
    )
    change = Intervention(hidden=frozenset({at}))
    last = _token(look.trace.tokens_of("decoder")[-1].text)
    ours = look.trace.prediction.after(-1)
    changed = _changed(look, change) if answered else look.trace
    likely = expectation(ours, changed.require_prediction().after(-1), LISTED)
    names = [token.text for token in look.model.target_tokenizer.named(likely.ids)]
    labels, unit = list(map(token_label, names)), say("probability_next_token")
    beside = [Caption(say("hidden_token_masked"))]
    if not answered:
        order = np.argsort(likely.before)[::-1]
        words = say(
            "after_comes_word",
            last=last,
            first=_token(names[order[0]]),
            before=max(likely.before),
            texts=_token(texts[at], at),
        )
        sorted_names, sorted_shares = ([of[one] for one in order] for of in (names, likely.before))
        table = {"next token": labels, "probability": likely.before}
        panel = _bars("next", [look.trace], sorted_names, (sorted_shares,), table, unit=unit)
        return Trial(replace(panel, look_for=words, beside=beside), change)
    was, now = int(np.argmax(likely.before)), int(np.argmax(likely.after))
    moved = fixed(likely.before[was], 2), fixed(likely.after[was], 2)
    was_said = f"probability of {token_label(names[was])},"
    then = f"{_token(names[now])} comes first, with {fixed(likely.after[now], 2)}."
    verdict = TrialResult(
        int(was != now),
        moved,
        say("most_probable_next", was_said=was_said),
        f"With {_token(texts[at], at)} hidden, {then}",
    )
    both = list(likely.before), list(likely.after)
    table = {"next token": labels, "before": likely.before, "after": likely.after}
    panel = _bars("next", [look.trace, changed], names, both, table, unit=unit, most=was)
    return Trial(
        replace(panel, beside=beside, saved=partial(next_tokens, labels, *both)), change, verdict
    )


def no_scaling(look: TriedRun, answered: bool) -> Trial:
    """A head's map and its entropy, and both without the division."""
    own = _mapped(look)
    if all(one.scale == 1 for one in look.trace.attention):
        raise NotShownError(f"{look.title} does not divide its scores.")
    change, head = Intervention(scale=1.0), min(look.head, own.heads - 1)
    even, most = _spread(look.trace)
    if not answered:
        panel = _map(
            look,
            {"unchanged": own},
            head,
            say(
                "evenly_spreads_weight",
                head_label=head_label((own.name, head)),
                even=even,
                most=most,
            ),
            [Formula(ENTROPY)],
        )
        return Trial(panel, change)
    changed = _changed(look, change)
    evenly, largest = _spread(changed)
    moved = fixed(even, 2), fixed(evenly, 2)
    verdict = TrialResult(
        _way(even, evenly),
        moved,
        say("nats_mean_entropy"),
        say(
            "largest_weight_row",
            most=most,
            largest=largest,
            of_head=_of_head(own, changed.find(own.name), head),
        ),
    )
    pair = {"unchanged": own, "not divided": changed.find(own.name)}
    panel = _map(look, pair, head, "", [Formula(ENTROPY)], changed)
    return Trial(panel, change, verdict)


def _of_head(before: Attention, after: Attention, head: int) -> str:
    """The same of the head that is drawn, which may go the other way than most."""
    was, now = (
        float((rows := row_statistics(one)).entropy[head][~rows.empty[head]].mean())
        for one in (before, after)
    )
    name = head_label((before.name, head))
    return say("alone_drawn_mean", name=name, was=was, now=now)


def _spread(trace: Trace) -> tuple[float, float]:
    """Mean entropy and mean largest weight of all rows that read something."""
    rows = [row_statistics(one) for one in trace.attention]
    entropy, largest = (
        np.concatenate([getattr(one, name)[~one.empty] for one in rows])
        for name in ("entropy", "largest")
    )
    return float(entropy.mean()), float(largest.mean())


def row_without_keys(look: TriedRun, answered: bool) -> Trial:
    """A head's map, and the row of the chosen token where all its keys are masked."""
    own = _mapped(look)
    head, (_, queries, keys) = min(look.head, own.heads - 1), own.sizes
    row = min(look.cell[0], queries - 1)
    blocked = frozenset((row, key) for key in range(keys))
    change = Intervention(blocked=blocked, only=frozenset({own.name}))
    token = _token(look.trace.queries_of(own)[row].text, row)
    name = head_label((own.name, head))
    weights = own.weights(head)[row]
    if not answered:
        panel = _map(
            look,
            {"unchanged": own},
            head,
            say("row_weights_sum", token=token, name=name, float=float(weights.sum())),
            [Formula(EMPTY_ROW)],
            row=row,
        )
        return Trial(panel, change)
    changed = _changed(look, change)
    after = changed.find(own.name)
    emptied = after.weights(head)[row]
    right = 2 if np.isnan(emptied).any() else 0 if emptied.any() else 1
    if right == 0 and not np.allclose(emptied, emptied[0]):
        raise NotShownError(f"In {look.title} such a row is neither uniform nor zero.")
    moved = fixed(float(weights.sum()), 2), "NaN" if right == 2 else fixed(float(emptied.sum()), 2)
    words = {
        0: say("keys_get_same_share", emptied=len(emptied)),
        1: say("0_0_not_computed"),
        2: say("0_0_computed_not"),
    }[right]
    verdict = TrialResult(right, moved, say("sum_row"), f"The row of {token}. {words}")
    panel = _map(
        look,
        {"unchanged": own, "no keys left": after},
        head,
        "",
        [Formula(EMPTY_ROW)],
        changed,
        row,
    )
    return Trial(panel, change, verdict)


def no_sinks(look: TriedRun, answered: bool) -> Trial:
    """A head with a sink, and its rows without it."""
    own = next((one for one in look.trace.attention if one.sinks is not None), None)
    if own is None:
        raise NotShownError(f"{look.title} has no sinks.")
    own = _mapped(look, own)
    change, head = Intervention(sinks=False), min(look.head, own.heads - 1)
    name, before = head_label((own.name, head)), own.weights(head)
    least = int(before.sum(-1).argmin())
    token = _token(look.trace.queries_of(own)[least].text, least)
    if not answered:
        panel = _map(
            look,
            {"unchanged": own},
            head,
            say("sink_joins_row_softmax", name=name, token=token, float=float(before[least].sum())),
            [Formula(SINK)],
            row=least,
        )
        return Trial(panel, change)
    changed = _changed(look, change)
    after = changed.find(own.name)
    now, was = after.weights(head)[least], before[least]
    factors = now[was > 0] / was[was > 0]
    by_one = bool(np.ptp(factors) < 1e-3 * factors.max())
    right = 2 if np.allclose(factors, 1, atol=1e-3) else 1 if by_one else 0
    moved = fixed(float(was.sum()), 2), fixed(float(now.sum()), 2)
    words = say("row_weight_times", token=token, float=float(factors.min())) + (
        "." if by_one else say("more_up_times", float=float(factors.max()))
    )
    pair = {"unchanged": own, "without sinks": after}
    panel = _map(look, pair, head, "", [Formula(SINK)], changed, least)
    return Trial(panel, change, TrialResult(right, moved, say("sum_row_weights"), words))


def _mapped(look: TriedRun, chosen: Attention | None = None) -> Attention:
    """The chosen sub-layer, or the first one that reads one sequence. Refuses where its map is too large."""
    found = chosen or look.attention
    if found.kind == "cross":
        found = next(one for one in look.trace.attention if one.kind != "cross")
    if max(found.sizes[1:]) > MAPPED:
        raise NotShownError(f"Two maps stand side by side for up to {MAPPED} tokens.")
    return found


def _map(
    look: TriedRun,
    maps: dict[str, Attention],
    head: int,
    words: str,
    beside: Sequence[Part],
    changed: Trace | None = None,
    row: int | None = None,
) -> Panel:
    """The weights of one head in each run. row: the query that the words name."""
    first = next(iter(maps.values()))
    tokens = [token.text for token in look.trace.queries_of(first)]
    shown = {f"{head_label((first.name, head))}, {name}": one for name, one in maps.items()}
    masks = [
        np.zeros(one.sizes[1:], bool) if (mask := one.mask_of(head)) is None else ~mask
        for one in maps.values()
    ]
    values = {name: one.weights(head) for name, one in shown.items()}
    largest = {f"largest weight, {name}": one.weights(head).max(-1) for name, one in maps.items()}
    return Panel(
        f"experiment-map-{len(maps)}",
        look_for=words,
        picture=panels(values, tokens=tokens, quantity="weight", blocked=masks, row=row),
        beside=beside,
        check=_check(look.trace, *([] if changed is None else [changed])),
        table=Table({"query": numbered_labels(tokens)} | largest),
    )


def no_positions(look: TriedRun, answered: bool) -> Trial:
    """How far two orders of the words are apart, token by token, with positions and without."""
    config = look.model.config
    if not config.has_positions or config.biases_positions:
        raise NotShownError(f"{look.title} has no positions that could be switched off.")
    other, places = _exchanged(look)
    change, stack = Intervention(positions=False), look.trace.source
    tokens = [token.text for token in look.trace.tokens]
    turned = replace(look.request, text=other)
    apart = _apart(look.trace, traced(turned), places)
    unit = say("far_orders_apart")
    beside: list[Part] = [Formula(APART), Caption(say("other_order_compared", other=other))]
    if not answered:
        most = int(apart.argmax())
        words = say(
            "words_change_places", most_tokens=_token(tokens[most], most), most_apart=apart[most]
        )
        table = {"token": numbered_labels(tokens), unit: apart}
        panel = _bars(
            "orders", [look.trace], tokens, (apart,), table, unit=unit, end=None, most=most
        )
        return Trial(replace(panel, look_for=words, beside=beside), change)
    changed = _changed(look, change)
    without = _apart(changed, traced(replace(turned, intervention=change)), places)
    moved = fixed(float(apart.max()), 2), fixed(float(without.max()), 2)
    knows = round(float(without.max()), 2) > 0
    words = (
        say("causal_mask_still")
        if knows and stack == "decoder"
        else say("something_else_positions")
        if knows
        else say("model_sentence_bag", float=float(without.max()))
    )
    verdict = TrialResult(int(not knows), moved, say("vector_length_largest"), words)
    panel = _bars(
        "orders",
        [look.trace, changed],
        tokens,
        (apart, without),
        {"token": numbered_labels(tokens), "with": apart, "without": without},
        unit=f"{unit}, without positions",
        end=None,
        most=int(without.argmax()) if knows else None,
    )
    saved = partial(before_and_after, tokens, apart, without, unit=unit, colour=PROBABILITY)
    return Trial(replace(panel, beside=beside, saved=saved), change, verdict)


def _exchanged(look: TriedRun) -> tuple[str, list[int]]:
    """The sentence with two neighbouring words exchanged, and where each of its tokens stands there."""
    words = look.request.text.split(" ")
    ours = [token.id for token in look.trace.tokens]
    for at in range(1, len(words) - 1):
        pair = words[at : at + 2]
        if not all(word.isalpha() for word in pair) or pair[0] == pair[1]:
            continue
        other = " ".join([*words[:at], *reversed(pair), *words[at + 2 :]])
        theirs = [token.id for token in look.model.tokens(other)]
        if len(theirs) != len(ours):
            continue
        moved = [
            place for place, ids in enumerate(zip(ours, theirs, strict=True)) if ids[0] != ids[1]
        ]
        if not moved:
            continue
        inside = range(moved[0], moved[-1] + 1)
        there = {theirs[place]: place for place in inside}
        if len(there) == len(inside) and sorted(there) == sorted(ours[place] for place in inside):
            return other, [
                there[one] if place in inside else place for place, one in enumerate(ours)
            ]
    raise NotShownError("This sentence has no two neighbouring words that could change places.")


def _apart(one: Trace, other: Trace, places: list[int]) -> np.ndarray:
    """(token,): the distance of its last states in two runs, by its length in the first."""
    first, second = (trace.residual[trace.source][-1].astype(np.float64) for trace in (one, other))
    gap = np.linalg.norm(first - second[places], axis=-1)
    return gap / np.maximum(np.linalg.norm(first, axis=-1), 1e-12)


def sliding_window(look: TriedRun, answered: bool) -> Trial:
    """The loss of the sentence where each token reads only some tokens back."""
    if any(one.kind != "causal" for one in look.trace.attention):
        raise NotShownError(f"{look.title} does not only read back.")
    tokens, before = _predicted(look)
    if not answered:
        return Trial(_sureness(look, tokens, np.exp(-before)), Intervention())
    widths = [width for width in WIDTHS if width < len(tokens)]
    if len(widths) * len(tokens) * look.model.parameter_count > UNASKED:
        raise NotShownError(f"This would take {len(widths)} runs of {look.title}.")
    lost = [
        float(losses(_changed(look, Intervention(window=width), passing=True)).mean())
        for width in widths
    ]
    full = float(before.mean())
    as_good = [loss - full < AS_GOOD for loss in lost]
    found = next((width for at, width in enumerate(widths) if all(as_good[at:])), len(tokens))
    share = found / len(tokens)
    shown = lost[widths.index(found)] if found in widths else full
    verdict = TrialResult(
        0 if share <= 0.25 else 1 if share <= 0.5 else 2,
        (fixed(full, 2), fixed(shown, 2)),
        say("nats_per_token_mean_loss", found=found, tokens=len(tokens)),
        say("itself_included_mean", found=found, as_good=AS_GOOD)
        if found in widths
        else say("any_fewer_tokens", as_good=AS_GOOD),
    )
    names = [f"reads {counted(width, 'token')}" for width in (*widths, len(tokens))]
    panel = Panel(
        "experiment-windows",
        picture=partial(
            moving_bars,
            *(names, [full] * len(names), [*lost, full]),
            unit=say("mean_loss_nats_per"),
            end=None,
            most=[*widths, len(tokens)].index(found),
            heads=("all", "these"),
        ),
        beside=[Formula(LOSS), Caption(say("lies_outside_still"))],
        check=_check(look.trace),
        table=Table({say("tokens_read"): [*widths, len(tokens)], "loss": [*lost, full]}),
    )
    return Trial(panel, Intervention(window=found), verdict)


def _way(before: float, after: float) -> int:
    """Which choice holds, as far as two decimals tell: 0 it rises, 1 it stays, 2 it falls."""
    return 1 - int(np.sign(round(float(after), 2) - round(float(before), 2)))


def _token(text: str, position: int | None = None) -> str:
    """A token in a sentence: a full stop is quoted, or it would read as the end of one."""
    words = bold_token(text, position)
    return words if any(map(str.isalnum, text)) else f"“{words}”"


def _named(tokens: Sequence[str], position: int) -> str:
    """A token in a sentence, with its position where there are more of it."""
    text = tokens[position]
    return _token(text, position if tokens.count(text) > 1 else None)


def _labels(tokens: Sequence[str]) -> list[str]:
    return [token_label(token, LABEL) for token in tokens]


def _changed(look: TriedRun, change: Intervention, *, passing: bool = False) -> Trace:
    with refusals():
        return traced(replace(look.request, intervention=change), passing=passing)


def _check(*runs: Trace) -> Check:
    apart = max(run.check() for run in runs)
    which = "both runs" if len(runs) > 1 else "this run"
    return Check(say("check_attention_outputs", which=which, apart=apart), apart)


QUESTIONS: dict[str, TrialOf] = {
    "No mask": no_mask,
    "No scaling": no_scaling,
    "No positions": no_positions,
    "Without one head": without_head,
    "Hidden word": hidden_word,
    "Row without keys": row_without_keys,
    "Sliding window": sliding_window,
    "No sinks": no_sinks,
}
