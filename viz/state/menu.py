"""The pages, in the order of the path through them: the one list that the menu is drawn from."""

from dataclasses import dataclass
from pathlib import PurePath

HOME = "pages/home.py"


@dataclass(frozen=True)
class PageEntry:
    """A page's file, its name in the menu, and one line on where it stands in the whole picture."""

    file: str
    title: str
    line: str
    heading: str = ""  # above the page, where it is not the title

    @property
    def address(self) -> str:
        """Where it is found, behind the app's own address and a slash."""
        return "" if self.file == HOME else PurePath(self.file).stem


MENU: dict[str, tuple[PageEntry, ...]] = {
    "": (
        PageEntry(
            HOME,
            "Home",
            "Type a sentence and see, number by number, what a transformer does with it. "
            "Every number is the model's own, and checked.",
            "The attention visualizer",
        ),
    ),
    "Look inside": (
        PageEntry(
            "pages/attention.py",
            "Attention, step by step",
            "One head, from queries, keys and values to its output.",
        ),
        PageEntry(
            "pages/all_heads.py",
            "All heads",
            "Which head to look at, what each one writes, and what each is needed for.",
        ),
        PageEntry(
            "pages/encoder_decoder.py",
            "Encoder and decoder",
            "One stack reads a sentence, the other writes it in French, word by word.",
        ),
    ),
    "Change it": (
        PageEntry(
            "pages/laboratory.py",
            "Laboratory",
            "Change the mask, the scaling, positions or heads, and see what that does.",
            "Masks, scaling and other changes",
        ),
    ),
    "Step by step": (
        PageEntry(
            "pages/tokens.py",
            "Tokens and embeddings",
            "From letters to ids to vectors: what the model reads.",
        ),
        PageEntry(
            "pages/positions.py",
            "Positions",
            "How a model knows which token comes first, and what is lost without.",
        ),
        PageEntry(
            "pages/layer_norm.py",
            "Layer norm",
            "Between the sub-layers: each token's vector brought to the same size.",
        ),
        PageEntry(
            "pages/feed_forward.py",
            "Feed-forward and stream",
            "What each token's vector goes through alone, and what every sub-layer adds to it.",
            "Feed-forward and residual stream",
        ),
        PageEntry(
            "pages/prediction.py",
            "Prediction",
            "From the last state of the stream to the next token, and on, token by token.",
        ),
        PageEntry(
            "pages/shapes_and_cost.py",
            "Shapes and cost",
            "How large everything is, what it costs, and how that grows with the text.",
        ),
    ),
    "Learn": (
        PageEntry(
            "pages/examples.py",
            "Examples",
            "Sentences worth opening, each with the head to look at and what is to be seen.",
        ),
        PageEntry(
            "pages/training.py",
            "Training",
            "Before all this: random numbers. How training turns them into heads that do a job.",
        ),
        PageEntry(
            "pages/worked_examples.py",
            "Worked examples",
            "Every example of the notes, step by step, with numbers you can change.",
        ),
        PageEntry(
            "pages/glossary.py",
            "Glossary",
            "Each term in one sentence, and the page where it is used.",
        ),
    ),
}

PAGES: tuple[PageEntry, ...] = tuple(page for group in MENU.values() for page in group)


def entry(file: str) -> PageEntry:
    """The page of a file. Raises KeyError if the menu does not list it."""
    return {page.file: page for page in PAGES}[file]
