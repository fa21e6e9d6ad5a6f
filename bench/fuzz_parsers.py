"""All parsers (``tests/support/parsers.py``) with a fuzzer that is guided by what code a text reaches.

    pip install atheris
    PYTHONPATH=src:tests python bench/fuzz_parsers.py --minutes 10

Atheris is not among the packages that tests need: it has wheels for some systems and versions of Python only. Prints
what was reached, and ends with 1 at the first text over which a parser raises something else than it says that it does;
that text is in the file that is named then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

SOME = 2
"""Bytes at the beginning that choose a parser."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", help="one parser, by its name")
    chosen = parser.parse_args()
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not there: pip install atheris")
    with atheris.instrument_imports(include=["slacktide", "yaml"]):
        from support.parsers import BYTES, FOLDER, TEXTS

    every: list[tuple[str, Any, bool]] = [
        *((name, one, True) for name, one in sorted(TEXTS.items())),
        *((name, one, False) for name, one in sorted(BYTES.items())),
    ]
    every = [one for one in every if chosen.only in (None, one[0])]

    def read(data: bytes) -> None:
        name, one, is_text = every[int.from_bytes(data[:SOME]) % len(every)]
        said = data[SOME:]
        try:
            one.call(said.decode("utf-8", "replace") if is_text else said)
        except one.refuses:
            pass
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error

    with tempfile.TemporaryDirectory() as folder:
        FOLDER.path = Path(folder)
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, (_, one, is_text) in enumerate(every):
            for place, example in enumerate(one.examples):
                said = example.encode() if is_text else example
                (corpus / f"{number}-{place}").write_bytes(number.to_bytes(SOME) + said)
        words = [sys.argv[0], f"-max_total_time={round(60 * chosen.minutes)}", "-max_len=4096", "-timeout=20"]
        atheris.Setup([*words, str(corpus)], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
