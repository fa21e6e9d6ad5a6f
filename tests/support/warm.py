"""``python warm.py``: compiles the kernels, so that workers that share a cache do not each compile them at once."""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


def main() -> None:
    """A few small clusters and a live engine, which together call what tests call."""
    from slacktide.kernels.runtime.compiling import compiles

    if not compiles():
        return
    from slacktide.engine.warm_up import warm
    from slacktide.settings import load_live
    from support.clusters import cluster
    from support.runs import core

    with tempfile.TemporaryDirectory() as folder:
        for engine, several, neighbours in product(("compiled", "stepwise"), (False, True), (False, True)):
            one = cluster(1, 3, 12, several, neighbours).on(engine)
            core(one, Path(folder))
    warm(load_live())


if __name__ == "__main__":
    main()
