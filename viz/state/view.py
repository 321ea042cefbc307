"""What a visitor looks at, as plain values: the part of the state that lives in the link. Pure."""

from dataclasses import dataclass, replace

from model.nn.intervention import Intervention
from model.system.settings import settings
from viz.explorer.selection import Selection

TEXT_LIMIT = settings().longest_text  # characters of a sentence in the box or in a link


@dataclass(frozen=True)
class View:
    """A sentence, a model, a place in it and the intervention. Defaults are left out of the link."""

    text: str = "Tom Hill saw a red ball. Anna gave the ball to Tom"
    model: str = "house-gpt"
    place: str = "decoder.1.self"  # attention sub-layer
    head: int = 7
    stage: str = "weights"
    query: int = 12
    key: int = 1
    show: str = ""  # which of a page's views; "": the first
    target: str | None = None  # what an encoder–decoder's decoder reads; None: its own output
    languages: str = (
        ""  # of a translator's text and target, "eng_Latn fra_Latn"; "": those of its files
    )
    second_text: str = ""  # beside the first, where two are compared
    second_model: str = ""
    intervention: Intervention = Intervention()

    @property
    def selection(self) -> Selection:
        return Selection(self.head, self.stage, self.query, self.key)

    def at(self, selection: Selection) -> "View":
        """The same view at another head, stage and cell."""
        return replace(self, **vars(selection))
