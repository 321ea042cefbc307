"""A question on the page: the reader chooses an answer, then sees what the model does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.heads.statistics import chosen_tiles, family_of, tiles
from viz.elements.plot import plot
from viz.figures.head_tiles import tiles_in_a_row
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.questions.next_tokens import next_token, settled_state, warmed
from viz.questions.question import Question, QuestionMaker, Scene, first_clear
from viz.questions.rows import copying_head, previous_head
from viz.state.link import View
from viz.state.look import traced
from viz.state.session import current

if TYPE_CHECKING:
    from viz.state.look import Look

say = sentences_of("questions.show")

_COMMITTED = "question-answered"  # session state: question -> the chosen option
_MOST_ANSWERS = 60  # answers that are remembered

# Which questions a page asks, in turn.
MAKERS: dict[str, tuple[QuestionMaker, ...]] = {
    "prediction": (next_token, warmed, settled_state),
    "all-heads": (copying_head, previous_head),
}


def scene_of(look: "Look", view: View) -> Scene:
    """The sentence of a page with the layer and head of a view, for questions."""
    names = look.model.attention_names
    place = view.place if view.place in names else names[0]
    return Scene(
        lambda intervention: traced(replace(look.request, intervention=intervention)),
        look.model.tokenizer.named,
        place,
        min(view.head, look.trace.find(place).heads - 1),
        look.model.unembed,
    )


def try_yourself(page: str, look: "Look") -> bool:
    """An expander that asks one question at a time, and computes nothing while closed. Returns whether no
    question waits for an answer."""
    row = st.expander(say("try_yourself_predict"), key=f"try-{page}", on_change="rerun")
    if not row.open:
        return True
    with row:
        return _one_by_one(page, scene_of(look, current()))


def asks(page: str) -> bool:
    """Whether the expander of a page is open."""
    return bool(st.session_state.get(f"try-{page}"))


def _one_by_one(page: str, scene: Scene) -> bool:
    number = f"try-{page}-number"
    start = st.session_state.get(number, 0)
    clear = first_clear(scene, MAKERS[page], start)
    clear = clear or (first_clear(scene, MAKERS[page], 0) if start else None)
    if clear is None:
        st.caption(say("question_clear_answer"))
        return True
    question, following = clear
    answered = ask(question, f"try-{page}", scene)
    st.button(
        "New question",
        key=f"try-{page}-new",
        type="tertiary",
        on_click=lambda: st.session_state.update({number: following}),
    )
    return answered


def ask(question: Question, key: str, scene: Scene) -> bool:
    """Asks, and shows the answer once the reader has chosen one. Returns whether the reader has."""
    if question in _answers():
        chosen = _answers()[question]
        answer, given = (plain(question.options[place]) for place in (question.answer, chosen))
        st.markdown(plain(question.prompt))
        verdict = (
            f"Right: {answer}."
            if chosen == question.answer
            else say("said_model_says", given=given, answer=answer)
        )
        st.markdown(f"**{verdict}** {plain(question.numbers)}")
        st.caption(f"Why: {plain(question.why)}")
        _pictures(question, scene, key)
        return True

    def commit(option: int) -> None:
        answers = {**_answers(), question: option}
        st.session_state[_COMMITTED] = dict(list(answers.items())[-_MOST_ANSWERS:])

    st.markdown(plain(question.prompt))
    _pictures(question, scene, key, commit)
    with st.container(horizontal=True, gap="xsmall", key=f"{key}-options"):
        for place, option in enumerate(question.options):
            name = f"{key}-{abs(hash(question))}-{place}"
            st.button(plain(option), key=name, on_click=commit, args=(place,))
    return False


def is_answered(question: Question) -> bool:
    """Whether the reader has chosen an answer."""
    return question in _answers()


def _pictures(
    question: Question, scene: Scene, key: str, take: Callable[[int], None] | None = None
) -> None:
    """The heads to choose among, each as a small picture of its weights. take: hears the option that is
    clicked; None where the answer is there."""
    if question.heads:
        pictures = chosen_tiles(
            tiles(scene.trace, family_of(scene.trace, scene.attention)), question.heads
        )
        figure = tiles_in_a_row(pictures, question.options)
        plot(figure, f"{key}-heads" if take is None else f"{key}-choice-heads", clicked=take)


def _answers() -> dict[Question, int]:
    answers: dict[Question, int] = st.session_state.get(_COMMITTED, {})
    return dict(answers)


def answerable(scene: Scene, makers: Sequence[QuestionMaker]) -> Question | None:
    """The first question of these kinds that has a clear answer on this sentence."""
    clear = first_clear(scene, makers, 0)
    return None if clear is None else clear[0]
