"""What a patch makes of an object, as far as a log of requests says it: JSON merge, JSON and strategic merge patches.

An audit log does not say which of them a request is. A list of operations is a JSON patch; lists of things with a
``type`` or a ``name`` are merged by it, as strategic merge does for all lists that are read here.
"""

from __future__ import annotations

from typing import Any

DIRECTIVES = ("$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys")
KEYS = ("type", "name", "uid", "containerPort", "topologyKey")
DEEPEST = 60


def merged(body: Any, patch: Any) -> Any:
    """``body`` after ``patch``; ``body`` itself may be changed."""
    if isinstance(patch, list):
        for one in patch:
            if isinstance(one, dict):
                _carry_out(body, one)
        return body
    return _merge(body, patch, 0)


def _merge(body: Any, patch: Any, depth: int) -> Any:
    if not isinstance(patch, dict) or depth > DEEPEST:
        return patch
    result = body if isinstance(body, dict) else {}
    for name, value in patch.items():
        if name.startswith(DIRECTIVES) or name == "$patch":
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            result[name] = _merge_lists(result.get(name), value, depth + 1)
        else:
            result[name] = _merge(result.get(name), value, depth + 1)
    return result


def _merge_lists(before: Any, patch: list[Any], depth: int) -> list[Any]:
    key = next((key for key in KEYS if patch and all(isinstance(one, dict) and key in one for one in patch)), None)
    if key is None or not isinstance(before, list) or not all(isinstance(one, dict) for one in before):
        return [one for one in patch if not (isinstance(one, dict) and "$patch" in one)]
    result = list(before)
    for one in patch:
        at = next((i for i, old in enumerate(result) if old.get(key) == one[key]), None)
        if one.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(one)
        else:
            result[at] = _merge(result[at], one, depth + 1)
    return result


def _carry_out(body: Any, operation: dict[str, Any]) -> None:
    """One operation of a JSON patch; what does not fit what is known is left out."""
    parts = [one.replace("~1", "/").replace("~0", "~") for one in str(operation.get("path", "")).split("/")[1:]]
    place = body
    for part in parts[:-1]:
        if isinstance(place, dict):
            place = place.setdefault(part, {})
        elif isinstance(place, list) and part.isdigit() and int(part) < len(place):
            place = place[int(part)]
        else:
            return
    if parts and isinstance(place, dict):
        _in_mapping(place, parts[-1], operation)
    elif parts and isinstance(place, list):
        _in_list(place, parts[-1], operation)


def _in_mapping(place: dict[str, Any], key: str, operation: dict[str, Any]) -> None:
    if operation.get("op") == "remove":
        place.pop(key, None)
    elif operation.get("op") in ("add", "replace"):
        place[key] = operation.get("value")


def _in_list(place: list[Any], key: str, operation: dict[str, Any]) -> None:
    what, value = operation.get("op"), operation.get("value")
    if key == "-" and what == "add":
        place.append(value)
    elif key.isdigit() and int(key) < len(place):
        if what == "remove":
            del place[int(key)]
        elif what == "replace":
            place[int(key)] = value
        elif what == "add":
            place.insert(int(key), value)
