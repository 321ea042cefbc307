"""Every public name with wrong arguments: a sentence of ours refuses them, and no message from inside."""

import linecache
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, isclass, ismodule, signature
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from model import Intervention, Token, load_model
from model.analysis import edge_values
from model.analysis.stream.steering import Steering
from model.capture import capture
from model.many import Prompt, loss
from model.nn.recorder import Recorder
from model.profile import profile
from model.profile.battery import labels
from model.system.border import check_argument, hints_of
from model.training.training_file import load_training
from model.training.training_record import TrainingRecord
from tools.reference import public_names

ROOT = Path(__file__).parents[1]
TEXT, PLACE, LETTERS = (
    "Anna saw Tom. Anna saw Tom",
    "decoder.1.self",
    "a b c a b c d e f d e f\n" * 4,
)
MADE_HERE = (  # by our own functions: nobody else calls their constructors
    *("Attention", "EdgeValues", "FeedForwardRecord", "Finding", "FirstDifference", "LargeNumber"),
    *(
        "Logits",
        "Model",
        "NormRecord",
        "NotRecordedError",
        "PaperResult",
        "Profile",
        "RecordedProbe",
    ),
    *("RecordedTraining", "ScoreParts", "TextTooLongError", "Trace", "CaptureWarning"),
    "TrainingRecordWarning",
)
LEFT_OUT = (  # they start processes; what they refuse is tested beside them
    ("profile", "workers"),
    ("profile", "cluster"),
)
WRONG: tuple[object, ...] = (
    *(
        None,
        object(),
        5,
        -1,
        10**9,
        1.5,
        math.nan,
        True,
        "",
        "nonsense",
        b"bytes",
        "decoder.9.self",
    ),
    *([], {}, set(), [None], ["nonsense"], [[1, 2], [3]], (1, 2, 3), {"a": 1}, iter(())),
    *(np.zeros((2, 3)), np.array([10**6]), torch.zeros(2), Path("nonsense"), nn.Linear(2, 2)),
    lambda *given: "x",
)


SEVERAL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Call(NamedTuple):
    """A call that succeeds. given: its arguments by name."""

    function: Callable[..., Any]
    given: Mapping[str, Any]
    names: list[str]  # of all its arguments


class OwnModule(nn.Module):
    """Somebody's own module, with attention in it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        attended: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return attended


def loaded_elsewhere() -> nn.Module:
    """A model of Hugging Face's library, without a tokenizer."""
    sizes = {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config).eval()


def good(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]:
    """Right arguments by name; those of single functions; and of each class with public methods an object."""
    (folder / "letters.txt").write_text(LETTERS)
    model, own = load_model("stories"), OwnModule().eval()
    trace = model.trace(TEXT)
    trace.save(folder / "a.safetensors")
    anna, tom = trace.tokens[0].id, trace.tokens[2].id
    profiled = profile("stories", folder / "letters.txt", folder / "profile", by_line=True)
    record = TrainingRecord(folder / "b.training", probes=[[1, 2, 3, 1, 2]], every=1)
    record.step(own, 0, loss=1.0)
    training = load_training(folder / "b.training")
    of_library = {"model": loaded_elsewhere(), "tokenizer": None}
    heads, states = np.zeros((2, 3, 4), np.float32), np.zeros((2, 128), np.float32)
    file = folder / "c.safetensors"
    by_name = {
        **dict(model=model, trace=trace, trace_a=trace, a=trace, b=trace, other=trace, text=TEXT),
        **dict(trace_b=model.trace("Tom saw Tom. Anna saw Tom"), attention=trace.attention[1]),
        **dict(name=PLACE, place=PLACE, head=1, query=3, key=1, stage="weights", position=0),
        **dict(texts=[TEXT, "a cat"], prompts=[Prompt(TEXT, answers=(anna, tom), corrupt=TEXT)]),
        **dict(answer=(anna, tom), metric=loss, token_id=tom, tokens=trace.tokens, stream=states),
        **dict(folder=folder / "profile", path=file, file=file, device=model.device, probe=0),
        **dict(tokenizer=model.tokenizer, module=own, format="trace", recorder=Recorder()),
        **dict(values=np.eye(2), rows=["a", "b"], columns=["a", "b"], label="induction", id=1),
        **dict(weight=0.5, entropy=0.5, first=0, end=2, step=0, probes=[[1, 2, 3]], title="t"),
        **dict(subject=trace, toward=states[0], compute=loss, corpus=folder / "letters.txt"),
        **dict(file_or_mapping=folder / "a.safetensors", part="logits", source="en", target="fr"),
        **dict(names=["a", "b"], statistic="previous", ended=states[None], recorded=states),
    }
    others: dict[str, dict[str, Any]] = {
        **{f"Profile.{name}": {"head": (PLACE, 1)} for name in vars(type(profiled))},
        "load_model": {"name": "stories"},
        "load_trace": {"path": folder / "a.safetensors"},
        "load_training": {"path": folder / "b.training"},
        "profile": {"model": "stories", "by_line": True},
        "record": {"model": "stories", "to": folder / "d.safetensors"},
        "record_lines": {"model": "stories", "to": folder / "traces"},
        **{name: {"text": "a"} for name in ("search", "Profile.search")},
        "trace": of_library | {"text": [3, 1, 4]},
        "opened": of_library,
        **{name: {"names": ["copying"]} for name in ("results", "running")},
        "statistic": {"name": "previous"},
        "parts": {"values": [1.0, 2.0]},
        "Trace.from_arrays": {"query": heads, "key": heads, "value": heads},
        "Trace.of_attention": {
            **dict(records=trace.attention, model="m", device="cpu", tokens=None),
            **dict(target_tokens=None, reason="r"),
        },
        "Trace.tokens_of": {"stack": "decoder"},
        "Model.generate": {"limit": 2},
        "TrainingRecord.step": {"model": own},
        "RecordedTraining.gap": {"place": "encoder.0.self"},
        "RecordedTraining.training_run": {"key": "a"},
        "Profile.save": {"folder": folder / "other"},
    }
    objects = {
        **{
            "Attention": trace.attention[1],
            "Intervention": Intervention(),
            "Model": model,
            "Trace": trace,
        },
        **{"Logits": trace.prediction, "Steering": Steering(states[0], PLACE), "Profile": profiled},
        **{"EdgeValues": edge_values(model, trace, PLACE, 1), "RecordedTraining": training},
        **{
            "NormRecord": trace.norms[0],
            "RecordedProbe": training.probes[0],
            "TrainingRecord": record,
            "Token": Token(1, "a"),
        },
    }
    return by_name, others, objects


def calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """A right call of every public function, class and method, by its name."""
    by_name, others, objects = good(folder)
    for one in public_names():
        named = {one.name: one.value}
        if isclass(one.value):
            own = objects.get(one.name, one.value)
            members = {f"{one.name}.{member}": getattr(own, member, None) for member in one.members}
            named = members if one.name in MADE_HERE else {**members, **named}
        for name, function in named.items():
            if not callable(function) or ismodule(function):
                continue
            parameters = signature(function).parameters.values()
            names = [each.name for each in parameters if each.kind not in SEVERAL]
            needed = [each.name for each in parameters if each.default is Parameter.empty]
            right = by_name | others.get(name, {})
            given = {
                each: right[each] for each in names if each in (*needed, *others.get(name, {}))
            }
            yield name, Call(function, given, names)


def made(call: Call, given: Mapping[str, Any]) -> None:
    """Calls, and takes all that is promised."""
    if call.function is capture:
        result: Any = capture(
            given["module"], torch.tensor([[1, 2, 3]]), **without(given, "module")
        )
    else:
        result = call.function(**given)
    if isinstance(result, Iterator):
        deque(result, maxlen=0)


def without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


def from_inside(error: Exception) -> str:
    """Where a message comes from that is no sentence raised by our own code; "" for one that is."""
    *_, (frame, line) = walk_tb(error.__traceback__)
    file = Path(frame.f_code.co_filename)
    raised = "raise" in linecache.getline(str(file), line)
    ours = raised and any(file.is_relative_to(ROOT / room) for room in ("model", "viz"))
    is_sentence = " " in str(error) and str(error).endswith(".")
    if ours and is_sentence and isinstance(error, ValueError | TypeError | ImportError):
        return ""
    return f"{type(error).__name__} {error} at {file.name}:{line}"


def runs_what_is_given(function: Callable[..., Any], name: str, value: object) -> bool:
    """Whether the argument is somebody's own function, whose errors are theirs."""
    if not callable(value):
        return False
    inner: Any = function
    if not hasattr(inner, "__globals__"):
        inner = inner.__init__ if isclass(inner) else inner.__call__
    try:
        check_argument(name, value, hints_of(inner)[name])
    except (ValueError, KeyError):
        return False
    return True


def test_no_public_name_answers_a_wrong_argument_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore", DeprecationWarning)  # of names that have another one now
    table = labels(load_model("stories"))  # the same for each profile of it
    monkeypatch.setattr("model.profile.run.labels", lambda model: table)
    inside: dict[tuple[str, str], list[str]] = {}
    tried = 0
    for name, call in calls(tmp_path):
        for argument in call.names:
            if (name, argument) in LEFT_OUT:
                continue
            for wrong in WRONG:
                if runs_what_is_given(call.function, argument, wrong):
                    continue
                tried += 1
                try:
                    made(call, {**call.given, argument: wrong})
                except Exception as error:
                    if message := from_inside(error):
                        inside.setdefault((name, argument), []).append(f"{wrong!r}: {message}")
    assert inside == {}
    assert tried > 5000
