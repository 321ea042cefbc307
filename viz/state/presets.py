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
from viz.state.link import View

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
REPEATED = "cat dog mat hat cup cat dog mat hat cup cat"
SURNAME = "Tom Hill saw a red ball. Anna gave the ball to Tom"


@dataclass(frozen=True)
class Preset(SentenceExample):
    """A view with an intervention, what is to be seen there, and the question that it answers."""

    question: str
    put_in: str = ""  # what the map of patches shows

    def change_of(self, view: View, *, stacks: int = 1) -> Intervention:
        """Its intervention on the sentence and model of a view: the head that is left out is the open one,
        the token that is hidden the chosen key. stacks: of the model; with two, an edge is one of the open
        sub-layer."""
        change = self.view.intervention
        return replace(
            change,
            ablated=frozenset({(view.place, view.head)} if change.ablated else ()),
            hidden=frozenset({view.key} if change.hidden else ()),
            only=frozenset({view.place}) if change.blocked and stacks > 1 else change.only,
        )


PRESETS: tuple[Preset, ...] = (
    Preset(
        "No scaling",
        view_of("stories", SURNAME, ("decoder.1.self", 0), (12, 6), "", Intervention(scale=1.0)),
        "Without the division by √dₖ the scores are larger, and most rows put nearly all their "
        "weight on one token. Over both layers the mean entropy falls to less than a third. In L1H0 the "
        "last “Tom” turns from “to” (0.97) to the full stop (1.00).",
        "Do the weights stay spread out?",
    ),
    Preset(
        "No mask",
        view_of("stories", REPEATED, ("decoder.1.self", 2), (1, 7), "", Intervention(mask="none")),
        "Each word can now attend to what follows it, and that is the answer: “dog” attends to the "
        "second “mat”. The loss falls from 6.2 to 0.3, even in the first half, where nothing can "
        "be predicted. A loss that is too good is the sign of a missing mask.",
        "What if each word sees the next one?",
    ),
    Preset(
        "No positions",
        view_of(
            "translate-en-fr",
            "the black cat sees the white dog",
            ("encoder.1.self", 0),
            (0, 4),
            "",
            Intervention(positions=False),
        ),
        "The encoder has no mask, so without positions the rows of both “the” are equal, and the "
        "decoder can no longer tell which animal is black. A GPT keeps some order even without "
        "positions, because its causal mask shows each token only the earlier ones.",
        "Does it still know the order of the words?",
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
        "From the second “mat” on the unchanged model predicts each word (0.99 and more). Without "
        "L0H1 the mean of these four falls to 0.18. The heads that copy are in layer 1, and they "
        "need what L0H1 tells them: which word came before. The second “dog” is predicted in "
        "neither run (0.00): the first “cat”, without a space before it, is a different token.",
        "Can it still copy?",
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
        "The surname is treated as padding: no token may attend to “Hill”. The model no longer "
        "knows what follows “Tom”.",
        "What if no token may attend to one word?",
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
        "The first token may attend only to itself, and that edge is cut. With −∞ its row would be "
        "0/0; here such a row is zero and reads nothing. Set the mask value to −1e9, and the row "
        "becomes uniform over all tokens, the future included.",
        "What does a row do if all its keys are masked?",
    ),
    Preset(
        "Sliding window",
        view_of("stories", REPEATED, ("decoder.1.self", 2), (10, 6), "", Intervention(window=4)),
        "Each token reads itself and the three before it. From the second “mat” on the unchanged model "
        "predicts each word (0.99 and more), with this window none (0.00): the word to copy stands four "
        "tokens back. Widen the window to 5, and all four are predicted again.",
        "How far back must it read?",
    ),
    Preset(
        "No sinks",
        view_of(
            "all-stages", SURNAME, ("decoder.0.self", 1), (0, 0), "", Intervention(sinks=False)
        ),
        "Each head of this untrained model has a sink: it joins every row of the softmax and reads nothing. "
        "In L0H1 it takes 0.87 of the first row, so the first token gives itself 0.13. Without sinks that is "
        "1.00, and each row sums to 1. In layer 0 all weights of a row grow by one factor; later layers also "
        "read other vectors.",
        "Where does a sink’s weight go?",
    ),
)


HEAD_OUTPUTS, STREAM_STATES = "Heads", "Residual stream"  # two of what is put in
PATCH_KIND = "laboratory-patch-kind"  # the choice among them, also in the link
_EXCHANGED = "Anna Hill met Tom King near the river. Tom"
_REED = "Tom Reed saw a red ball. Anna gave the ball to Tom"
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
                "Tom Hill met Anna King near the river. Tom",
                ("decoder.1.self", 2),
                (9, 4),
                PATCH,
            ),
            _EXCHANGED,
            ("head", "decoder.0.self", 1),
        ),
        "In B the two first names are exchanged, so “King” follows the last “Tom”. Only L0H1 is taken from "
        "B, the head that attends to the token before in eight of nine rows, and the answer is King: its "
        "share is 1.00. In layer 1, L1H1, L1H2 and L1H3 move it by 0.25 to 0.42, L1H0 not at all. “Path to "
        "the chosen head” shows that L1H2 reads L0H1 in its keys: 0.39. The estimate fails here: it gives "
        "L0H1 −0.01.",
        "Which head tells the names apart?",
        HEAD_OUTPUTS,
    ),
    Preset(
        "Where the name is",
        _patched(
            view_of("house-gpt", SURNAME, ("decoder.1.self", 7), (12, 1), PATCH),
            _REED,
            ("stream", "decoder.2.self", 12),
        ),
        "Before layer 1 the surname is in the stream at “Hill” alone: taken from B there, the answer is "
        "Reed, 1.00. Before layer 2 it is at the last “Tom” alone, 1.01. So layer 1 carries it over. Its "
        "heads share that work: no single one moves the answer by more than 0.17.",
        "Where is the surname, layer by layer?",
        STREAM_STATES,
    ),
    Preset(
        "Two places to copy from",
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
        "After “q f” comes “m” twice, in B “h” twice. One of the two places alone moves the answer by 0.41 "
        "or 0.59, both together all the way: the answer is copied from both.",
        "Which of the two letters is copied?",
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
