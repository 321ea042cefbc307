"""What comes of a run: how sure the model was of each token, the loss of the sentence, and the next token."""

import html
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from model.analysis.tokens.prediction import expectation
from model.nn.places import Head
from model.trace.trace import Trace
from viz.explorer.hero import hero
from viz.explorer.message import Hero
from viz.notation.labels import token_label
from viz.notation.numbers import fixed, signed
from viz.notation.words import sentences_of
from viz.state.intervention_words import change_in_words
from viz.state.link import View, short_link, to_link
from viz.state.look import Look
from viz.state.navigation import HOME, has_others, page_address
from viz.state.session import current

if TYPE_CHECKING:
    from model.profile.corpus_profile import Profile
    from model.run.model import Model

say = sentences_of("home.outcome")

LISTED, LABEL = 5, 14  # tokens, and letters of one
LOSS = say("mean_ln_p_over_sentence")
STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"
WAYS = {"why?": "Why?", "carries": "Carries"}  # from a cell: the drawers of Explore


def hero_of(look: Look) -> Hero:
    """What the explorer shows beside the layer of a run that a visitor looks at."""
    view, first = current(), View()
    beside = hero(
        look.attention,
        look.trace,
        look.baseline,
        change=change_in_words(look.trace),
        detail=view.detail,
        opens=view.text != first.text and (view.query, view.key) == (first.query, first.key),
        ways=ways(replace(view, intervention=look.request.intervention)) if has_others() else {},
    )
    return replace(beside, job=job_of(look.model, (look.place, look.head)))


def ways(view: View) -> dict[str, str]:
    """The addresses of the views that go on from a cell. A sentence too long for a link goes by the
    session."""
    first, (_, left_out) = View(), short_link(view)
    anywhere = replace(view.at(first.selection), place=first.place)
    return {
        name: page_address(HOME, {} if left_out else to_link(replace(anywhere, show=show)))
        for name, show in WAYS.items()
    }


def job_of(model: "Model", head: Head) -> str:
    """What a head does over the shipped corpus, with the evidence; "" where no profile of these weights says
    it."""
    from model.profile.shipped import profile_of  # imports torch, as the labels do

    profile = profile_of(model)
    return "" if profile is None else _jobs(profile).get(head, "")


@lru_cache(maxsize=8)
def _jobs(profile: "Profile") -> Mapping[Head, str]:
    """The first label of each head that has some, in words."""
    from viz.notation.head_labels import given_labels

    rows = given_labels(profile).drop_duplicates(["layer", "head"]).to_dict("records")
    return {(row["layer"], row["head"]): _job(row) for row in rows}


def _job(row: Mapping[Any, Any]) -> str:
    """A label with its evidence, in words."""
    from viz.notation.head_labels import KIND

    kind = KIND[row["label"]]
    words = f"{kind.title.lower()} head: {row['score']:.2f}"
    if not np.isnan(row["control"]):
        words += f", control {row['control']:.2f}"
    if np.isnan(change := row["left_out"]):
        return words
    if row["measure"] == "moved":
        return say("without_last_vectors", words=words, change=change)
    return f"{words}; without it {kind.answer}: {signed(f'{change:+.2f}')}"


def outcome(look: Look, hero: Hero) -> None:
    """The loss and the next token, with those of the unchanged run beside them. What moved most stands
    first."""
    after, before = look.trace.prediction, look.baseline and look.baseline.prediction
    if after is None:
        _vectors(look)
        return
    loss = ""
    if hero.loss is not None:
        was, now = hero.loss["before"], hero.loss["after"]
        loss = _large("Loss per token", was, now or "", LOSS)
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
    st.html(  # one element: the browser cleans the markup of each anew
        f'{loss}<table class="outcome"><caption>Next after <code>{last}</code><span>, probability</span>'
        f"{same}</caption><tbody>{''.join(row.written() for row in rows)}</tbody></table>"
    )


def _large(name: str, was: str | None, now: str, meaning: str) -> str:
    """The number that a change moves: what it was, then what it is, large."""
    before = "" if was is None else f'<span class="was">{html.escape(was)} → </span>'
    runs = (
        "" if was is None else f' data-was="{html.escape(was)}"'
    )  # the explorer lets it run from there
    kind = "" if was is None else " moved"
    return (
        f'<p class="outcome large{kind}" title="{meaning}"><small>{name}</small>'
        f"<b>{before}<span{runs}>{html.escape(now)}</span></b></p>"
    )


def _vectors(look: Look) -> None:
    """How far a change moves the sentence vector of an encoder, the mean of its last states."""
    before = look.baseline
    if before is None:
        st.caption(say("model_predicts_next"))
        return
    meaning = say("mean_tokens_last")
    st.html(_large(say("vector_sentence_cosine"), "1", cosine(before, look.trace), meaning))


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
