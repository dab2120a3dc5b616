"""A redo that is stopped goes on where it was, if it is asked for again in the same words."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict

from annotator.prelabelling.options import PrelabelOptions
from annotator.records import KeptPhrase, phrase_key
from annotator.store import ProjectStore

_SETTING = "unfinished redo"


def redone_since(store: ProjectStore, bundle_id: str, phrases: Sequence[KeptPhrase], options: PrelabelOptions) -> float:
    """When the redo of these phrases with these options began, in seconds since 1970: now, if it was not begun."""
    asked = _asked(bundle_id, phrases, options)
    begun = json.loads(store.setting(_SETTING) or "{}")
    if begun.get("asked") == asked:
        return float(begun["since"])
    since = time.time()
    store.set_setting(_SETTING, json.dumps({"asked": asked, "since": since}))
    return since


def forget_redo(store: ProjectStore) -> None:
    """The redo is finished: the next one begins anew."""
    store.set_setting(_SETTING, "{}")


def _asked(bundle_id: str, phrases: Sequence[KeptPhrase], options: PrelabelOptions) -> str:
    keys = sorted(phrase_key(kept.text) for kept in phrases)
    return json.dumps([bundle_id, keys, asdict(options)], sort_keys=True)
