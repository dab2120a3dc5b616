"""Phrasemask engines: models that turn an image and a phrase into instances. They know nothing of projects."""
