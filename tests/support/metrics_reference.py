"""docs/metrics-reference.md, made from what is declared beside the code that exports it:
``PYTHONPATH=tests python tests/support/metrics_reference.py`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from slacktide.kube.observe import availability_metrics, scrape
from slacktide.kube.observe.families import Families, Family
from slacktide.netprobe.http_server import AGENT
from support.repository import REPOSITORY

PAGE = REPOSITORY / "docs" / "metrics-reference.md"
GROUPS = (
    availability_metrics.PROMISES,
    availability_metrics.SECONDS,
    availability_metrics.WORKLOADS,
    scrape.LIKE_KUBE_SCHEDULER,
    scrape.DEEDS,
    scrape.HEALTH,
    AGENT,
)
HEAD = """# Prometheus metrics

Written by `tests/support/metrics_reference.py` from the declarations in `src/slacktide/kube/observe` and \
`src/slacktide/netprobe/http_server.py`; do not edit.

Every metric of a running scheduler (`/metrics` of [`kube.listen`](observing.md#over-http)) and of an agent of \
[netprobe](netprobe.md#over-http); those of a simulation are on [another page](metrics.md). A *controller* is what a \
promise is made to: a Deployment, StatefulSet, Job or the like, or a bare pod. A histogram `NAME` has the series \
`NAME_bucket` (with the label `le`), `NAME_sum` and `NAME_count`. The client library adds `process_*`, and of the \
scheduler `python_*`."""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for group in GROUPS for line in section(group))]) + "\n"


def section(group: Families) -> Iterator[str]:
    """A heading and the table of a group."""
    yield f"\n## {group.title}\n\n{group.when}\n"
    yield "| metric | type | labels | meaning |\n|---|---|---|---|"
    yield from map(row, group.declared)


def row(family: Family) -> str:
    """The line of one metric."""
    labels = ", ".join(f"`{one}`" for one in family.labels)
    return f"| `{family.exported}` | {family.kind} | {labels} | {family.meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
