"""The page of the model as code."""
