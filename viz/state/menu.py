"""The pages, in the order of the path through them: the one list that the menu is drawn from."""

from dataclasses import dataclass

HOME = "pages/home.py"


@dataclass(frozen=True)
class PageEntry:
    """A page's file, its name in the menu, and one line on where it stands in the whole picture.

    reads: whether it runs a model on the sentence. lends: whether it may open another sentence and model than
    the visitor's. has_beats: whether its parts stand beside its heading: the idea, by hand, on the sentence.
    """

    file: str
    title: str
    line: str
    heading: str = ""  # above the page, where it is not the title
    reads: bool = True
    lends: bool = False
    has_beats: bool = True

    @property
    def address(self) -> str:
        """Where it is found, behind the app's own address and a slash."""
        return "" if self.file == HOME else self.file.removeprefix("pages/").removesuffix(".py")


MENU: dict[str, tuple[PageEntry, ...]] = {
    "": (
        PageEntry(
            HOME,
            "Home",
            "Type a sentence and see, number by number, what a transformer does with it. "
            "Every number is the model's own, and checked.",
            "The attention visualizer",
            has_beats=False,
        ),
    ),
    "Through the model": (
        PageEntry(
            "pages/tokens.py",
            "Tokens and embeddings",
            "From letters to ids to vectors: what the model reads.",
        ),
        PageEntry(
            "pages/positions.py",
            "Positions",
            "How a model knows which token comes first, and what it loses without positions.",
        ),
        PageEntry(
            "pages/attention.py",
            "Attention, step by step",
            "One head, from queries, keys and values to its output.",
        ),
        PageEntry(
            "pages/all_heads.py",
            "All heads",
            "What each head attends to, what it writes, and what the model loses without it.",
        ),
        PageEntry(
            "pages/layer_norm.py",
            "Layer norm",
            "Between the sub-layers, the vector of each token is brought back to the same size.",
        ),
        PageEntry(
            "pages/feed_forward.py",
            "Feed-forward and stream",
            "What happens to each token's vector alone, and what every sub-layer adds to it.",
            "Feed-forward and residual stream",
        ),
        PageEntry(
            "pages/prediction.py",
            "Prediction",
            "From the last state of the stream to the next token, and so on, token by token.",
        ),
        PageEntry(
            "pages/encoder_decoder.py",
            "Encoder and decoder",
            "One stack reads a sentence, the other writes it in French, word by word.",
            lends=True,
        ),
    ),
    "Experiments": (
        PageEntry(
            "pages/laboratory.py",
            "Laboratory",
            "Change the mask, the scaling, the positions or the heads, and see the effect.",
            "Masks, scaling and other changes",
        ),
        PageEntry(
            "pages/training.py",
            "Training",
            "How training turns random numbers into heads that do a job.",
            reads=False,
            lends=True,
        ),
        PageEntry(
            "pages/corpus.py",
            "Heads over a corpus",
            "What every head does over a whole text, and not on one sentence only.",
            has_beats=False,
        ),
        PageEntry(
            "pages/shapes_and_cost.py",
            "Shapes and cost",
            "How large the arrays are, what they cost, and how both grow with the text.",
        ),
    ),
    "Reference": (
        PageEntry(
            "pages/worked_examples.py",
            "Worked examples",
            "Every calculation, step by step, with numbers that you can change.",
            reads=False,
        ),
        PageEntry(
            "pages/model_as_code.py",
            "Code",
            "The open model as one listing of PyTorch, with the shapes of your sentence.",
            "The model as code",
            has_beats=False,
        ),
        PageEntry(
            "pages/examples.py",
            "Examples",
            "Sentences to open, each with a head and what to look for in it.",
            reads=False,
            has_beats=False,
        ),
        PageEntry(
            "pages/glossary.py",
            "Glossary",
            "Each term in one sentence, with the page where it is used.",
            reads=False,
            has_beats=False,
        ),
        PageEntry(
            "pages/for_a_class.py",
            "For a class",
            "A lesson of 90 minutes, exercises with other numbers for each pupil, one link for all.",
            has_beats=False,
        ),
    ),
}

PAGES: tuple[PageEntry, ...] = tuple(page for group in MENU.values() for page in group)


def entry(file: str) -> PageEntry:
    """The page of a file. Raises KeyError if the menu does not list it."""
    for page in PAGES:
        if page.file == file:
            return page
    raise KeyError(file)
