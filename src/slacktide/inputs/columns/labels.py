"""The columns ``name``, ``namespace`` and ``owner``, which go through to results: what people call a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slacktide.inputs.columns.cells import Codes, Distinct
from slacktide.model import Label

COLUMNS = ("namespace", "owner", "name")
TEXT = "text"


def labels(
    count: int, codes: Mapping[str, Codes], tables: Mapping[str, Distinct[Any]]
) -> tuple[Codes, tuple[Label, ...]] | None:
    """Each row's index among the distinct labels; ``None`` where nobody says anything.

    ``codes`` are columns by name, as far as the file has them; ``tables`` what codes stand for.
    """
    words = [codes.get(name, np.zeros(count, np.int32)) for name in COLUMNS]
    if not any(one.any() for one in words):
        return None
    found, index = np.unique(np.stack(words, axis=1), axis=0, return_inverse=True)
    values = [tables[name].values for name in COLUMNS]
    made = [Label(*(of[code] for of, code in zip(values, row, strict=True))) for row in found.tolist()]
    return index.reshape(-1).astype(np.int32), tuple(made)
