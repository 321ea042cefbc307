"""The list of examples."""
