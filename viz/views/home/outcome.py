"""What comes of a run: how sure the model was of each token, the loss of the sentence, and the next token."""

import html
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from model.analysis.run_comparison import losses, rounding
from model.analysis.tokens.prediction import expectation
from model.nn.places import Head
from model.profile.shipped import profile_of
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.explorer.message import Hero, RunName
from viz.notation.head_labels import KIND, given_labels
from viz.notation.labels import token_label
from viz.notation.numbers import fixed, nats, settled, signed
from viz.state.intervention_words import parts
from viz.state.link import Detail, View, short_link, to_link
from viz.state.look import Look
from viz.state.navigation import HOME, has_others, page_address
from viz.state.session import current

if TYPE_CHECKING:
    from model.run.model import Model

LISTED, LABEL = 5, 14  # tokens, and letters of one
LOSS = "The mean of −ln p over the sentence's own tokens, in nats: 0 where each is certain."
STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"
READ = 2**22  # logits that are read for the loss each time the page is drawn: 50 ms
DECIMALS: dict[Detail, int] = {"simple": 2, "full": 3}
WAYS = {"why?": "Why?", "carries": "Carries"}  # from a cell: the drawers of Explore


def hero_of(look: Look) -> Hero:
    """What the explorer shows beside the layer of a run that a visitor looks at."""
    view, first = current(), View()
    return hero(
        look.attention,
        look.trace,
        look.baseline,
        detail=view.detail,
        opens=view.text != first.text and (view.query, view.key) == (first.query, first.key),
        ways=ways(view) if has_others() else {},
        job=job_of(look.model, (look.place, look.head)),
    )


def hero(
    attention: Attention,
    trace: Trace,
    baseline: Trace | None,
    *,
    detail: Detail = "simple",
    opens: bool = False,
    ways: Mapping[str, str] = MappingProxyType({}),
    job: str = "",
) -> Hero:
    """What the explorer shows beside a layer of a run. baseline: the unchanged run, where this one is
    changed. The others: as `Hero` has them."""
    tokens = tuple(token_label(token.text) for token in trace.tokens)
    words = ", ".join(part.words for part in parts(trace.intervention, tokens))
    runs: dict[RunName, Trace | None] = {"before": baseline, "after": trace}
    lost = {name: None if run is None else _losses(run) for name, run in runs.items()}
    sure = {name: None if loss is None else _sureness(loss) for name, loss in lost.items()}
    has_loss = lost["after"] is not None
    error = max(rounding(run) for run in runs.values() if run is not None)
    certain = max(error, 5 * 10.0 ** -(DECIMALS[detail] + 1))
    mean = {
        name: None if loss is None else nats(loss.mean(), certain) for name, loss in lost.items()
    }
    reads = attention.kind != "cross" and attention.place.stack == "decoder"
    return Hero(
        words[:1].upper() + words[1:],
        sure=sure if has_loss and reads else None,
        loss=mean if has_loss else None,
        decimals=min(settled(error), DECIMALS[detail]),
        opens=opens,
        detail=detail,
        ways=dict(ways),
        job=job,
    )


def ways(view: View) -> dict[str, str]:
    """The addresses of the views that go on from a cell. A sentence too long for a link goes by the
    session."""
    first, (_, left_out) = View(), short_link(view)
    anywhere = replace(view.at(first.selection), place=first.place)
    return {
        name: page_address(HOME, {} if left_out else to_link(replace(anywhere, show=show)))
        for name, show in WAYS.items()
    }


def _losses(run: Trace) -> np.ndarray | None:
    """-ln p of each token but the first; None where there are none, or too many to be read at once."""
    if run.prediction is None or run.prediction.shape[0] < 2:
        return None
    rows, vocabulary = run.prediction.shape
    return losses(run) if rows * vocabulary <= READ else None


def _sureness(loss: np.ndarray) -> list[float | None]:
    """The probability of each token after those before it; None for the first."""
    return [None, *np.exp(-loss).tolist()]


def job_of(model: "Model", head: Head) -> str:
    """What a head does over the shipped corpus, with the evidence; "" where no profile of these weights says
    it."""
    profile = profile_of(model)
    if profile is None:
        return ""
    rows = given_labels(profile)
    mine = rows[(rows["layer"] == head[0]) & (rows["head"] == head[1])].to_dict("records")
    if not mine:
        return ""
    row, kind = mine[0], KIND[mine[0]["label"]]
    words = f"{kind.title.lower()} head: {row['score']:.2f}"
    if not np.isnan(row["control"]):
        words += f", control {row['control']:.2f}"
    if np.isnan(change := row["left_out"]):
        return words
    if row["measure"] == "moved":
        return f"{words}; without it the last vectors move by {change:.2f} of their length"
    return f"{words}; without it {kind.answer}: {signed(f'{change:+.2f}')}"


def outcome(look: Look, hero: Hero) -> None:
    """The loss and the next token, with those of the unchanged run beside them. What moved most stands
    first."""
    after, before = look.trace.prediction, look.baseline and look.baseline.prediction
    if after is None:
        _vectors(look)
        return
    if hero.loss is not None:
        was, now = hero.loss["before"], hero.loss["after"]
        _large("Loss per token", was, now or "", LOSS)
        if was is not None and (most := _most(look, hero)):
            st.html(most)
    likely = expectation((before or after).after(-1), after.after(-1), LISTED)
    rows = [
        NextToken(token.text, now, was, hero.decimals)
        for token, was, now in zip(
            look.model.target_tokenizer.named(likely.ids), likely.before, likely.after, strict=True
        )
    ]
    same = ""
    if look.baseline is None:
        rows = [row._replace(before=None) for row in rows]
    elif any(row.has_moved for row in rows):
        rows.sort(key=lambda row: -row.moved)
    else:
        same = ": as before"
    last = html.escape(token_label(look.trace.tokens_of("decoder")[-1].text))
    st.html(
        f'<table class="outcome"><caption>Next after <code>{last}</code>{same}</caption>'
        f"<tbody>{''.join(row.written() for row in rows)}</tbody></table>"
    )


def _large(name: str, was: str | None, now: str, meaning: str) -> None:
    """The number that a change moves: what it was, then what it is, large."""
    before = "" if was is None else f'<span class="was">{html.escape(was)} → </span>'
    kind = "" if was is None else " moved"
    st.html(
        f'<p class="outcome large{kind}" title="{meaning}"><small>{name}</small>'
        f"<b>{before}{html.escape(now)}</b></p>"
    )


def _most(look: Look, hero: Hero) -> str:
    """The word of the sentence whose probability a change moved most, in one line; "" where none moved."""
    before, after = ((hero.sure or {}).get(run) for run in ("before", "after"))
    if before is None or after is None:
        return ""
    pairs = [(old or 0.0, new or 0.0) for old, new in zip(before, after, strict=True)]
    at = max(range(len(pairs)), key=lambda place: abs(pairs[place][1] - pairs[place][0]))
    old, new = (fixed(value, hero.decimals) for value in pairs[at])
    if old == new:
        return ""
    word = html.escape(token_label(look.trace.tokens_of("decoder")[at].text, LABEL))
    return f'<p class="outcome">Most at <code>{word}</code>: {old} → {new}</p>'


def _vectors(look: Look) -> None:
    """How far a change moves the sentence vector of an encoder, the mean of its last states."""
    before = look.baseline
    if before is None:
        st.caption("This model predicts no next token. It makes one vector of the sentence.")
        return
    meaning = "Of the mean of its tokens' last vectors with that of the unchanged run; 1: the same."
    _large("Vector of the sentence: cosine", "1", cosine(before, look.trace), meaning)


def cosine(before: Trace, after: Trace) -> str:
    """Of the vectors of the sentence in two runs of an encoder, the means of its last states; as printed."""
    old, new = (run.residual["encoder"][-1].mean(0, dtype=np.float64) for run in (before, after))
    return signed(f"{float(old @ new / (np.linalg.norm(old) * np.linalg.norm(new))):.3f}")


class NextToken(NamedTuple):
    """A row of the likeliest next tokens. before: in the unchanged run; None where nothing is changed."""

    token: str
    after: float
    before: float | None
    decimals: int

    @property
    def moved(self) -> float:
        return abs(self.after - (self.before or 0.0))

    @property
    def has_moved(self) -> bool:
        """Whether its number is printed as another one than before."""
        return self.before is not None and fixed(self.before, self.decimals) != fixed(
            self.after, self.decimals
        )

    def written(self) -> str:
        now = fixed(self.after, self.decimals)
        ghost = was = then = ""
        if self.before is not None:
            old = fixed(self.before, self.decimals)
            ghost = f'<i class="ghost" style="--share:{self.before:.4f}"></i>'
            then = f'<span class="then">{old}</span>'
            was = f"<small>was {old}</small>" if self.has_moved else ""
        return (
            f'<tr><th scope="row">{html.escape(token_label(self.token, LABEL))}</th><td class="bar">{ghost}'
            f'<i class="now" style="--share:{self.after:.4f}"></i></td>'
            f'<td><span class="now">{now}</span>{then}</td><td>{was}</td></tr>'
        )
