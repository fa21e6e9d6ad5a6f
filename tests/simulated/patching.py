"""How a patch changes an object."""

from __future__ import annotations

from typing import Any

from simulated.resources import Json, Refused

MERGE, STRATEGIC, APPLY = "merge", "strategic-merge", "apply"
KEYS = {"conditions": "type", "containers": "name", "taints": "key", "reservedFor": "uid", "ownerReferences": "uid",
        "containerStatuses": "name"}  # fmt: skip
"""Lists whose items a strategic merge patch tells apart, and by what."""
SETS = frozenset({"finalizers"})
"""Lists to which a strategic merge patch adds."""


def kind_of(content_type: str) -> str:
    """Which kind of patch it is. Raises ``Refused``."""
    for kind in (STRATEGIC, MERGE, APPLY):
        if content_type.startswith(f"application/{kind}-patch+"):
            return kind
    raise Refused(415, f"the body of the request was in an unknown format: {content_type}")


def merged(before: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def strategic(before: Any, patch: Any, name: str = "") -> Any:
    """A strategic merge patch, as far as it is used."""
    if isinstance(patch, list) and name in KEYS:
        return _strategic_list(before or [], patch, KEYS[name])
    if isinstance(patch, list) and name in SETS:
        return [*(before or []), *(one for one in patch if one not in (before or []))]
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif key != "$patch":
            found[key] = strategic(found.get(key), value, key)
    return found


def _strategic_list(before: list[Json], patch: list[Json], key: str) -> list[Json]:
    found = list(before)
    for one in patch:
        place = next((i for i, old in enumerate(found) if old.get(key) == one.get(key)), None)
        if one.get("$patch") == "delete":
            if place is not None:
                del found[place]
        elif place is None:
            found.append(one)
        else:
            found[place] = strategic(found[place], one)
    return found


def applied(before: Json, patch: Json, former: Json | None) -> Json:
    """Server-side apply by one manager, who applied ``former`` the time before: what it does not say any more goes."""
    found: Json = _applied(_without(before, former or {}, patch), patch)
    return found


def _without(body: Json, former: Json, patch: Json) -> Json:
    found = dict(body)
    for key, value in former.items():
        if key not in patch:
            if isinstance(value, dict) and isinstance(found.get(key), dict):
                found[key] = _without(found[key], value, {})
                if not found[key]:
                    del found[key]
            else:
                found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict) and isinstance(patch[key], dict):
            found[key] = _without(found[key], value, patch[key])
    return found


def _applied(before: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(before, dict):
        return patch
    return before | {key: _applied(before.get(key), value) for key, value in patch.items()}
