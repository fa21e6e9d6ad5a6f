"""Prometheus rules: alerts where slacktide itself does not work, by the metrics as they are declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slacktide.kube.observe.families import Family
from slacktide.kube.observe.scrape import (
    ASIDE,
    BOUND_BY_OTHERS,
    CERTIFICATE_ENDS,
    LEADER,
    LEDGER_PENDING,
    LEDGER_WRITES,
    PASS_SECONDS,
    PENDING_PODS,
    POLICIES_MISSING,
    WATCH_DEAD,
    WITHOUT_CLASS,
)

RUNBOOKS = "https://slacktide.io/runbooks.html"
"""The page, as `make docs` builds it; each alert's section is anchored by its name in small letters."""


def annotated(alert: str, summary: str, description: str) -> dict[str, str]:
    """The annotations of an alert."""
    return {"summary": summary, "description": description, "runbook_url": f"{RUNBOOKS}#{alert.lower()}"}


RELEASE = "namespace, job"
"""Labels that the replicas of one release have in common, in whatever way Prometheus finds them."""
WEEK = 7 * 86_400

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Health:
    """An alert about slacktide."""

    name: str
    expr: str
    lasting: str
    severity: str
    summary: str
    description: str

    def rule(self) -> Json:
        """As Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasting,
            "labels": {"severity": self.severity},
            "annotations": annotated(self.name, self.summary, self.description),
        }


def _of(how: str, family: Family, more: str = "") -> str:
    return f"{how} by ({RELEASE}{more}) ({family.exported})"


def _gained(family: Family, window: str, ending: str = "") -> str:
    return f"sum by ({RELEASE}) (increase({family.exported}{ending}[{window}]))"


ALERTS = (
    Health(
        "SlacktideNobodyLeads",
        f"{_of('sum', LEADER)} == 0\nor absent({LEADER.exported})",
        "1m",
        "page",
        "No replica of slacktide schedules.",
        "No replica leads, or none is scraped: pods with its schedulerName wait, and no promise is watched.",
    ),
    Health(
        "SlacktideTwoLead",
        f"{_of('sum', LEADER)} > 1",
        "1m",
        "page",
        "{{ $value }} replicas of slacktide lead at once.",
        "{{ $value }} replicas of {{ $labels.job }} say that they lead: each may evict what the other places.",
    ),
    Health(
        "SlacktideNoPass",
        f'sum by ({RELEASE}) ({PENDING_PODS.exported}{{queue="active"}}) > 0\n'
        f"and {_gained(PASS_SECONDS, '3m', '_count')} == 0",
        "2m",
        "page",
        "slacktide does not look at pods that wait.",
        "{{ $value }} pods wait to be looked at, and there was no pass in 3 minutes; one is due every ten seconds.",
    ),
    Health(
        "SlacktideWatchStale",
        f"{_of('max', WATCH_DEAD, ', kind')} > 0",
        "1m",
        "page",
        "slacktide hears no changes of {{ $labels.kind }}.",
        "A watch of {{ $labels.kind }} received nothing for longer than a watch lasts. A replica without it does not "
        "decide; nobody does where both are without it.",
    ),
    Health(
        "SlacktideLedgersNotWritten",
        f'{_gained(LEDGER_WRITES, "5m", """{result="failed"}""")} > 0\n'
        f"or (sum by ({RELEASE}) (min_over_time({LEDGER_PENDING.exported}[10m])) > 0\n"
        f'and {_gained(LEDGER_WRITES, "10m", """{result="written"}""")} == 0)',
        "10m",
        "ticket",
        "Ledgers of promises are not written.",
        "Writes of ledgers fail, or wait: what workloads lose from now on is forgotten when the leader changes.",
    ),
    Health(
        "SlacktidePodsWithoutClass",
        f"{_of('max', WITHOUT_CLASS)} > 0",
        "5m",
        "ticket",
        "Pods name a service class that does not exist, or that their namespace may not use: {{ $value }}.",
        "They are not scheduled. slacktide top --once names them and the class.",
    ),
    Health(
        "SlacktideObjectsAside",
        f"{_of('max', ASIDE)} > 0",
        "5m",
        "ticket",
        "{{ $value }} objects are ignored because slacktide cannot use them.",
        "{{ $value }} objects are set aside until they change: what they say does not hold for any decision.",
    ),
    Health(
        "SlacktideAdmissionMissing",
        f"{_of('max', POLICIES_MISSING)} > 0",
        "5m",
        "ticket",
        "Admission policies of slacktide are missing.",
        "{{ $value }} of its admission policies and bindings are not there: what is written wrong is let in, and its "
        "pods wait.",
    ),
    Health(
        "SlacktideCertificateEnds",
        f"{_of('min', CERTIFICATE_ENDS)} - time() < {WEEK}",
        "10m",
        "ticket",
        "The certificate of slacktide's own address ends in {{ $value | humanizeDuration }}.",
        "The certificate of kube.tls_certificate ends in {{ $value | humanizeDuration }}; from then on neither "
        "Prometheus nor slacktide explain reaches the scheduler.",
    ),
    Health(
        "SlacktideReleasesFight",
        f"{_gained(BOUND_BY_OTHERS, '10m')} > 2",
        "1m",
        "page",
        "Somebody else binds slacktide's pods.",
        "{{ $value | humanize }} pods that waited here were bound by another scheduler within 10 minutes: a second "
        "release has the same schedulerName.",
    ),
)


def group() -> Json:
    """The group of these alerts."""
    return {"name": "slacktide-health", "rules": [one.rule() for one in ALERTS]}
