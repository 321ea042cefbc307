"""Which experts of a feed-forward read each token, and with what weight."""

import numpy as np
import streamlit as st

from model.nn.places import Place
from model.trace.records import ExpertsRecord
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_listed
from viz.figures.heatmap import Axis
from viz.figures.vectors import ColourEnd, colour_end
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.shell.controls import LISTED, choosable_rows
from viz.shell.pictures import look_for, table
from viz.state.look import Look
from viz.views.feed_forward.sublayers import one_sublayer

TOKEN = "experts-token"
EXPERTS = "Experts"
_FORMULA = r"\mathrm{FFN}(x) = \sum_{e\,\in\,\text{chosen}} w_e(x)\, E_e(x) \;(+\;\text{shared})"


@st.fragment
@error_boundary()
def experts(seen: Look) -> None:
    """Token × expert: the weights by which the outputs of the chosen experts are multiplied."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        layer_box, token_box = st.columns([3, 2], gap="small")
        with layer_box:
            record = _chosen(seen)
        tokens = [one.text for one in seen.trace.tokens_of(Place.named(record.name).stack)]
        labels = numbered_labels(tokens, LISTED)
        token = one_listed("Token", labels, TOKEN, box=token_box)
        st.latex(_FORMULA)
        st.markdown(_of_token(record, token, tokens[token]))
        st.caption(_rule(record))
    read = np.array([(record.chosen == number).sum() for number in range(record.logits.shape[1])])
    most = int(read.argmax())
    look_for(
        f"Each token is read by {record.chosen.shape[1]} of {len(read)} experts, and what they give is added "
        f"up, each times its weight. Expert {most} reads most: {read[most]} of {len(tokens)} tokens.",
        said,
    )
    shares = record.shares
    within = bool(shares.max() <= 1)  # DeepSeek multiplies them by a factor
    with picture:
        choosable_rows(
            shares,
            tokens=tokens,
            columns=Axis("expert", list(map(str, range(len(read)))), tokens=False),
            quantity="weight" if within else "stream",
            end=ColourEnd(1.0, 0, shares.size, signed=False) if within else colour_end(shares),
            key=f"experts-{record.name}",
            chosen=TOKEN,
        )
    _numbers(record, labels)


def _chosen(seen: Look) -> ExpertsRecord:
    records = {record.name: record for record in seen.trace.experts}
    return records[one_sublayer("Layer", list(records), seen, "experts-layer")]


def _of_token(record: ExpertsRecord, token: int, text: str) -> str:
    """The experts of one token, the largest weight first."""
    order = np.argsort(-record.weights[token])
    parts = (
        f"expert {record.chosen[token, at]} with weight **{record.weights[token, at]:.3f}**"
        for at in order
    )
    return f"Token {token} {bold_token(text)} goes to {', '.join(parts)}."


def _rule(record: ExpertsRecord) -> str:
    """Whether the chosen experts are those of the largest logits, in the numbers of this sentence."""
    count = record.chosen.shape[1]
    largest = np.sort(np.argsort(-record.logits, -1)[:, :count], -1)
    same = int((largest == np.sort(record.chosen, -1)).all(-1).sum())
    tokens = len(record.logits)
    whose = f"for {same} of {tokens} tokens these are the experts with its {count} largest logits"
    more = "" if same == tokens else "; this model's router also limits or corrects the choice"
    return (
        f"A router gives each expert a logit; {whose}{more}. Weights and choice are the router's own. "
        "Some models, as DeepSeek, add shared experts, which read every token and are not drawn here."
    )


def _numbers(record: ExpertsRecord, labels: list[str]) -> None:
    """A row for each token: its experts, their weights, and all logits."""
    columns: dict[str, object] = {"token": labels}
    for place in range(record.chosen.shape[1]):
        columns[f"expert, choice {place + 1}"] = record.chosen[:, place]
        columns[f"weight, choice {place + 1}"] = record.weights[:, place]
    logits = {
        f"logit of expert {number}": record.logits[:, number]
        for number in range(record.logits.shape[1])
    }
    table(columns | logits, f"experts-{record.name}")
