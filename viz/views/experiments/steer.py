"""A multiple of the difference of two sentences, added to the stream before a layer, and what comes of it."""

import numpy as np
import streamlit as st

from model.analysis.stream.steering import continuation, direction, steered
from model.nn.places import layer_label
from model.serving.engine import Request
from model.trace.unproven import NotShownError
from viz.figures.curves import MeasuredCurve, curves
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import fixed, signed
from viz.notation.theme import CURVES
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Check, Formula, Panel, Table, refusals
from viz.state.engine import engine
from viz.state.link import TEXT_LIMIT
from viz.state.look import Look, traced

say = sentences_of("experiments.steer")

TOWARD, AWAY = say("he_happy_full_joy"), say("he_sad_full_grief")
MULTIPLES = (-4, -3, -2, -1, 0, 1, 2, 3, 4)
FOLLOWED, WRITTEN = (
    3,
    12,
)  # tokens whose probability is drawn from each end; tokens that are written
STEERED = r"""s'_i = s_i + m \left(s^{\text{toward}}_{\text{last}} - s^{\text{away}}_{\text{last}}\right)"""


def _written(multiple: int) -> str:
    return signed(f"{multiple:+d}")


def steer(look: Look) -> Panel:
    """The probabilities of next tokens by the multiple that is added, and the text that one of them gives."""
    if look.trace.prediction is None or look.model.config.shape != "decoder":
        raise NotShownError("This model does not continue a text, so there is nothing to steer.")
    toward = st.text_input(
        "Toward", TOWARD, max_chars=TEXT_LIMIT, key="steer-toward", bind="query-params"
    )
    away = st.text_input(
        "Away from", AWAY, max_chars=TEXT_LIMIT, key="steer-away", bind="query-params"
    )
    multiple = st.select_slider(
        "Multiple", MULTIPLES, 2, _written, key="steer-multiple", bind="query-params", width=240
    )
    with refusals():
        one, other = (traced(Request(look.request.model, text)) for text in (toward, away))
        vector = direction(one, other, look.place)
        with engine().turn(lambda waiting: None):
            passes = steered(look.model, look.trace, vector, look.place, MULTIPLES)
            written = continuation(look.model, look.trace, vector, look.place, multiple, WRITTEN)
    shares, zero, chosen = passes.probabilities, MULTIPLES.index(0), MULTIPLES.index(multiple)
    ends = [np.argsort(-shares[at])[:FOLLOWED] for at in (chosen, zero, 0, -1)]
    followed = list(dict.fromkeys(int(token) for end in ends for token in end))[: len(CURVES)]
    names = [token_label(token.text) for token in look.model.tokenizer.named(followed)]
    drawn = [
        MeasuredCurve(name, shares[:, token].tolist(), CURVES[number])
        for number, (name, token) in enumerate(zip(names, followed, strict=True))
    ]

    def first(at: int) -> str:
        token = int(shares[at].argmax())
        (named,) = look.model.tokenizer.named([token])
        return f"{bold_token(named.text)} ({fixed(shares[at, token], 2)})"

    length = float(np.linalg.norm(vector))
    apart = float(np.abs(passes.logits[zero] - look.trace.prediction.after(-1)).max())
    words = "".join(token.text for token in written)
    loss = (
        say("loss_sentence_nats", chosen_loss=passes.loss[chosen], zero_loss=passes.loss[zero])
        if passes.loss is not None
        else ""
    )
    return Panel(
        "experiment-steer",
        look_for=say(
            "0_model_unchanged",
            first=first(zero),
            written=_written(multiple),
            chosen_first=first(chosen),
        ),
        picture=curves(
            MULTIPLES, drawn, axis=say("multiple_added"), unit="probability", linear=True
        ),
        beside=[
            Formula(STEERED),
            say(
                "times_difference_before",
                written=_written(multiple),
                layer_label=layer_label(look.place),
                text=look.trace.tokens[-1].text,
                words=words.strip(),
                loss=loss,
            ),
        ],
        below=[Caption(say("difference_taken_last", length=length))],
        check=Check(
            say("check_0_nothing", apart=apart),
            apart,
        ),
        table=Table(
            {"multiple": MULTIPLES, **dict(zip(names, shares[:, followed].T, strict=True))}
        ),
    )
