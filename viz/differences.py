"""Numbers as words of a sentence. Pure."""


def difference(value: float) -> str:
    """A largest difference: "3e-07", and "0" where there is none at all."""
    return "0" if value == 0 else f"{value:.0e}"
