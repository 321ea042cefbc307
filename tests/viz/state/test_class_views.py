"""What a class is shown: one view under a code nobody can guess, bounded in number and time."""

import pytest

from tests.cases import cases
from tests.viz.state.conftest import Clock
from viz.state.class_views import CLASSES, HOURS, STILL_SECONDS, ClassViews

PAGE, LINK = "pages/home.py", {"text": "a b", "head": "3"}


@pytest.fixture
def views(clock: Clock) -> ClassViews:
    return ClassViews(clock)


def test_a_class_sees_what_was_shown_last(views: ClassViews) -> None:
    code, key = views.begin(PAGE, LINK)
    first = views.look(code)
    assert (first.page, first.parameters, first.number) == (PAGE, LINK, 0)
    views.show(code, key, "pages/prediction.py", {"text": "c"})
    second = views.look(code)
    assert (second.page, second.parameters, second.number) == (
        "pages/prediction.py",
        {"text": "c"},
        1,
    )


def test_what_is_shown_does_not_change_with_what_was_given(views: ClassViews) -> None:
    given = dict(LINK)
    code, _ = views.begin(PAGE, given)
    given["text"] = "something private"
    assert views.look(code).parameters == LINK


def test_codes_are_long_drawn_at_random_and_without_the_key_nothing_changes(
    views: ClassViews,
) -> None:
    made = [views.begin(PAGE, LINK) for _ in range(CLASSES)]
    assert len({code for code, _ in made}) == CLASSES
    letters = {letter for code, _ in made for letter in code}
    assert len(letters) == 31
    assert all(len(code) == 12 and key not in code for code, key in made)
    (code, _), (_, another) = made[:2]
    for key in ("", another, "ü"):
        with pytest.raises(ValueError, match="has ended"):
            views.show(code, key, PAGE, {"text": "x"})
        views.end(code, key)
    assert views.look(code).parameters == LINK


@cases("code", ["", "nobody", "a" * 100_000, "\ud800", "../..", "<b>"])
def test_a_code_that_was_never_given_opens_nothing(code, views: ClassViews) -> None:
    views.begin(PAGE, LINK)
    assert views.look(code) is None


def test_a_class_ends_at_its_lecturers_wish_and_some_hours_after_the_last_view(
    views: ClassViews, clock: Clock
) -> None:
    (ended, its_key), (goes_on, key), (forgotten, _) = (views.begin(PAGE, LINK) for _ in range(3))
    views.end(ended, its_key)
    assert views.look(ended) is None
    clock.now += HOURS * 3600 - 1
    assert views.look(forgotten) is not None
    views.show(goes_on, key, PAGE, LINK)
    clock.now += 1
    assert views.look(forgotten) is None
    assert views.look(goes_on) is not None
    with pytest.raises(ValueError, match="has ended"):
        views.show(ended, its_key, PAGE, LINK)


def test_what_was_only_begun_makes_room_and_a_class_that_is_used_never_does(
    views: ClassViews,
) -> None:
    joined, _ = views.begin(PAGE, LINK)
    assert views.look(joined) is not None
    prepared, its_key = views.begin(PAGE, LINK)
    views.show(prepared, its_key, PAGE, LINK)
    idle, key = views.begin(PAGE, LINK)
    begun = [views.begin(PAGE, LINK) for _ in range(2 * CLASSES)][-(CLASSES - 2) :]
    assert views.shown(idle) is None
    with pytest.raises(ValueError, match="has ended"):
        views.show(idle, key, PAGE, LINK)
    for code in (joined, prepared, *(code for code, _ in begun)):
        assert views.look(code) is not None  # from now on every one is used
    with pytest.raises(ValueError, match="as many classes as it can keep"):
        views.begin(PAGE, LINK)
    views.end(prepared, its_key)
    views.begin(PAGE, LINK)
    assert views.look(joined) is not None


def test_one_visitor_who_begins_and_joins_many_classes_closes_sharing_for_nobody(
    views: ClassViews,
) -> None:
    theirs, key = views.begin(PAGE, LINK, "another lecturer")
    views.show(theirs, key, PAGE, LINK)
    for _ in range(2 * CLASSES):
        assert views.look(views.begin(PAGE, LINK, "one")[0]) is not None
    code, _ = views.begin(PAGE, LINK, "one more lecturer")
    assert views.look(code) is not None
    assert views.look(theirs) is not None


def test_of_many_visitors_with_one_class_each_those_that_nobody_looks_at_make_room(
    views: ClassViews, clock: Clock
) -> None:
    used, *left = (views.begin(PAGE, LINK, visitor)[0] for visitor in range(CLASSES))
    for code in (used, *left):
        assert views.look(code) is not None
    clock.now += STILL_SECONDS
    assert views.look(used) is not None
    new: list[str] = []
    for number in range(CLASSES - 1):
        new.append(views.begin(PAGE, LINK, f"new {number}")[0])
        assert views.look(new[-1]) is not None
    assert all(views.look(code) is None for code in left)
    with pytest.raises(ValueError, match="can keep"):
        views.begin(PAGE, LINK, "one too many")
    assert views.look(used) is not None


def test_a_view_too_long_for_a_link_is_refused_and_the_one_before_stays(views: ClassViews) -> None:
    with pytest.raises(ValueError, match="too long"):
        views.begin(PAGE, {"text": "x" * 50_000})
    code, key = views.begin(PAGE, LINK)
    with pytest.raises(ValueError, match="too long"):
        views.show(code, key, PAGE, {"text": "ü" * 20_000})
    assert views.look(code).parameters == LINK
