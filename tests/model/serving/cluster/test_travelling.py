"""What travels between the app and the cluster is read strictly, and refusals come back as they were."""

import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import load_model
from model.analysis.attribution.edge_values import edge_values
from model.serving.cluster.travelling import NotReadError, read, written
from model.serving.engine import Engine, Request
from model.system.elsewhere import asked_function


def nothing(reference: Any) -> object:
    return None


def there_and_back(value: Any) -> Any:
    return read(written(value, nothing), lambda reference: reference)


class Planted:
    """Whoever reads the pickle of this calls the function."""

    def __init__(self, function: Any, *given: Any) -> None:
        self.function, self.given = function, given

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.given


PLANTED = {
    "a command": lambda file: Planted(os.system, f"touch {file}"),
    "code": lambda file: Planted(eval, f"open({str(file)!r}, 'w')"),
    "a file": lambda file: Planted(open, str(file), "w"),
    "a function of ours": lambda file: Planted(load_model, "house-gpt"),
    "a function that may be asked": lambda file: Planted(edge_values, file),
    "a class of ours that holds no data": lambda file: Planted(Engine),
    "a class of others": lambda file: Planted(Path.open, file),
    "a way to any name": lambda file: Planted(getattr, "text", "upper"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_calls_something_is_not_read(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "planted"
    with pytest.raises(NotReadError, match="must not travel"):
        read(pickle.dumps(("name", {"given": PLANTED[kind](file)})), nothing)
    assert not file.exists()


def test_a_planted_pickle_would_have_worked(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(PLANTED["a command"](tmp_path / "planted")))
    assert (tmp_path / "planted").exists()


def test_a_name_with_points_reaches_nothing_else(tmp_path: Path) -> None:
    """Pickles of protocol 4 may name what a module has imported: "os.system" of one that imports os."""
    file = tmp_path / "planted"
    name = b"os.system"
    module = b"model.serving.cluster.host"
    call = f"touch {file}".encode()
    sent = (
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(one)]) + one for one in (module, name))
        + b"\x93"
        + b"\x8c"
        + bytes([len(call)])
        + call
        + b"\x85R."
    )
    with pytest.raises(NotReadError):
        read(sent, nothing)
    assert not file.exists()


def test_a_class_that_a_module_of_ours_imports_is_not_ours() -> None:
    name = b"json.JSONDecodeError"
    module = b"model.serving.cluster.host"
    parts = b"".join(b"\x8c" + bytes([len(one)]) + one for one in (module, name))
    with pytest.raises(NotReadError, match="must not travel"):
        read(b"\x80\x04" + parts + b"\x93.", nothing)


@pytest.mark.parametrize("sent", [b"", b"no pickle", b"\x80\x05", pickle.dumps([1, 2])[:-3]])
def test_what_is_no_message_is_refused(sent: bytes) -> None:
    with pytest.raises(NotReadError):
        read(sent, nothing)


def test_arrays_of_objects_carry_nothing_else(tmp_path: Path) -> None:
    planted = np.array([Planted(os.system, f"touch {tmp_path / 'planted'}")], dtype=object)
    with pytest.raises(NotReadError):
        read(pickle.dumps(planted), nothing)
    assert not (tmp_path / "planted").exists()


def test_data_comes_back_as_it_was() -> None:
    for value in (
        Request("house-gpt", "The cat"),
        Counter("abca"),
        (1, 2.5, "x", b"y", None, True, slice(1, 3)),
        {"a": frozenset({1}), "b": {2}, "c": range(3)},
    ):
        assert there_and_back(value) == value
    for array in (np.arange(6.0).reshape(2, 3), np.zeros(0, np.float32), np.array([True, False])):
        found = there_and_back(array)
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()
        assert found.shape == array.shape


def refusals(kind: type[ValueError] = ValueError) -> set[type[ValueError]]:
    """All classes of refusals that the model has, as far as they are loaded."""
    found = set(kind.__subclasses__())
    return {one for each in found for one in (each, *refusals(each))}


def test_every_kind_of_refusal_comes_back_with_its_sentence_and_what_it_says_beside() -> None:
    ours = [one for one in refusals() if one.__module__.startswith("model.")]
    assert len(ours) > 5
    for kind in ours:
        made = kind.__new__(kind, "The sentence.")
        vars(made).update(tokens=7, most=5)
        made.args = ("The sentence.",)
        found = there_and_back(made)
        assert type(found) is kind
        assert str(found) == str(made)
        assert vars(found) == vars(made)


def test_what_a_model_refuses_comes_back_as_it_was_raised() -> None:
    with pytest.raises(ValueError, match="tokens") as raised:
        load_model("house-gpt").trace("the " * 2000)
    found = there_and_back(raised.value)
    assert type(found) is type(raised.value)
    assert (str(found), vars(found)) == (str(raised.value), vars(raised.value))


def test_another_exception_is_no_refusal() -> None:
    from model.serving.cluster import travelling

    with pytest.raises(NotReadError, match="is no refusal"):
        travelling._refusal(KeyError, "sentence", {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:eval",
        "model.loading.registry:load_model",
        "model.system.cluster:joined",
        "model.system.elsewhere:asked",
        "model.serving.cluster.host:os.system",
        "model.nowhere:nothing",
        "model.run.model:Model.trace",
        "",
    ],
)
def test_only_functions_that_are_marked_may_be_asked(name: str) -> None:
    with pytest.raises(LookupError, match="may not be asked"):
        asked_function(name)
