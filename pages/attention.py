"""Attention, step by step: one head from queries, keys and values to its output."""


from viz import shell

shell.open_page("pages/attention.py")
seen = shell.look()
shell.explore(seen)
