"""The plain table behind a picture."""

import json

from streamlit.testing.v1 import AppTest


def page() -> None:
    import pandas as pd

    from viz.shell.pictures import table

    columns = {
        "position": [0, 12],
        "tokens": [50257.0, None],
        "weight": [1.0, 0.5],
        "token": ["a", "b"],
    }
    table(pd.DataFrame(columns), "one")


def test_whole_numbers_have_no_decimals() -> None:
    app = AppTest.from_function(page, default_timeout=60)
    app.session_state["numbers-one"] = True
    app.run()
    assert not app.exception
    sent = json.loads(app.dataframe[0].proto.columns)
    formats = {name: column["type_config"]["format"] for name, column in sent.items()}
    assert formats == {"position": "%d", "tokens": "%d", "weight": "%.4f"}
