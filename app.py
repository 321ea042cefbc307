"""Home: what this is, one sentence, one picture, the way on."""

from viz import shell

shell.open_page("app.py")
seen = shell.look(switches=False)
