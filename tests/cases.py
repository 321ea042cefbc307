"""Many cases in one test: `@each("text", TEXTS)`, in the place of `@pytest.mark.parametrize("text", TEXTS)`,
makes one item of the run instead of many. Cases that take long, or that are skipped, stay items."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch

Test = Callable[..., None]


def anew(fixtures: dict[str, Any], number: int, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fixtures of a test for one of its cases."""
    own: dict[str, Any] = {}
    if "monkeypatch" in fixtures:
        own["monkeypatch"] = patch
    if "tmp_path" in fixtures:
        own["tmp_path"] = fixtures["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    return fixtures | own


def each(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """A decorator that calls a test with each of the values; an error says with which. Fixtures are made once
    for all of them, but for `tmp_path`, which is another empty folder each time, and `monkeypatch`, which is
    undone after each; what is drawn by chance begins anew.

    Args:
        names: of the test's parameters, as pytest takes them.
        values: one for each case, or as many as there are names.
    """
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    cases = [
        dict(zip(given, value if len(given) > 1 else (value,), strict=True)) for value in values
    ]
    assert cases, "no case is no test"

    def in_one(test: Test) -> Test:
        def run(**fixtures: Any) -> None:
            for number, case in enumerate(cases):
                torch.manual_seed(0)
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        test(**anew(fixtures, number, patch), **case)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"where {case}")
                    raise
                except pytest.skip.Exception as error:
                    raise AssertionError(f"{case} is skipped, and all after it") from error

        wanted = inspect.signature(test).parameters
        others = [one for name, one in wanted.items() if name not in given]
        by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in others]
        run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
        run.__name__, run.__qualname__ = test.__name__, test.__qualname__
        run.__doc__, run.__module__ = test.__doc__, test.__module__
        run.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        return run

    return in_one
