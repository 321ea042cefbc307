"""Experiments as cards: a question, a guess, and what the model answers."""
