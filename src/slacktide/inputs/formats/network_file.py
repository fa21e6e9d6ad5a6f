"""The network file: places, round-trip times between them, and images (docs/formats.md, 'Networks')."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError, RefusedError
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.problems import Problems, check_readable
from slacktide.model import Hosts, Image, Network
from slacktide.settings_file import SettingsFile, read

KEYS = ("site", "places", "rtt_ms", "images")
IMAGE_KEYS = ("seconds", "size", "present")
MILLISECONDS = "milliseconds, 0 or more and at most 1e9"
LARGEST = 1e9
NAME = "a name without blanks, once; numbers and truth values in quotes"
CONTENT = "'places:', 'rtt_ms:' and what else a network has"


def read_network(path: Path | str, hosts: Hosts | None = None) -> Network:
    """A network from YAML, TOML or JSON; ``hosts`` are those that images may be present on.

    Raises :class:`InputError` for a file that cannot be read, and for every value that is wrong.
    """
    check_readable(Path(path))
    try:
        file = read(Path(path), "network", CONTENT)
    except ConfigError as error:
        raise RefusedError([str(error)]) from error
    problems = Problems(str(path))
    for key in file.values:
        if key not in KEYS:
            problems.add(_line(file, key), str(key), "an unknown key", expected_name(str(key), KEYS))
    places = _places(file, problems)
    rtt = _matrix(file, len(places), problems)
    site = file.values.get("site", "")
    if not isinstance(site, str):
        problems.add(_line(file, "site"), "site", repr(site), "the name of a host attribute")
    images = _images(file, hosts, problems)
    problems.raise_if_any()
    return Network(places, rtt / 1000.0, str(site), images)


def network_text(network: Network) -> str:
    """YAML from which :func:`read_network` makes an equal network."""
    import yaml

    said: dict[str, Any] = {"site": network.site_key} if network.site_key else {}
    said["places"] = list(network.places)
    said["rtt_ms"] = [[round(value * 1000.0, 9) for value in row] for row in network.rtt.tolist()]
    if network.images:
        said["images"] = {
            one.name: {"seconds" if one.size == 0.0 else "size": one.size or one.seconds, "present": list(one.present)}
            for one in network.images
        }
    return yaml.safe_dump(said, sort_keys=False, default_flow_style=None, width=120)


def _line(file: SettingsFile, *place: str | int) -> int:
    return file.lines.get(place, 0)


def _places(file: SettingsFile, problems: Problems) -> tuple[str, ...]:
    given = file.values.get("places")
    if not isinstance(given, list) or not given:
        problems.add(_line(file, "places"), "places", _short(given), "a list of names, at least one")
        return ()
    seen: set[str] = set()
    for number, name in enumerate(given):
        if not _is_name(name) or name in seen:
            problems.add(_line(file, "places", number), f"places[{number}]", _short(name), NAME)
        seen.add(str(name))
    return tuple(map(str, given))


def _matrix(file: SettingsFile, count: int, problems: Problems) -> NDArray[np.float64]:
    rtt = np.zeros((count, count))
    rows = file.values.get("rtt_ms")
    if not isinstance(rows, list) or len(rows) != count:
        problems.add(
            _line(file, "rtt_ms"), "rtt_ms", _short(rows), f"{count} rows of {MILLISECONDS}, as there are places"
        )
        return rtt
    for i, row in enumerate(rows):
        line = _line(file, "rtt_ms", i)
        if not isinstance(row, list) or len(row) != count:
            problems.add(line, f"rtt_ms[{i}]", _short(row), f"{count} numbers, as there are places")
            continue
        for j, value in enumerate(row):
            if not _is_number(value) or not 0 <= value <= LARGEST:
                problems.add(line, f"rtt_ms[{i}][{j}]", _short(value), MILLISECONDS)
            else:
                rtt[i, j] = value
    if not problems.total:
        _check_symmetry(file, rtt, problems)
    return rtt


def _check_symmetry(file: SettingsFile, rtt: NDArray[np.float64], problems: Problems) -> None:
    for i, j in np.argwhere(np.triu(rtt != rtt.T)).tolist():
        expected = f"{rtt[i, j]:g}, as rtt_ms[{i}][{j}]: a round trip is as long from either end"
        problems.add(_line(file, "rtt_ms", j), f"rtt_ms[{j}][{i}]", f"{rtt[j, i]:g}", expected)


def _images(file: SettingsFile, hosts: Hosts | None, problems: Problems) -> tuple[Image, ...]:
    given = file.values.get("images") or {}
    if not isinstance(given, Mapping):
        problems.add(_line(file, "images"), "images", _short(given), "a mapping of names")
        return ()
    found = []
    for name, said in given.items():
        line = _line(file, "images", name)
        if not _is_name(name):
            problems.add(line, f"images.{name}", _short(name), NAME)
        image = _image(line, str(name), said, problems)
        if hosts is not None:
            _check_for(hosts, image, line, problems)
        found.append(image)
    return tuple(found)


def _image(line: int, name: str, said: Any, problems: Problems) -> Image:
    place = f"images.{name}"
    said = {} if said is None else said
    if not isinstance(said, Mapping):
        problems.add(line, place, _short(said), "a mapping of seconds or size, and present")
        return Image(name)
    for key in said:
        if key not in IMAGE_KEYS:
            problems.add(line, f"{place}.{key}", "an unknown key", expected_name(str(key), IMAGE_KEYS))
    numbers = {}
    for key in ("seconds", "size"):
        value = said.get(key, 0.0)
        if not _is_number(value) or not 0 <= value <= LARGEST:
            problems.add(line, f"{place}.{key}", _short(value), "a number, 0 or more and at most 1e9")
            value = 0.0
        numbers[key] = float(value)
    if numbers["seconds"] and numbers["size"]:
        problems.add(line, place, "seconds and size", "one of the two")
    present = said.get("present") or []
    if not isinstance(present, list) or not all(isinstance(host, str) for host in present):
        expected = "a list of names of hosts; numbers and truth values in quotes"
        problems.add(line, f"{place}.present", _short(present), expected)
        present = []
    return Image(name, numbers["seconds"], numbers["size"], tuple(present))


def _check_for(hosts: Hosts, image: Image, line: int, problems: Problems) -> None:
    """Whether these hosts can have the image, and fetch it."""
    known = set(hosts.names)
    for host in image.present:
        if host not in known:
            problems.add(line, f"images.{image.name}.present", _short(host), "a host of the host file")
    if image.size and "network" not in hosts.resources:
        expected = "seconds, as the hosts have no column resource:network to fetch it over"
        problems.add(line, f"images.{image.name}.size", f"{image.size:g}", expected)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not any(map(str.isspace, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
