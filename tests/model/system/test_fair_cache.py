"""What goes where a cache is full is of the visitor who has the most, and there the longest unused."""

from model.system.fair_cache import FairCache


def test_one_visitors_many_things_do_not_put_out_the_one_of_another() -> None:
    visitor = "one"
    cache: FairCache[int, int] = FairCache(3, lambda size: size, visitor=lambda: visitor)
    cache[0] = 1
    visitor = "many"
    for key in range(1, 10):
        cache[key] = 1
    assert [*cache] == [0, 8, 9]
    assert cache[8] == 1
    cache[10] = 1
    assert [*cache] == [0, 8, 10]
    visitor = "one"
    cache[11] = 2  # the other has two; then both have one, and what is unused for longest goes
    assert {*cache} == {10, 11}


def test_what_is_used_stays_and_what_is_looked_over_is_not_used() -> None:
    now = [0.0]
    cache: FairCache[str, int] = FairCache(2, lambda size: size, clock=lambda: now[0])
    for now[0], key in enumerate("ab"):
        cache[key] = 1
    assert dict(cache.kept()) == {"a": 1, "b": 1}
    assert (cache.unused(1.0), cache.get("a"), cache.unused(1.0)) == (["a"], 1, [])
    cache["c"] = 1
    assert [*cache] == ["a", "c"]
