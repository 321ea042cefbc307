"""A choice in a list that is drawn anew with other names, without a browser."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.cases import cases


def listed() -> None:
    import streamlit as st

    from viz.elements.one_of import one_listed

    names = st.session_state.get("names", ["a (1)", "b (2)", "c (3)"])
    st.write(names[one_listed("Token", names, "token", first=1)])


@cases(
    "chosen, names, shown",
    [
        (2, ["a (1)", "b (2)", "c (3)"], "c (3)"),
        (2, ["x (1)", "y (2)", "z (3)"], "z (3)"),
        (2, ["x (1)", "y (2)"], "y (2)"),  # it has no third one
    ],
)
def test_a_choice_stays_where_another_list_has_it(chosen, names, shown) -> None:
    app = AppTest.from_function(listed, default_timeout=120).run()
    assert app.markdown[0].value == "b (2)"
    app.session_state["names"] = names
    app.session_state["token"] = chosen
    app.run()
    assert not app.exception
    assert app.markdown[0].value == shown
    assert app.selectbox("token").proto.set_value  # so the browser hears its name


def test_a_number_that_a_list_does_not_have_becomes_the_one_to_start_from(
    subtests: pytest.Subtests,
) -> None:
    def page() -> None:
        from viz.elements.one_of import keep_within

        keep_within("number", 2, first=1)

    for chosen, kept in [(None, 1), (0, 0), (1, 1), (2, 1)]:
        with subtests.test(chosen=chosen):
            app = AppTest.from_function(page, default_timeout=120)
            app.session_state["number"] = chosen
            app.run()
            assert app.session_state["number"] == kept
