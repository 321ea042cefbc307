"""What comes of a run: how sure the model was of each token, the loss of the sentence, and the next token."""

import html
from pathlib import Path

import numpy as np
import streamlit as st

from model.analysis.run_comparison import losses, rounding
from model.analysis.tokens.prediction import expectation
from model.trace.trace import Trace
from viz.explorer.message import Hero, RunName
from viz.notation.labels import token_label
from viz.notation.numbers import fixed, nats, settled, signed
from viz.state.intervention_words import parts
from viz.state.link import View
from viz.state.look import Look
from viz.state.session import current

LISTED, LABEL = 5, 14  # tokens, and letters of one
LOSS = "The mean of −ln p over the sentence's own tokens, in nats: 0 where each is certain."
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
READ = 2**22  # logits that are read for the loss each time the page is drawn: 50 ms


def hero_of(look: Look) -> Hero:
    """What the explorer shows beside the layer of a run."""
    tokens = tuple(token_label(token.text) for token in look.trace.tokens)
    words = ", ".join(part.words for part in parts(look.request.intervention, tokens))
    runs: dict[RunName, Trace | None] = {"before": look.baseline, "after": look.trace}
    lost = {name: None if run is None else _losses(run) for name, run in runs.items()}
    sure = {name: None if loss is None else _sureness(loss) for name, loss in lost.items()}
    error = max(_error(look), 5e-4)
    mean = {name: None if loss is None else nats(loss.mean(), error) for name, loss in lost.items()}
    has_loss, view, first = lost["after"] is not None, current(), View()
    reads = look.attention.kind != "cross" and look.attention.place.stack == "decoder"
    return Hero(
        words[:1].upper() + words[1:],
        sure=sure if has_loss and reads else None,
        loss=mean if has_loss else None,
        opens=view.text != first.text and view.selection == first.selection,
    )


def _losses(run: Trace) -> np.ndarray | None:
    """-ln p of each token but the first; None where there are none, or too many to be read at once."""
    if run.prediction is None or run.prediction.shape[0] < 2:
        return None
    rows, vocabulary = run.prediction.shape
    return losses(run) if rows * vocabulary <= READ else None


def _sureness(loss: np.ndarray) -> list[float | None]:
    """The probability of each token after those before it; None for the first."""
    return [None, *np.exp(-loss).tolist()]


def outcome(look: Look, hero: Hero) -> None:
    """The next token and the loss, with those of the unchanged run beside them."""
    after, before = look.trace.prediction, look.baseline and look.baseline.prediction
    if after is None:
        _vectors(look)
        return
    likely = expectation((before or after).after(-1), after.after(-1), LISTED)
    decimals = min(settled(_error(look)), 3)
    tokens = [token.text for token in look.model.tokenizer.named(likely.ids)]
    rows = "".join(
        _row(token, after, before if look.baseline else None, decimals)
        for token, before, after in zip(tokens, likely.before, likely.after, strict=True)
    )
    last = html.escape(token_label(look.trace.tokens_of("decoder")[-1].text))
    st.html(
        f'<style>{_STYLE}</style><table class="outcome"><caption>Next after <code>{last}</code></caption>'
        f"<tbody>{rows}</tbody></table>"
    )
    if hero.loss is not None:
        words = " → ".join(html.escape(loss) for loss in hero.loss.values() if loss is not None)
        st.html(f'<p class="outcome" title="{LOSS}">Loss of the sentence <b>{words}</b> nats</p>')


def _error(look: Look) -> float:
    """How far rounding may move a log probability of either run."""
    return max(rounding(run) for run in (look.trace, look.baseline) if run is not None)


def _vectors(look: Look) -> None:
    """How far a change moves the sentence vector of an encoder, the mean of its last states."""
    before = look.baseline
    if before is None:
        st.caption("This model predicts no next token. It makes one vector of the sentence.")
        return
    old, new = (
        run.residual["encoder"][-1].mean(0, dtype=np.float64) for run in (before, look.trace)
    )
    cosine = float(old @ new / (np.linalg.norm(old) * np.linalg.norm(new)))
    st.markdown(
        f"**Vector of the sentence** cosine {signed(f'{cosine:.3f}')} with the one before",
        help="The mean of the last vectors of its tokens; 1 is the same direction.",
    )


def _row(token: str, after: float, before: float | None, decimals: int) -> str:
    ghost = "" if before is None else f'<i class="ghost" style="--share:{before:.4f}"></i>'
    was = "" if before is None else f"<small>was {fixed(before, decimals)}</small>"
    return (
        f'<tr><th scope="row">{html.escape(token_label(token, LABEL))}</th><td class="bar">{ghost}'
        f'<i style="--share:{after:.4f}"></i></td><td>{fixed(after, decimals)}</td><td>{was}</td></tr>'
    )
