"""One visitor: what is looked at, its link, the session."""
