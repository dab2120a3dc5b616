"""Runtimes, one per module; each defines `RUNTIME`."""
