"""The questions that a reader brings, each with what to do and the pages that answer it."""
