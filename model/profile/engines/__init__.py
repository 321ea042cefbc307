"""How a corpus is gone through: here, by processes of this machine, or by actors on a Ray cluster."""
