"""Shapes, parameters, operations, memory, time."""
