"""Turns a SAM 3 checkpoint into a bundle of three graphs. Needs the `[export]` extra; running a bundle does not.

Modules ending in `_graph` and `layers.py` define torch modules and import torch when they are imported: they are
imported only inside the functions that export.
"""
