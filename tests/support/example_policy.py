"""The policy of ``examples/01_own_policy.py`` as a class, as a user's own module would have it."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from support.repository import REPOSITORY

FILE = REPOSITORY / "examples" / "01_own_policy.py"
NAME = "own_policy"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location(NAME, FILE)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = found
    spec.loader.exec_module(found)
    return found.FirstFit


FirstFit: Any = _loaded()
