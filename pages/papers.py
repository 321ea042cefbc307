"""Results of papers: what each claims, and whether it holds in the open model."""

import streamlit as st

from viz.shell import page
from viz.shell.panel import draw_view
from viz.state.session import write_link
from viz.views.library.papers import results_of_papers

page.open_page("pages/papers.py")
draw_view(results_of_papers, said=st.container(key="look-for"))
write_link()
