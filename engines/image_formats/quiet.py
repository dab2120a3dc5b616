"""Keeps the warnings of picture decoders to ourselves: what matters in them becomes an error or a note."""

from __future__ import annotations

import logging
import warnings

_DECODERS = r"(PIL|pillow_heif|pydicom|tifffile)(\.|$)"

for _name in ("PIL", "tifffile", "pydicom"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def hush_decoders() -> None:
    """Have Python ignore warnings that come from decoder modules.

    `warnings.catch_warnings` swaps the filters of the whole process and may put back the wrong ones when threads
    overlap. This filter is added once and stays; it is added again only after someone has replaced the list.
    """
    if not _is_first_filter_ours():
        warnings.filterwarnings("ignore", module=_DECODERS)


def _is_first_filter_ours() -> bool:
    if not warnings.filters:
        return False
    module = warnings.filters[0][3]
    return getattr(module, "pattern", None) == _DECODERS
