"""A model's files onto this computer, whole and hashed."""
