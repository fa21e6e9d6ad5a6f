"""Tables of pages whose figures are the same on every machine; a test compares them with what is printed here.

python bench/pages.py grouped      docs/requests.md: rows of a job as one request
python bench/pages.py one-hour     docs/validation.md: the published one-hour sample (needs the published inputs)
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from measuring import announce, each, one_hour_files, published, slacktide, table
from requests import GROUPED, Words

PRESETS: dict[str, Words] = {
    "`--policy priority`": ("--policy", "priority"),
    "`--preset published`": ("--preset", "published"),
    "recommended (the default)": (),
}


def ran(*words: str | Path) -> dict[str, Any]:
    """What an hour's run says of itself."""
    found: dict[str, Any] = json.loads(slacktide("simulate", *words, "--end", "3600", "--json")[1])
    return found


def got(one: dict[str, Any]) -> str:
    """Mean and least availability of a class, and the share of its promises that were kept."""
    had = one["availability"]["restart"]
    return f"{had['mean']:.4f}, {had['min']:.4f}, {one['fulfilment']['restart']:.2%}"


def grouped() -> str:
    """A generated cell, its rows alone and together."""
    with tempfile.TemporaryDirectory() as folder:
        slacktide("generate", "cell", "--set", "hosts=62", "--set", "requests=2300", "--out", folder)
        files = (Path(folder, "workload.parquet"), Path(folder, "hosts.parquet"))

        def row(name: str, words: Words) -> list[str]:
            found = ran(*files, *words)
            counts = (f"{found['requests']:,}", f"{found['preemptions']:,}")
            return [name, *counts, *(got(found["classes"][one]) for one in ("silver", "bronze"))]

        head = ("", "requests", "preemptions", "silver: mean, min, fulfilled", "bronze: mean, min, fulfilled")
        return table(head, list(each(GROUPED, row)))


def one_hour() -> str:
    """The published sample of higher contention on all its hosts."""
    files = one_hour_files("higher")
    delays = ("--hot", published("overheads", "hot.erl"), "--cold", published("overheads", "cold.erl"))

    def row(name: str, words: Words) -> list[str]:
        found = ran(*files, *delays, *words)
        classes = [got(found["classes"][one]) for one in ("gold", "silver", "bronze")]
        return [name, f"{found['preemptions']:,}", *classes, f"{found['operations']:,}"]

    head = ("settings", "preemptions", *(f"{one}: mean, min, fulfilled" for one in ("gold", "silver", "bronze")))
    return table((*head, "operations"), list(each(PRESETS, row)))


TABLES = {"grouped": grouped, "one-hour": one_hour}


def main() -> None:
    """Print a table below the command that makes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=list(TABLES))
    name = parser.parse_args().table
    announce()
    print(TABLES[name]())


if __name__ == "__main__":
    main()
