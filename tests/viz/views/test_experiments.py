"""The cards of the experiments: each has its own name, question and picture, and opens its frame."""

from viz.state.navigation import PAGES, read_address
from viz.state.presets import PRESETS
from viz.views.experiments.experiments import FILE, cards, experiments, named
from viz.views.experiments.guesses import QUESTIONS


def test_every_card_opens_its_own_experiment() -> None:
    (page,) = (page for page in PAGES if page.file == FILE)
    shows = [one.show for one in experiments()]
    assert sorted(shows) == sorted(page.variants[1:])
    assert len({one.question for one in experiments()}) == len(shows)
    for one in experiments():
        opened, parameters = read_address(one.link)
        assert (opened, named(parameters["show"])) == (page, one)
    assert cards().count("<img") == len(shows)
    assert named(page.variants[0]) is None


def test_what_asks_for_a_guess_has_an_answer_and_an_example() -> None:
    asks = {one.show for one in experiments() if one.choices}
    assert asks == set(QUESTIONS)
    for one in experiments():
        if one.choices:
            assert len({*one.choices}) == len(one.choices) > 1
            assert one.example in PRESETS
