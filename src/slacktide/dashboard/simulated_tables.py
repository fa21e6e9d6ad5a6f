"""The tables of a simulation's results (docs/results.md) as arrays, as far as the page needs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import fail
from slacktide.model import APPROACHES, ServiceClass
from slacktide.model.workload import INDEPENDENT
from slacktide.settings import class_of
from slacktide.state.layout import GRID

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "slacktide-results"
NEVER = np.inf
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Events:
    """Columns of events.parquet, shape (events,), in order of time. ``instance``, ``host`` and ``by`` (a request) are
    places, -1: none; ``kind`` is a place of ``kinds``. ``qos`` in seconds, NaN: none. Events held and outage are left
    out."""

    time: Floats
    kind: Ints
    kinds: tuple[str, ...]
    instance: Ints
    host: Ints
    by: Ints
    qos: Floats

    def is_(self, *kinds: str) -> NDArray[np.bool_]:
        """Which events are of these kinds."""
        return np.isin(self.kind, [place for place, kind in enumerate(self.kinds) if kind in kinds])


@dataclass(frozen=True, slots=True)
class Results:
    """A run. Of requests, shape (n,), and instances, shape (i,); times in seconds, ``ended`` infinite: not.

    ``achieved`` is what a promise is judged by in the end, in the accounting of decisions; ``request`` is the place of
    an instance's request, ``number`` its own within that, -1 where it is the only one. ``alpha`` is of the classes that
    say nothing of it. Hosts are those of events. ``called`` is the namespace and name of each request, as the input
    said them, the name with the request's number where several have it; ("", "") where it said nothing.
    """

    title: str
    policy: str
    classes: tuple[ServiceClass, ...]
    alpha: float
    end: float
    ids: Ints
    called: tuple[tuple[str, str], ...]
    batch: NDArray[np.bool_]
    approach: Ints
    cls: Ints
    admission: Floats
    ended: Floats
    achieved: Floats
    met: NDArray[np.bool_]
    preempted: Ints
    request: Ints
    number: Ints
    instance_admission: Floats
    instance_ended: Floats
    instance_achieved: Floats
    hosts: tuple[str, ...]
    events: Events | None

    @property
    def by_instance(self) -> NDArray[np.bool_]:
        """The requests whose instances have a metric each: independent ones, and services of one instance in all."""
        instances = np.bincount(self.request, minlength=len(self.ids))
        return np.asarray((self.approach == INDEPENDENT) | ((instances == 1) & ~self.batch))

    def name_of(self, instance: int) -> str:
        """What an instance is called: its request's name or number, and its own number where that has several."""
        request = int(self.request[instance])
        name = self.called[request][1] or str(self.ids[request])
        return name if self.number[instance] < 0 else f"{name}-{self.number[instance]}"

    def title_of(self, request: int) -> str:
        """What a request is called."""
        return self.called[request][1] or f"request {self.ids[request]}"

    def namespace_of(self, instance: int) -> str:
        """The namespace of an instance."""
        return self.called[int(self.request[instance])][0]


def load(folder: Path) -> Results:
    """The results in a folder. Raises :class:`InputError` where they are none, or of another version."""
    manifest = _manifest(folder)
    settings = manifest["configuration"]
    classes = tuple(class_of(one) for one in settings["classes"])
    names = [one.name for one in classes]
    accounting = settings["qos"]["startup"]
    requests = _read(folder / "requests.parquet")
    ids = _ints(requests, "id")
    parts = _read(folder / "instances.parquet") if (folder / "instances.parquet").is_file() else None
    of_instances = _instances(requests, parts, accounting)
    hosts, events = _events(folder / "events.parquet", ids, of_instances)
    judged = _floats(requests, f"availability_{accounting}")
    if "worst_window" in requests.column_names:
        worst = _floats(requests, "worst_window")
        judged = np.where(np.isnan(worst), judged, worst)
    return Results(
        title=folder.resolve().name,
        policy=str(settings["policy"]["name"]),
        classes=classes,
        alpha=float(settings["qos"]["alpha"]),
        end=float(manifest["totals"]["end"]),
        ids=ids,
        called=_called(requests, ids),
        batch=_codes(requests, "kind", ["service", "batch"]) == 1,
        approach=_codes(requests, "approach", list(APPROACHES)),
        cls=_codes(requests, "class", names),
        admission=_on_grid(requests, "admission"),
        ended=_ends(requests, "completion"),
        achieved=judged,
        met=requests["slo_met"].to_numpy(),
        preempted=_ints(requests, "preemptions"),
        hosts=hosts,
        events=events,
        **of_instances,
    )


def is_results(folder: Path) -> bool:
    """Whether a folder says that it holds the results of a simulation."""
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise fail(path, f"what 'slacktide simulate --out' wrote ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise fail(path, FORMAT, column="format", value=str(found)[:80])
    return found


def _read(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise fail(path, f"a table of results ({error})") from error


def _called(requests: pa.Table, ids: Ints) -> tuple[tuple[str, str], ...]:
    """By request its namespace and name; of one without a name its owner's."""
    words = {
        name: [word or "" for word in requests[name].to_pylist()] if name in requests.column_names else [""] * len(ids)
        for name in ("namespace", "owner", "name")
    }
    found = [(space, name or owner) for space, owner, name in zip(*words.values(), strict=True)]
    often = Counter(found)
    return tuple(
        (space, f"{name} ({number})" if name and often[space, name] > 1 else name)
        for (space, name), number in zip(found, ids.tolist(), strict=True)
    )


def _instances(requests: pa.Table, parts: pa.Table | None, accounting: str) -> dict[str, Any]:
    table = requests if parts is None else parts
    count = table.num_rows
    ended = _ends(table, "completion")
    if parts is None:
        request, number = np.arange(count), np.full(count, -1)
    else:
        request, number = _places(_ints(parts, "request"), _ints(requests, "id")), _ints(parts, "instance")
        ended = np.minimum(ended, _ends(parts, "removed"))
    return {
        "request": request,
        "number": number,
        "instance_admission": _on_grid(table, "admission"),
        "instance_ended": ended,
        "instance_achieved": _floats(table, f"availability_{accounting}"),
    }


def _events(path: Path, ids: Ints, instances: Mapping[str, Any]) -> tuple[tuple[str, ...], Events | None]:
    if not path.is_file():
        return (), None
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _read(path)
    table = table.filter(pc.invert(pc.is_in(table["event"].cast("string"), pa.array(["held", "outage"]))))
    kinds, kind = _words(table, "event")
    hosts, host = _words(table, "host")
    request = _places(_ints(table, "request"), ids)
    instance = _instance_places(request, _ints(table, "instance"), instances["request"], instances["number"])
    events = Events(
        time=_floats(table, "time"),
        kind=kind,
        kinds=kinds,
        instance=instance,
        host=host,
        by=_places(_ints(table, "by"), ids),
        qos=_floats(table, "qos"),
    )
    return hosts, events


def _instance_places(request: Ints, number: Ints, of: Ints, numbers: Ints) -> Ints:
    """The place of each event's instance, by its request's place and its number."""
    if (numbers < 0).all():
        return request
    wide = int(max(numbers.max(initial=0), number.max(initial=0))) + 2
    found = _places(request * wide + np.maximum(number, 0), of * wide + numbers)
    return np.where((request < 0) | (number < 0), -1, found)


def _places(values: Ints, known: Ints) -> Ints:
    """The place of each value in ``known``, -1: not there."""
    if not len(known):
        return np.full(len(values), -1)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)
    found: Ints = order[at]
    return np.where(known[found] == values, found, -1)


def _ints(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers; null is -1."""
    import pyarrow.compute as pc

    column = table[name].cast("int64")
    found: Ints = (pc.fill_null(column, -1) if column.null_count else column).to_numpy()
    return found


def _floats(table: pa.Table, name: str) -> Floats:
    """A column of numbers; null is NaN."""
    found: Floats = table[name].cast("double").to_numpy()
    return found


def _on_grid(table: pa.Table, name: str) -> Floats:
    """Times as the simulator had them: requests.parquet has admissions as the input said them."""
    found: Floats = np.rint(_floats(table, name) * GRID) / GRID
    return found


def _ends(table: pa.Table, name: str) -> Floats:
    found = _floats(table, name)
    return np.where(np.isnan(found), NEVER, found)


def _words(table: pa.Table, name: str) -> tuple[tuple[str, ...], Ints]:
    """The distinct words of a column, and of each row the place of its word, -1: none."""
    import pyarrow.compute as pc

    coded = table[name].cast("string").combine_chunks().dictionary_encode()
    codes: Ints = pc.fill_null(coded.indices.cast("int64"), -1).to_numpy(zero_copy_only=False)
    return tuple(coded.dictionary.to_pylist()), codes


def _codes(table: pa.Table, name: str, words: list[str]) -> Ints:
    """A column of words as places in ``words``."""
    known, codes = _words(table, name)
    places = np.array([words.index(one) for one in known] or [0], np.int64)
    found: Ints = places[codes]
    return found
