"""What `slacktide openslo import` makes of every SLO document in a folder, such as a checkout of OpenSLO or Sloth.

Documents are YAML and JSON files, and blocks of YAML in Markdown that name an ``apiVersion`` of one of these (or the
``version`` of Sloth's files). A document is imported (it becomes a class), read (of another kind, and as its project
has it), or refused with file, line and field.
The program ends with 1 where something else happens.

    git clone https://github.com/OpenSLO/OpenSLO && python bench/openslo_documents.py OpenSLO
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from slacktide.errors import ConfigError
from slacktide.openslo.documents import read_files
from slacktide.openslo.importing import convert

BLOCK = re.compile(r"^```ya?ml\n(.*?)^```", re.DOTALL | re.MULTILINE)
ANY = re.compile(
    r"^\W*\"?(?:apiVersion\"?:\s*['\"]?(?:openslo|sloth\.slok\.dev/|pyrra\.dev/)|version\"?:\s*['\"]?prometheus/v)",
    re.MULTILINE,
)
FIELD = re.compile(r":\d+: (?:[\w.\[\]/-]+: .*|[\w.\[\]: ]+ is missing.*)expected ", re.DOTALL)
"""How a refusal names line and field."""
NO_DOCUMENT = re.compile(r": not YAML|expected a document of keys and values")


def documents(folder: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each text of OpenSLO below a folder; blocks of Markdown are written to ``scratch``."""
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix in (".yaml", ".yml", ".json"):
            if ANY.search(path.read_text(encoding="utf-8")):
                yield name, path
        elif path.suffix == ".md":
            for number, block in enumerate(BLOCK.findall(path.read_text(encoding="utf-8"))):
                if ANY.search(block):
                    file = scratch / f"{len(list(scratch.iterdir()))}.yaml"
                    file.write_text(block, encoding="utf-8")
                    yield f"{name} block {number}", file


def outcome(path: Path) -> tuple[str, list[str]]:
    """``imported``, ``read``, ``refused``, ``no YAML``, or ``unclear`` where a refusal names no field; and why."""
    try:
        found, problems = read_files([path])
    except ConfigError as error:
        return ("no YAML" if NO_DOCUMENT.search(str(error)) else "unclear"), [str(error)]
    made = convert(found, rank=1)
    refused = problems + made.refused
    if any(not FIELD.search(one) for one in refused):
        return "unclear", refused
    if refused:
        return "refused", refused
    if made.classes:
        return "imported", []
    return ("read" if made.passed_over else "unclear"), made.passed_over


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="say what is said of each")
    words = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for name, path in documents(words.folder, Path(scratch)):
            which, said = outcome(path)
            counts[which] += 1
            if words.verbose or which == "unclear":
                print(f"{which}: {name}")
                for one in said:
                    print(f"    {one.replace(str(path), name)}")
    print("\n".join(f"{count:5d}  {which}" for which, count in sorted(counts.items())))
    return 1 if counts["unclear"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
