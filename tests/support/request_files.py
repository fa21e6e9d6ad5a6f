"""Files whose rows stand for requests of several instances."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reference.readers import rows_of
from slacktide.inputs import read_workload
from slacktide.inputs.rows import COLUMNS
from slacktide.model import Requests, Workload

NAMES = ("kind", "instances", "completions", "parallelism", "approach", "scale")
HEADER = "id,admission,duration,cpu,memory,class," + ",".join(NAMES)
EXAMPLE = f"""id,admission,duration,cpu,memory,class,job,anti_affinity,constraints,{",".join(NAMES)}
8,5,,1,2,gold,70,true,a == 1,,3,,,concurrent,600=5; 1200=2; 1800=3
2,0,,1,1,silver,,,,service,,,,,
5,5,60,0.5,1,bronze,,,,batch,,4,2,,
6,1,60,0.5,1,bronze,,,,batch,,3,7,aggregated,
"""


def file_of(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "w.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def row(number: int, admission: float = 0, /, **cells: object) -> str:
    return f"{number},{admission},60,1,1,gold," + ",".join(f'"{cells.get(name, "")}"' for name in NAMES)


def read(folder: Path, *rows: str) -> Workload:
    return read_workload(file_of(folder, *rows))


def example(folder: Path) -> Workload:
    path = folder / "example.csv"
    path.write_text(EXAMPLE, encoding="utf-8")
    return read_workload(path)


def same(one: Workload, other: Workload) -> bool:
    """Equal rows and requests, in types too; terms may be numbered otherwise."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in COLUMNS if name != "term"]
    assert (one.requests is None) == (other.requests is None)
    if one.requests is not None:
        pairs.append((one.request, other.request))
        pairs += [(getattr(one.requests, name), getattr(other.requests, name)) for name in Requests.__slots__]
    return rows_of(one) == rows_of(other) and all(
        left.dtype == right.dtype and np.array_equal(left, right) for left, right in pairs
    )
