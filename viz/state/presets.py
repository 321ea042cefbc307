"""Sentences and interventions to start from, each with what to look for. Pure.

What each one says is held by a test on the model that ships with the app.
"""

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from model.nn.intervention import Intervention
from model.nn.patches import Patch, PatchPart
from model.nn.places import Head
from viz.notation.words import sentences_of
from viz.state.link import View

say = sentences_of("state.presets")

# Sentences to start from, each with the head to open and what to look for.
# They stand in examples.toml. Whatever an example says is computed on its model in
# `tests/viz/state/test_examples.py`: the largest cell of the row, the line beside the diagonal row by row,
# the column, and what the model writes next.


@dataclass(frozen=True)
class SentenceExample:
    """A view worth opening, and what is to be seen there.

    without: the heads that are left out to show what they are needed for. refers: the word of the chosen row,
    where its weights show what it stands for; "" elsewhere.
    """

    title: str
    view: View
    look_for: str
    without: frozenset[Head] = field(default=frozenset(), kw_only=True)
    refers: str = field(default="", kw_only=True)

    @property
    def left_out(self) -> View:
        """The view without these heads."""
        return replace(self.view, intervention=Intervention(ablated=self.without))


def view_of(
    model: str,
    text: str,
    head: Head,
    cell: tuple[int, int],
    show: str = "",
    intervention: Intervention = Intervention(),
) -> View:
    """The view of one head's cell. cell: (query, key), the largest of its row."""
    (place, number), (query, key) = head, cell
    return View(
        text, model, place, number, query=query, key=key, show=show, intervention=intervention
    )


def _written() -> tuple[SentenceExample, ...]:
    data = tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))
    return tuple(
        SentenceExample(
            one.pop("title"),
            look_for=one.pop("look_for"),
            without=frozenset((place, head) for place, head in one.pop("without", ())),
            refers=one.pop("refers", ""),
            view=view_of(**one),
        )
        for one in data["example"]
    )


def example_claim(view: View) -> str | None:
    """What is to be seen in a view, where its head is that of an example."""
    shown = _head_of(view)
    return next((one.look_for for one in EXAMPLES if _head_of(one.view) == shown), None)


def reference_example(view: View) -> SentenceExample | None:
    """An example of another model with a head that finds what a word of the view's sentence stands for. None
    where there is no such word, or it stands first; and for the example's own sentence."""
    for example in EXAMPLES:
        if not example.refers or example.view.model == view.model:
            continue
        if re.search(rf"\w\W+{example.refers}\b", view.text, re.IGNORECASE):
            return example
    return None


def _head_of(view: View) -> tuple[str, str, str, int]:
    return view.text, view.model, view.place, view.head


EXAMPLES = _written()
FIRST = EXAMPLES[0].view  # what a visitor sees who comes without a link


PATCH = "Patch"  # the experiment that puts parts of another run in
REPEATED = say("cat_dog_mat_hat")
SURNAME = View.text


@dataclass(frozen=True)
class Preset(SentenceExample):
    """A view with an intervention, what is to be seen there, and the question that it answers."""

    question: str
    put_in: str = ""  # what the map of patches shows


PRESETS: tuple[Preset, ...] = (
    Preset(
        "No scaling",
        view_of("stories", SURNAME, ("decoder.1.self", 0), (12, 6), "", Intervention(scale=1.0)),
        say("without_division_scores"),
        say("weights_stay_spread"),
    ),
    Preset(
        "No mask",
        view_of("stories", REPEATED, ("decoder.1.self", 2), (1, 7), "", Intervention(mask="none")),
        say("word_now_attend"),
        say("word_sees_next"),
    ),
    Preset(
        "No positions",
        view_of(
            "translate-en-fr",
            say("black_cat_sees_white"),
            ("encoder.1.self", 0),
            (0, 4),
            "",
            Intervention(positions=False),
        ),
        say("encoder_mask_without"),
        say("still_know_order"),
    ),
    Preset(
        "Without one head",
        view_of(
            "stories",
            REPEATED,
            ("decoder.1.self", 2),
            (10, 6),
            "",
            Intervention(ablated=frozenset({("decoder.0.self", 1)})),
        ),
        say("second_mat_unchanged"),
        say("still_copy"),
    ),
    Preset(
        "Padding",
        view_of(
            "stories",
            SURNAME,
            ("decoder.1.self", 3),
            (12, 1),
            "",
            Intervention(hidden=frozenset({1})),
        ),
        say("surname_treated_padding"),
        say("token_may_attend"),
    ),
    Preset(
        "One edge cut",
        view_of(
            "stories",
            SURNAME,
            ("decoder.0.self", 1),
            (0, 0),
            "",
            Intervention(blocked=frozenset({(0, 0)})),
        ),
        say("first_token_may"),
        say("row_keys_masked"),
    ),
    Preset(
        "Sliding window",
        view_of("stories", REPEATED, ("decoder.1.self", 2), (10, 6), "", Intervention(window=4)),
        say("token_reads_itself"),
        say("far_back_must_read"),
    ),
    Preset(
        "No sinks",
        view_of(
            "all-stages", SURNAME, ("decoder.0.self", 1), (0, 0), "", Intervention(sinks=False)
        ),
        say("head_untrained_model"),
        say("sink_weight_go"),
    ),
)


HEAD_OUTPUTS, STREAM_STATES = "Heads", "Residual stream"  # two of what is put in
PATCH_KIND = "laboratory-patch-kind"  # the choice among them, also in the link
_EXCHANGED = say("anna_hill_met_tom")
_REED = say("tom_reed_saw_red")
_H_FOR_M = "q f h b t x k q f h b t x k q f"


def _patched(view: View, other: str, *parts: PatchPart) -> View:
    patch = Patch(view.model, other, frozenset(parts))
    return replace(view, second_text=other, intervention=Intervention(patch=patch))


PATCHES: tuple[Preset, ...] = (
    Preset(
        "Who came before",
        _patched(
            view_of(
                "stories",
                say("tom_hill_met_anna"),
                ("decoder.1.self", 2),
                (9, 4),
                PATCH,
            ),
            _EXCHANGED,
            ("head", "decoder.0.self", 1),
        ),
        say("b_first_names_exchanged"),
        say("head_tells_names"),
        HEAD_OUTPUTS,
    ),
    Preset(
        say("name"),
        _patched(
            view_of("house-gpt", SURNAME, ("decoder.1.self", 7), (12, 1), PATCH),
            _REED,
            ("stream", "decoder.2.self", 12),
        ),
        say("before_layer_1_surname"),
        say("surname_layer_layer"),
        STREAM_STATES,
    ),
    Preset(
        say("places_copy"),
        _patched(
            view_of(
                "induction",
                "q f m b t x k q f m b t x k q f",
                ("decoder.1.self", 2),
                (15, 9),
                PATCH,
            ),
            _H_FOR_M,
            ("stream", "decoder.1.self", 9),
        ),
        say("after_q_f_comes"),
        say("letters_copied"),
        STREAM_STATES,
    ),
)


def preset_of(view: View) -> Preset | None:
    """The preset whose sentence, model and change this view has."""
    for preset in (*PRESETS, *PATCHES):
        tried = preset.view
        if (tried.text, tried.model, tried.intervention) == (
            view.text,
            view.model,
            view.intervention,
        ):
            return preset
    return None
