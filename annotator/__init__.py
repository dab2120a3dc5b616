"""Phrasemask annotator: projects, commands and the page."""
