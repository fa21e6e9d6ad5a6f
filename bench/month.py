"""A generated month of a whole cell, from generating to the last request.

    python bench/month.py                    25 million requests, 12,500 hosts, 29 days
    python bench/month.py --fraction 0.01    a hundredth: 1,250 hosts, 2.9 days, 250,000 requests
    python bench/month.py --window 30d       every class promises over rolling 30 days, with an accrued budget

Runs ``slacktide generate cell`` and ``slacktide simulate`` (qos-driven, recommended settings: ``preempt_when =
needed``) as processes and reports the simulating one: wall seconds with reading, the largest memory, operations,
preemptions, fulfilment. A fraction shrinks hosts and hours by its square root each. The load is the
generator's, or ``--load``.
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from measuring import announce, millions, options, per_cent, share, slacktide, table, warm

from slacktide.model import DEFAULT_CLASSES

HOSTS, HOURS, REQUESTS = 12_500, 696.0, 25_000_000


def main() -> None:
    """Print what the run cost and came to."""
    parser = options(__doc__)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="words", action="append", default=[], help="a setting, as for simulate")
    parser.add_argument("--window", help="every class promises over a rolling window of this length, accrued")
    arguments = parser.parse_args()
    side = math.sqrt(arguments.fraction)
    hours = HOURS * side
    parameters = [f"hosts={HOSTS * side:.0f}", f"hours={hours:g}", f"requests={REQUESTS * arguments.fraction:.0f}"]
    parameters.append(f"load={arguments.load:g}")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "cell"
        words = [word for one in parameters for word in ("--set", one)]
        generating, _ = slacktide("generate", "cell", "--out", target, "--seed", str(arguments.seed), *words)
        files = (target / "workload.parquet", target / "hosts.parquet")
        warm(*files)
        chosen = [word for one in arguments.words for word in ("--set", one)]
        if arguments.window:
            window = {"rolling": arguments.window, "budget": "accrued"}
            classes = [
                {"name": one.name, "slo": one.slo, "rank": one.rank, "window": window} for one in DEFAULT_CLASSES
            ]
            (Path(folder) / "windows.json").write_text(json.dumps({"classes": classes}))
            chosen += ["--config", str(Path(folder) / "windows.json")]
        seconds, text = slacktide("simulate", *files, "--end", f"{hours * 3600:.0f}", "--json", *chosen)
    found = json.loads(text)
    announce(f" ({', '.join(parameters)}; generated in {generating:.0f} s):")
    head = ("requests", "completed", "wall s", "GB", "operations M", "bound checks M", "passes", "preemptions")
    counts = [f"{found[name]:,}" for name in ("requests", "completed")]
    costs = [f"{seconds:.1f}", f"{found['peak_rss_mb'] / 1024:.2f}"]
    costs += [millions(found["operations"]), millions(found["bound_checks"])]
    print(table(head, [[*counts, *costs, f"{found['passes']:,}", f"{found['preemptions']:,}"]]), "\n")
    rows = []
    for name, one in found["classes"].items():
        got = one["availability"]["restart"]
        delivered = [share(got[key]) for key in ("mean", "p05", "min")]
        rows.append(
            [name, f"{one['requests']:,}", f"{one['slo']:g}", *delivered, per_cent(one["fulfilment"]["restart"])]
        )
    print(table(("class", "requests", "promised", "mean", "p05", "min", "fulfilled"), rows))


if __name__ == "__main__":
    main()
