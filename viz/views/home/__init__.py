"""The strip on Home."""
