"""The files behind “Save”."""
