"""The page "Heads over a corpus"."""
