"""The way into the code is as short as the guides say."""

import inspect
import re
import traceback
from importlib import import_module
from pathlib import Path

import pytest
import torch.nn.functional as F
from torch import Tensor

from model.system import border
from tests.cases import cases
from tests.pages.reading import visit

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words of the code")[1]
WORDS = re.findall(r"^\| `(\w+)` \| .+ \| `(.+)\.py` \|$", GUIDE, re.MULTILINE)
STEPS = (ROOT / "README.md").read_text(encoding="utf-8").split("## Start here")[1].split("\n## ")[0]
FILES = re.findall(r"^\d\. `(.+?)`", STEPS, re.MULTILINE)
CALLS, CONCEPTS, READ = 12, 20, 5


@cases("word", WORDS)
def test_each_word_of_the_code_is_defined_where_the_guide_says(word) -> None:
    name, file = word
    module = import_module(file.replace("/", "."))
    assert getattr(module, name).__module__ == module.__name__


def test_the_words_are_few() -> None:
    assert 10 < len(WORDS) <= CONCEPTS


def test_twelve_calls_lead_from_the_sentence_box_to_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[traceback.FrameSummary] = []
    kernel = F.scaled_dot_product_attention

    def counted(*vectors: Tensor, **how: object) -> Tensor:
        stack = traceback.extract_stack(inspect.currentframe())[:-1]
        ours = [
            one
            for one in stack
            if ROOT in Path(one.filename).parents and one.filename != border.__file__
        ]  # the check of the arguments is no step of the way
        calls[:] = calls or [
            one for one in ours if Path(one.filename).relative_to(ROOT).parts[0] in ("model", "viz")
        ]
        return kernel(*vectors, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    visit("home", model="house-gpt", text="Nobody has asked for this sentence before")
    names = [f"{Path(one.filename).name}: {one.name}" for one in calls]
    assert names[0] == "page.py: look"
    assert len(names) <= CALLS, names
    on_the_way = {str(Path(one.filename).relative_to(ROOT)) for one in calls}
    assert set(FILES) - on_the_way == {"model/trace/records.py"}
    assert len(FILES) == READ
