"""What comes of a run: how sure the model was of each token, the loss of the sentence, and the next token."""

import html
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from model.analysis.tokens.prediction import expectation
from model.trace.trace import Trace
from viz.explorer.hero import hero
from viz.explorer.message import Hero
from viz.notation.labels import token_label
from viz.notation.numbers import fixed, signed
from viz.state.intervention_words import change_in_words
from viz.state.link import View, short_link, to_link
from viz.state.look import Look
from viz.state.navigation import has_others, page_address
from viz.state.session import current

LISTED, LABEL = 5, 14  # tokens, and letters of one
LOSS = "The mean of −ln p over the sentence's own tokens, in nats: 0 where each is certain."
STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"
WAYS = {
    "why?": "Why this score?",
    "carries": "What does it carry?",
}  # from a cell: views of the page of attention


def hero_of(look: Look) -> Hero:
    """What the explorer shows beside the layer of a run that a visitor looks at."""
    view, first = current(), View()
    return hero(
        look.attention,
        look.trace,
        look.baseline,
        change=change_in_words(look.trace),
        detail=view.detail,
        opens=view.text != first.text and (view.query, view.key) == (first.query, first.key),
        ways=ways(view) if has_others() else {},
    )


def ways(view: View) -> dict[str, str]:
    """The addresses of the views that go on from a cell. A sentence too long for a link goes by the
    session."""
    first, (_, left_out) = View(), short_link(view)
    anywhere = replace(view.at(first.selection), place=first.place)
    file = "pages/attention.py"
    return {
        name: page_address(file, {} if left_out else to_link(replace(anywhere, show=show)))
        for name, show in WAYS.items()
    }


def outcome(look: Look, hero: Hero) -> None:
    """The next token and the loss, with those of the unchanged run beside them."""
    after, before = look.trace.prediction, look.baseline and look.baseline.prediction
    if after is None:
        _vectors(look)
        return
    likely = expectation((before or after).after(-1), after.after(-1), LISTED)
    tokens = [token.text for token in look.model.target_tokenizer.named(likely.ids)]
    rows = "".join(
        _row(token, after, before if look.baseline else None, hero.decimals)
        for token, before, after in zip(tokens, likely.before, likely.after, strict=True)
    )
    last = html.escape(token_label(look.trace.tokens_of("decoder")[-1].text))
    st.html(
        f'<table class="outcome"><caption>Next after <code>{last}</code></caption>'
        f"<tbody>{rows}</tbody></table>"
    )
    if hero.loss is not None:
        words = " → ".join(html.escape(loss) for loss in hero.loss.values() if loss is not None)
        st.html(
            f'<p class="outcome" title="{LOSS}">Loss<span> per token</span> <b>{words}</b> nats</p>'
        )


def _vectors(look: Look) -> None:
    """How far a change moves the sentence vector of an encoder, the mean of its last states."""
    before = look.baseline
    if before is None:
        st.caption("This model predicts no next token. It makes one vector of the sentence.")
        return
    st.markdown(
        f"**Vector of the sentence** cosine {cosine(before, look.trace)} with the one before",
        help="The mean of the last vectors of its tokens; 1 is the same direction.",
    )


def cosine(before: Trace, after: Trace) -> str:
    """Of the vectors of the sentence in two runs of an encoder, the means of its last states; as printed."""
    old, new = (run.residual["encoder"][-1].mean(0, dtype=np.float64) for run in (before, after))
    return signed(f"{float(old @ new / (np.linalg.norm(old) * np.linalg.norm(new))):.3f}")


def _row(token: str, after: float, before: float | None, decimals: int) -> str:
    ghost = "" if before is None else f'<i class="ghost" style="--share:{before:.4f}"></i>'
    was = "" if before is None else f"<small>was {fixed(before, decimals)}</small>"
    then = "" if before is None else f'<span class="then">{fixed(before, decimals)}</span>'
    return (
        f'<tr><th scope="row">{html.escape(token_label(token, LABEL))}</th><td class="bar">{ghost}'
        f'<i class="now" style="--share:{after:.4f}"></i></td>'
        f'<td><span class="now">{fixed(after, decimals)}</span>{then}</td><td>{was}</td></tr>'
    )
