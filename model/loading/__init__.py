"""From a name to a model that runs."""
