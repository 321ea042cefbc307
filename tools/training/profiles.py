"""Makes the profiles that ship: what each head of a model does over a text that it was not trained on.

`python -m tools.training.profiles [NAME …]`. Stop it with Ctrl-C: the same command goes on from there.
With `--labels` it asks the heads anew for their labels, and leaves the rest of each profile as it is.
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from model.loading.registry import load_model
from model.profile.battery import labels
from model.profile.corpus_profile import open_profile
from model.profile.run import RunProgress, profile
from model.profile.shipped import FOLDER, MADE, Made, at_step, made, model_and_step
from model.profile.store import write_labels
from model.run.model import Model
from model.run.weights_hash import weights_hash
from model.system.files import write_whole
from model.system.machine import processor
from model.training import grammar
from model.training.checkpoints import shipped_training_run
from model.training.induction import CONTEXT, InductionTask, in_context_bigrams
from model.training.recipe import Random
from tools.training import corpus, micro_stories
from tools.training.translate import is_held_out_sentence

WORK = Path(".training") / "profiles"
SEED = 7_001  # of no training run
LONGEST = 150_000  # characters of a text
_GRAMMAR = "drawn for this profile from the grammar of this project"


@dataclass(frozen=True)
class ProfilePlan:
    """A text to profile a model over. by_line: each line is a text of its own. windows: how many of it."""

    file: str
    text: str  # what it is, after "tokens of"
    source: str
    lines: Callable[[Random], Iterable[str]]
    by_line: bool = False
    windows: int | None = None

    def written(self, folder: Path) -> Path:
        """Its file."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / self.file
        write_whole(file, "\n".join(self.lines(np.random.default_rng(SEED))).encode())
        return file


def books(characters: int, windows: int | None = None) -> ProfilePlan:
    """So much of each of the three collections, of the parts that house-gpt has not learned from."""

    def lines(random: Random) -> Iterator[str]:
        for text in corpus.texts().values():
            _, held_out = corpus.split(text)
            yield from _up_to(iter(held_out.splitlines()), characters)

    part = "" if windows is None else f", the first {windows} windows of them"
    return ProfilePlan(
        f"books-{3 * characters // 1000}k.txt",
        "the Bible, Jane Austen and Shakespeare",
        f"of each of the three {characters:,} characters that are held out in the training of house-gpt"
        f"{part}; public domain (tools/training/books)",
        lines,
        windows=windows,
    )


def _stories(random: Random) -> Iterator[str]:
    return _up_to((micro_stories.story(random) for _ in iter(int, 1)), LONGEST)


def _sentences(random: Random) -> Iterator[str]:
    drawn = (grammar.sentence(random) for _ in iter(int, 1))
    new = (" ".join(one.english) for one in drawn if is_held_out_sentence(one))
    return _up_to(new, LONGEST // 15)  # the decoder writes each translation word by word


def _letters(random: Random) -> Iterator[str]:
    task = InductionTask()
    rows, _ = in_context_bigrams(
        random, np.arange(task.tokenizer.size), count=LONGEST // (2 * CONTEXT), length=CONTEXT
    )
    return (" ".join(task.tokenizer.words[id_] for id_ in row) for row in rows)


def _up_to(lines: Iterator[str], characters: int) -> Iterator[str]:
    """The first lines, whole, until there are so many characters."""
    for line in lines:
        yield line
        characters -= len(line) + 1
        if characters <= 0:
            return


PLANS = {
    "house-gpt": books(60_000),
    "stories": ProfilePlan("new-stories.txt", "new micro-stories", _GRAMMAR, _stories),
    "translate-en-fr": ProfilePlan(
        "new-sentences.txt",
        "English sentences that were held out and their translations",
        _GRAMMAR,
        _sentences,
        by_line=True,
    ),
    "induction": ProfilePlan(
        "new-letters.txt",
        "rows of letters, each with a rule of its own",
        "drawn for this profile as in the model's training",
        _letters,
        by_line=True,
    ),
    "minilm": books(60_000),
    "smollm2-135m-instruct": books(30_000, windows=64),
}
FORMING = (200, 400, 600)  # steps between which the smallest model learns induction
PLANS |= {at_step("induction", step): PLANS["induction"] for step in FORMING}


def model_of(name: str) -> Model:
    """The model that a shipped profile is of."""
    model, step = model_and_step(name)
    return load_model(model) if step is None else shipped_training_run(model).model(step)


def main(arguments: list[str] | None = None) -> None:
    """Makes the profiles of these names, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.training.profiles", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PLANS], metavar="NAME")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: this one")
    parser.add_argument("--labels", action="store_true", help="only the labels, without the text")
    asked = parser.parse_args(arguments)
    for name in asked.names or PLANS:
        if asked.labels:
            _label(name)
        else:
            _make(name, PLANS[name], asked.workers)


def _label(name: str) -> None:
    """Asks the heads of a shipped profile anew. Raises ValueError where it is of other weights."""
    began, model = time.monotonic(), model_of(name)
    folder = FOLDER / name
    if open_profile(folder).about.weights != weights_hash(model):
        raise ValueError(f"The profile of {name} is of other weights: make all of it anew.")
    write_labels(folder, labels(model))
    print(f"{name}: {time.monotonic() - began:,.0f} s")


def _make(name: str, plan: ProfilePlan, workers: int) -> None:
    """Goes on with the profile of a model in the work folder, and ships it when it is whole."""
    work, began = WORK / name, time.monotonic()
    with suppress(OSError):
        began -= made(work).seconds

    def record() -> float:
        seconds, today = round(time.monotonic() - began, 1), datetime.now(UTC).date().isoformat()
        work.mkdir(exist_ok=True)
        how = Made(plan.text, plan.source, seconds, workers, processor(), today)
        written = json.dumps(asdict(how), indent=1, ensure_ascii=False) + "\n"
        write_whole(work / MADE, written.encode())
        return seconds

    def told(progress: RunProgress) -> None:
        print(f"\r{name}: {progress.tokens:,} tokens, {record():,.0f} s", end="", flush=True)

    profile(
        name if workers else model_of(name),
        plan.written(WORK),
        work,
        by_line=plan.by_line,
        workers=workers,
        most_windows=plan.windows,
        told=told,
    )
    record()
    target = FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(work, target)
    print(f"; {sum(file.stat().st_size for file in target.iterdir()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
