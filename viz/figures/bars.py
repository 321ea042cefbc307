"""Bars: amounts, parts of a sum, rows of weights, probabilities, edges, lengths and spreads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.figures.chart import (
    CLICKED,
    DOTTED,
    MONOSPACED,
    SLANTED,
    SMALL,
    STEADY,
    Axis,
    TraceStyle,
    bars_across,
    chart,
    ends_around,
    frame,
    line,
    marks,
    note,
    titled,
)
from viz.figures.heatmap import NARROW, NUMBERED, heatmap
from viz.figures.vectors import colour_end
from viz.notation.labels import plotly_label, plotly_words
from viz.notation.numbers import fixed, probability, settled, signed
from viz.notation.theme import (
    FEED_FORWARD,
    INK,
    LESS,
    MASKED,
    MORE,
    OUTPUT,
    PROBABILITY,
    SCORE,
    STREAM,
    WEIGHT,
    colorscale,
    rgba,
    rising_scale,
)
from viz.notation.words import sentences_of

say = sentences_of("figures.bars")

FloatArray = NDArray[np.floating]
_LONG = 0.6  # of the longest bar: a longer one has its words inside
_INSIDE: Final = {
    "insidetextanchor": "end",
    "insidetextfont": {"color": "white"},
    "constraintext": "none",
}
_ZERO: Final = {"zeroline": True, "zerolinecolor": MASKED}
_SHARES = {"range": [0, 1], "tickvals": [0, 0.5, 1]}


@dataclass(frozen=True)
class Amount:
    """One row: its name, its value, and the words beside its bar."""

    name: str
    value: float
    words: str
    colour: str = MASKED


def amounts(rows: Sequence[Amount]) -> go.Figure:
    """One bar a row with its words, the first row on top."""
    values = [row.value for row in rows]
    largest = max(values)
    bars = bars_across(
        values,
        [row.colour for row in rows],
        text=[plotly_words(row.words) for row in rows],
        textposition=["inside" if value > _LONG * largest else "outside" for value in values],
        **_INSIDE,
        customdata=[[plotly_words(row.name), row.value] for row in rows],
        hover="%{customdata[0]}: %{customdata[1]:,}",
    )
    bare = {"visible": False, "fixedrange": True, "range": [0, 1.05 * largest or 1]}
    names = Axis("", [row.name for row in rows], tokens=False).down(tickfont=None, fixedrange=True)
    listed = "; ".join(f"{row.name}: {row.words}" for row in rows)
    return chart(bars, bare, names, height=16 + 34 * len(rows), bargap=0.2, meta=f"Bars. {listed}.")


def percent(share: float) -> str:
    """A share in percent with one decimal. A small share never becomes 0.0%."""
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def neighbours_bars(texts: Sequence[str], cosines: Sequence[float], *, mean: float) -> go.Figure:
    """The tokens nearest to one token, the nearest on top. mean: the cosine of all tokens, a dotted line."""
    bars = bars_across(
        cosines,
        STREAM,
        text=[signed(f"{cosine:.2f}") for cosine in cosines],
        textposition="outside",
        hovertext=[plotly_label(text) for text in texts],
        hover="%{hovertext}<br>cosine %{x:.4f}",
    )
    title = "cosine with the chosen token's vector<br>dotted: mean of the whole vocabulary"
    across = titled(title, range=ends_around([*cosines, mean], 0.12), nticks=6)
    rows = Axis("", texts, longest=18).down()
    figure = chart(bars, across, rows, height=110 + 32 * len(texts), bargap=0.25)
    return figure.add_vline(mean, line=DOTTED)


def part_bars(names: Sequence[str], values: Sequence[float], *, title: str) -> go.Figure:
    """What each part adds to a sum, from the top down, red above 0 and blue below."""
    bars = bars_across(
        values,
        [MORE if value >= 0 else LESS for value in values],
        text=[signed(f"{value:+.2f}") for value in values],
        textposition="outside",
        hover="%{x:+.4f}",
    )
    across = titled(title, range=ends_around(values, 0.18), **_ZERO)
    rows = Axis("", names, tokens=False).down(tickfont=None)
    return chart(bars, across, rows, height=22 * len(names) + 70)


class WrittenStep(NamedTuple):
    """A token that was written, and after it its likeliest rivals: their texts and probabilities."""

    tokens: Sequence[str]
    shares: Sequence[float]


_PARTS = (1.0, 0.5, 0.34, 0.22)  # opacity of a column's parts: the written token, and its rivals


def written_steps(steps: Sequence[WrittenStep], *, chosen: int, error: float = 0.0) -> go.Figure:
    """A column for each step, from 0 to 1: at its foot the probability of the token that was written, above
    it those of its rivals, and pale all others. The points of each trace are numbered as the steps.

    chosen: the step in a frame. error: how far rounding may move the logarithm of a probability.
    """
    words = ["the written token", *(f"rival {place}" for place in range(1, len(_PARTS)))]
    traces = []
    for place, (name, opacity) in enumerate(zip(words, _PARTS, strict=True)):
        shares = [step.shares[place] if place < len(step.shares) else 0.0 for step in steps]
        texts = [step.tokens[place] if place < len(step.tokens) else "" for step in steps]
        hover = [
            f"{plotly_label(text, _LABEL)} {probability(share, error)}"
            for text, share in zip(texts, shares, strict=True)
        ]
        traces.append(_column(shares, rgba(PROBABILITY, opacity), hover, name))
    others = [max(0.0, round(1 - sum(step.shares), 12)) for step in steps]  # 1e-16 is rounding
    hover = [f"all others {probability(share, error)}" for share in others]
    traces.append(_column(others, rgba(MASKED, 0.12), hover, "all others"))
    labels = Axis("", [step.tokens[0] for step in steps]).across(
        tickangle=SLANTED, fixedrange=True, range=[-0.6, len(steps) - 0.4]
    )
    figure = chart(
        traces,
        labels,
        titled("probability", **_SHARES, fixedrange=True, showgrid=False),
        height=420,
        barmode="stack",
        bargap=0.12,
        showlegend=False,
        meta=say("column_step")
        + "; ".join(
            f"{plotly_label(step.tokens[0], _LABEL)} {probability(step.shares[0], error)}"
            for step in steps
        ),
        **CLICKED,
    )
    frame(figure, (chosen - 0.47, chosen + 0.47, 0, 1), INK, 2)
    return figure


def _column(shares: Sequence[float], colour: str, hover: Sequence[str], name: str) -> go.Bar:
    return go.Bar(
        x=list(range(len(shares))),
        y=list(shares),
        name=name,
        marker={"color": colour},
        hovertext=list(hover),
        hovertemplate="%{hovertext}<extra></extra>",
        **STEADY,
    )


_BESIDE = 0.35  # of the longest bar, for its number


def edge_bars(
    tokens: Sequence[str], weights: FloatArray, carried: FloatArray, *, title: str, is_signed: bool
) -> go.Figure:
    """The edges of one row: each key's weight, and beside it what that edge carries. The points of both
    traces are numbered as the keys.

    Args:
        tokens: some keys, from the top down.
        weights, carried: of each key, (key,).
        title: what is carried.
        is_signed: whether it adds to a number, red above 0 and blue below; else it is the length of a vector.

    Raises ValueError if tokens and numbers do not fit.
    """
    if weights.shape != (len(tokens),) or carried.shape != weights.shape:
        raise ValueError(f"{weights.shape} weights, {carried.shape} edges, {len(tokens)} tokens.")
    colours = [MORE if value >= 0 else LESS for value in carried] if is_signed else STREAM
    traces = [
        bars_across(
            values.tolist(),
            colour,
            # One that would be written "0.00" is left out.
            text=[signed(f"{one:{form}}") if round(one, 2) else "" for one in values.tolist()],
            textposition="outside",
            hovertext=[plotly_label(text) for text in tokens],
            hover=f"%{{hovertext}}<br>{name} %{{x:.4f}}",
            xaxis=axis,
            **STEADY,
        )
        for values, colour, form, name, axis in (
            (weights, WEIGHT, ".2f", "weight", None),
            (carried, colours, "+.2f" if is_signed else ".2f", title, "x2"),
        )
    ]
    look = _ZERO | {"nticks": 4, "fixedrange": True}
    ends = ends_around(carried.tolist(), _BESIDE)
    return chart(
        traces,
        titled("weight", **look | _SHARES | {"range": [0.0, 1.0 + _BESIDE], "domain": [0.0, 0.46]}),
        Axis("", tokens).down(len(tokens), fixedrange=True),
        xaxis2=titled(title, **look | {"range": ends, "domain": [0.54, 1.0]}),
        height=24 * len(tokens) + 70,
        bargap=0.25,
        showlegend=False,
        **CLICKED,
    )


def edge_lengths(
    lengths: FloatArray,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    blocked: NDArray[np.bool_] | None,
) -> go.Figure:
    """What every edge of a head carries, as a heatmap from 0 to the largest.

    Args:
        lengths: (query, key), of vectors.
        blocked: True where a cell is masked; None: none is.

    Raises ValueError if labels and lengths do not fit.
    """
    figure = heatmap(
        lengths,
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        quantity="stream",
        blocked=blocked,
        words=() if NARROW < len(keys) <= NUMBERED else None,
        square=True,
    )
    scale = {"zmin": 0, "colorscale": rising_scale(STREAM)}
    return figure.update_traces(**scale, selector={"showscale": True})


_LABEL = 18  # characters of a token


@dataclass(frozen=True)
class Bars:
    """The probabilities of the listed tokens, and of all others together, in one distribution."""

    shares: Sequence[float]
    others: float
    error: float = 0.0  # rounding error of their logarithms

    @property
    def all(self) -> list[float]:
        return [*self.shares, self.others]


@dataclass(frozen=True)
class GivenWord:
    """A word and its probability, and the model's most probable word and its probability."""

    word: str
    share: float
    first: str
    first_share: float

    @property
    def agrees(self) -> bool:
        return self.word == self.first


def next_tokens(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float] | None,
    *,
    decimals: int = 4,
) -> go.Figure:
    """What a model expects next, the most probable on top.

    Args:
        before, after: probabilities, 0 to 1; after None: there is the unchanged model alone.
        decimals: of the numbers on hovering; the bars bear three at most.
    """
    pairs = [("unchanged", before, MASKED if after is not None else PROBABILITY)]
    if after is not None:
        pairs.append(("changed", after, PROBABILITY))
    bars = [
        bars_across(
            shares,
            colour,
            name=name,
            text=[fixed(share, min(decimals, 3)) for share in shares],
            textposition="outside",
            customdata=[fixed(share, decimals) for share in shares],
            hover=f"{name} %{{customdata}}",
        )
        for name, shares, colour in pairs
    ]
    across = titled("probability", **_SHARES | {"range": [0, 1.12]})
    return _grouped(bars, across, Axis("", labels, longest=_LABEL).down(), 90 + 44 * len(labels))


def word_probabilities(words: Sequence[GivenWord], error: float = 0.0) -> go.Figure:
    """One row a word from the top down: its probability, and beneath it the model's first choice
    where that is another word. error: how far rounding may move the logarithm of a probability."""
    shares = [word.share for word in words]
    texts = [probability(share, error) for share in shares]
    look: dict[str, object] = {"textfont": MONOSPACED}
    traces = [_shares(shares, texts, say("word_text"), PROBABILITY, error, **look)]
    others = {row: word for row, word in enumerate(words) if not word.agrees}
    if others:
        shares = [word.first_share for word in others.values()]
        name = say("model_first_choice")
        texts = [
            f"{plotly_label(word.first)} {probability(word.first_share, error)}"
            for word in others.values()
        ]
        look["y"] = list(others)
        traces.append(_shares(shares, texts, name, MASKED, error, **look))
    rows = Axis("word", [word.word for word in words], longest=16).down(40)
    across = titled(say("probability_given_words"), **_SHARES)
    height = min(110 + 44 * len(words), 900)
    return _grouped(traces, across, rows, height, showlegend=True)


def distribution(
    labels: Sequence[str],
    logits: Sequence[float],
    model: Bars,
    drawn: Bars | None = None,
    *,
    others: int,
    divisor: float = 1.0,
    chosen: int | None = None,
) -> go.Figure:
    """Left the logits, right the probabilities, the first label on top and all others together at the bottom.
    The points of each trace are numbered as the rows.

    Args:
        labels, logits: of the listed tokens.
        model: the model's own distribution.
        drawn: the one after temperature, top-k and top-p, over the outline of the model's own; a token with
            no share left is marked "cut".
        others: how many tokens are not listed.
        divisor: the temperature.
        chosen: the row of a token that was chosen.
    """
    below = colorscale("score")[0][1]  # the colour of its lower end
    decimals = settled(model.error)
    traces = [
        bars_across(
            logits,
            [SCORE if logit >= 0 else below for logit in logits],
            text=[signed(f"{logit:.{min(decimals, 2)}f}") for logit in logits],
            textposition="auto",
            showlegend=False,
            hover=f"logit %{{x:.{decimals}f}}",
            **STEADY,
        )
    ]
    place = {"xaxis": "x2", "yaxis": "y2", **STEADY}
    shown = drawn or model
    texts = [probability(share, shown.error) if share else "cut" for share in shown.all]
    name = "the model's own" if drawn is None else say("after_temperature_top")
    traces.append(_shares(shown.all, texts, name, PROBABILITY, shown.error, **place))
    if drawn is not None:  # last: over the filled bars
        texts = [""] * len(texts)
        outline = _shares(model.all, texts, "the model's own", MASKED, model.error, **place)
        look = {"color": "rgba(0, 0, 0, 0)", "line": {"color": MASKED, "width": 2}}
        traces.append(outline.update(marker=look))
    named = [plotly_label(label, _LABEL) for label in labels]
    said, ticks = [*named, f"{others:,} others"], [*named, f"<i>{others:,} others</i>"]
    if chosen is not None:
        ticks[chosen] = f"<b>→ {ticks[chosen]}</b>"
    rows = Axis("", ticks).down() | {"tickvals": list(range(len(ticks))), "ticktext": ticks}
    rows |= {"fixedrange": True}
    divided = "" if divisor == 1 else f" of logit ÷ {divisor:g}"
    own = "" if drawn is None else "<br>outlined: the model's own"
    above: TraceStyle = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "align": "left"}
    bare = {"fixedrange": True, "showticklabels": False, "showgrid": False}
    return _grouped(
        traces,
        bare | {"domain": [0.0, 0.34], "range": ends_around(logits, 0.3), "zeroline": True},
        rows,
        64 + 36 * len(ticks),
        barmode="overlay",
        bargap=0.2,
        margin={"l": 8, "r": 8, "t": 28 if drawn is None else 44, "b": 8},
        annotations=[
            note("<b>logit</b>", 0, 1, **above),
            note(f"<b>probability</b>{divided}{own}", 0.38, 1, **above),
        ],
        showlegend=False,
        meta=say("logits_probabilities_next")
        + "; ".join(
            f"{label}: {probability(share, shown.error)}"
            for label, share in zip(said, shown.all, strict=True)
        ),
        xaxis2={**bare, "domain": [0.38, 1.0], "range": [0, 1], "anchor": "y2", "zeroline": True},
        yaxis2={**rows, "anchor": "x2", "matches": "y", "showticklabels": False},
        **CLICKED,
    )


def _grouped(
    bars: Sequence[go.Bar],
    x: dict[str, object],
    y: dict[str, object],
    height: int,
    **layout: object,
) -> go.Figure:
    """Bars of the same row one below the other."""
    named = {"showlegend": sum(bar.showlegend is not False for bar in bars) > 1}
    shared = {"barmode": "group", "bargap": 0.25}
    return chart(bars, x, y, height=height, **(shared | named | layout))


def _shares(
    shares: Sequence[float],
    texts: Sequence[str],
    name: str,
    colour: str,
    error: float,
    **more: object,
) -> go.Bar:
    """Bars of probabilities. Hovering shows all digits that are certain."""
    return bars_across(
        shares,
        colour,
        name=name,
        text=texts,
        textposition=["inside" if share > _LONG else "outside" for share in shares],
        **_INSIDE,
        hovertext=[f"{name}: {probability(share, error, most=6)}" for share in shares],
        hover="%{hovertext}",
        **more,
    )


class VectorSpread(NamedTuple):
    """Where the numbers of each token's vector lie, (token,) each: from centre − reach to centre + reach."""

    centre: FloatArray
    reach: FloatArray


_WRITTEN = 24  # up to so many tokens each bar of a spread has its number beside it


def spread_bars(
    stages: Mapping[str, VectorSpread], *, tokens: Sequence[str], chosen: int
) -> go.Figure:
    """How widely the numbers of each token's vector are spread: a bar for each token, at each stage of a norm
    from left to right. Each stage has a scale of its own.

    stages: by what stands above them. chosen: the token whose bars are dark. The points of each trace are
    numbered as the tokens.
    """
    names = [f"{place} {plotly_label(text, 24)}" for place, text in enumerate(tokens)]
    bars, axes, share = [], {}, 1 / len(stages)
    for at, (title, spread) in enumerate(stages.items()):
        low, high = spread.centre - spread.reach, spread.centre + spread.reach
        number = str(at + 1) if at else ""
        bars.append(
            bars_across(
                (2 * spread.reach).tolist(),
                [rgba(STREAM, 1 if row == chosen else 0.5) for row in range(len(tokens))],
                base=low.tolist(),
                xaxis=f"x{number}",
                text=[f"{reach:.2f}" for reach in spread.reach]
                if len(tokens) <= _WRITTEN
                else None,
                textposition="outside",
                textfont=SMALL,
                **STEADY,
                customdata=list(zip(names, spread.centre, spread.reach, strict=True)),
                hover="choose token %{customdata[0]}<br>%{customdata[1]:.4f} ± %{customdata[2]:.4f}",
            )
        )
        first, last = float(low.min()), float(high.max())
        room = (last - first) or 1.0
        ends = [first - 0.05 * room, last + 0.95 * room]  # on the right for its number
        domain = [at * share, (at + 1) * share - 0.02]
        ticks = [0.0, float(f"{last:.0e}")] if last > 0 else [0.0]  # more would touch on a phone
        look = {"domain": domain, "range": ends, "side": "top", "tickvals": ticks}
        axes[f"xaxis{number}"] = titled(title, **look, zeroline=True, fixedrange=True)
    reaches = [
        f"{title.replace('<br>', ' ')} {spread.reach.min():.2f} to {spread.reach.max():.2f}"
        for title, spread in stages.items()
    ]
    across = axes.pop("xaxis")
    return chart(
        bars,
        across,
        Axis("", tokens).down(),
        **axes,
        height=min(max(30 * len(tokens) + 110, 200), 620),
        bargap=0.3,
        showlegend=False,
        **CLICKED,
        meta=say("row_bars_token_stage", reaches="; ".join(reaches)),
    )


_ADDED_BY = (OUTPUT, FEED_FORWARD)  # attention, feed-forward
_WORDS_ON = {OUTPUT: "white", FEED_FORWARD: "black"}  # numbers that can be read on these colours


def contribution_lengths(
    names: Sequence[str], added: FloatArray, stream: FloatArray, *, token: int | None
) -> go.Figure:
    """Bars: the length of what each sub-layer adds to the residual stream; a line: the length of the stream
    that it reads.

    Args:
        added, stream: (sub-layer, token).
        token: whose lengths are drawn, with the mean of all tokens as diamonds; None: the mean.
    """
    positions = list(range(len(names)))
    means, lengths = added.mean(1), stream.mean(1) if token is None else stream[:, token]
    whose = say("mean_tokens") if token is None else "this token"
    colours = [_ADDED_BY[name.endswith("feed-forward")] for name in names]
    bars = go.Bar(
        x=positions,
        y=means if token is None else added[:, token],
        name=f"added, {whose}",
        marker={"color": colours},
        insidetextfont={"color": [_WORDS_ON[colour] for colour in colours]},
        texttemplate="%{y:.3g}",
        textposition="auto",
        insidetextanchor="middle",  # above it the line would cross its number
        cliponaxis=False,
        hovertemplate="adds %{y:.4f}<extra></extra>",
        showlegend=False,
    )
    mean = marks(
        positions,
        means,
        name=say("added_mean_tokens"),
        marker={"symbol": "diamond", "size": 11, "color": MASKED},
        hover="mean %{y:.4f}",
        showlegend=True,
    )
    stream_line = line(
        *(positions, lengths, say("stream_before", whose=whose), STREAM),
        mode="lines+markers",
        width=2,
        hover="stream %{y:.4f}",
    )
    meanings = [
        go.Bar(x=[None], y=[None], name=f"{name} adds", marker={"color": colour})
        for name, colour in zip(("attention", "feed-forward"), _ADDED_BY, strict=True)
    ]
    ticks = {"tickvals": positions, "ticktext": [name.replace(" ", "<br>", 1) for name in names]}
    return chart(
        [bars, *([] if token is None else [mean]), stream_line, *meanings],
        titled(say("sub_layer_order"), autotickangles=[0], **ticks),
        titled(say("length_vector"), rangemode="tozero"),
        height=430,
        barmode="overlay",
    )


def contribution_rows(names: Sequence[str], added: FloatArray, tokens: Sequence[str]) -> go.Figure:
    """added (sub-layer, token) as a heatmap, a row a token; colours start at 0."""
    end = colour_end(added, 95)
    title = say("length_sub_layer")
    columns = Axis(title, names, tokens=False)
    figure = heatmap(added.T, rows=Axis("token", tokens), columns=columns, quantity="stream")
    figure.data[-1].update(zmin=0, zmax=end.value or 1.0, colorscale=rising_scale(STREAM))
    return end.say_beyond(figure)
