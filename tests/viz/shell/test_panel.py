"""What stands behind ⋯ at a picture's upper right: made when it is opened."""

import json

from streamlit.testing.v1 import AppTest


def page() -> None:
    import pandas as pd

    from viz.shell.panel import Check, Panel, Table, draw_panel

    columns = {
        "position": [0, 12],
        "tokens": [50257.0, None],
        "weight": [1.0, 0.5],
        "token": ["a", "b"],
    }
    check = Check("The numbers differ by at most 4e−7.", 3.2e-7)
    draw_panel(Panel("one", table=Table(pd.DataFrame(columns)), check=check))


def test_whole_numbers_have_no_decimals() -> None:
    app = AppTest.from_function(page, default_timeout=120)
    app.session_state["more-one"] = True
    app.run()
    assert not app.exception
    sent = json.loads(app.dataframe[0].proto.columns)
    formats = {name: column["type_config"]["format"] for name, column in sent.items()}
    assert formats == {"position": "%d", "tokens": "%d", "weight": "%.4f"}


def test_what_is_closed_is_not_made_and_its_check_is_read_all_the_same() -> None:
    app = AppTest.from_function(page, default_timeout=120).run()
    assert not app.exception
    assert not app.dataframe
    assert app.caption[0].value == "✓ largest difference 4e−7"
    (box,) = app.get("popover")
    assert box.proto.popover.label == "More: check, table"
