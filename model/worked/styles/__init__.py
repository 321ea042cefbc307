"""The lines of a worked step in each style: plain tensors, einsum, loops, PyTorch's own functions."""

from model.worked.styles.needs import LONGEST, assigned_by, needed_before, read_by
from model.worked.styles.styled import StepCode, styled

__all__ = ["LONGEST", "StepCode", "assigned_by", "needed_before", "read_by", "styled"]
