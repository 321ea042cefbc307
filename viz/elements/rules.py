"""Style that holds as long as a part of a page is drawn."""

import streamlit as st


def rules(css: str) -> None:
    """Rules of CSS. They stand in this place, without taking room: a style alone Streamlit would put into the
    one place of all fragments, where the next one overwrites it."""
    st.html(f'<i class="rules" hidden></i><style>{css}</style>')
