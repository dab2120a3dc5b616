"""Finds one descriptor per module in a package of kinds, so that a kind is added by adding one file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

from engines.errors import UnknownKindError

Descriptor = TypeVar("Descriptor")


def discover(package: ModuleType, attribute: str, kind: type[Descriptor]) -> dict[str, Descriptor]:
    """Descriptors by name: `attribute` of every public module of `package` that defines one of class `kind`."""
    found: dict[str, Descriptor] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        if module.name.startswith("_"):
            continue
        descriptor = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), attribute, None)
        if isinstance(descriptor, kind):
            found[str(descriptor.name)] = descriptor  # type: ignore[attr-defined]
    return found


def choose(descriptors: Mapping[str, Descriptor], kind: str, name: str) -> Descriptor:
    """The descriptor of that name; raises `UnknownKindError` naming those there are."""
    if name not in descriptors:
        raise UnknownKindError(kind, name, descriptors)
    return descriptors[name]
