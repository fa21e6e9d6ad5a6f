"""Documents of OpenSLO, checked to the last field; their SLOs as the import looks at them.

The two versions differ in names only (:class:`Form`); v1alpha (``v1alpha.py``) says indicators and windows otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import UNSET

from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.openslo import windows
from slacktide.openslo.kinds import (
    API_VERSION,
    PARTS,
    SPECS,
    V2_API_VERSION,
    V2_SPECS,
    Document,
    Part,
    ServiceSpec,
    V2Document,
)
from slacktide.openslo.slos import Budgeting, Indicator, Query, Read, Slo, annotations_of, key_at

TIME_BASED = ("Timeslices", "RatioTimeslices")
ROLES = ("good", "bad", "total", "raw")


@dataclass(frozen=True, slots=True)
class Form:
    """A version: its types, and what it calls an indicator and the way to a query."""

    version: str
    document: type
    specs: Mapping[str, type]
    indicator: str
    reference: str
    services: tuple[str, ...]
    query: tuple[str, ...]
    parts: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=lambda: PARTS)
    windows: str = "timeWindow"

    def read(self, node: Node) -> Read:
        """One document. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
        plain: Any = node.convert(self.document)
        kind = str(plain.kind)
        spec: Any = ServiceSpec()
        if kind in self.specs and node.value.get("spec") is not None:
            spec = node.child("spec").convert(self.specs[kind])
        elif kind in self.specs and kind != "Service":
            raise ConfigError(
                f"{key_at(node, 'kind')}: spec is missing, expected the spec of a document of kind {kind}"
            )
        self._check_parts(kind, node)
        if kind == "SLI":
            metric_of(node.child("spec"))
        name = str(plain.metadata.name)
        annotations = annotations_of(node.child("metadata"))
        return Read(node, kind, name, annotations, spec, self.slos, (self.version, kind, name))

    def _check_parts(self, kind: str, document: Node) -> None:
        """What stands in lists of a document: whole documents, or the names of such, which may be in other files."""
        for key, reference, of in self.parts.get(kind, ()):
            if not document.child("spec").value.get(key):
                continue
            for item in _items(document.child("spec").child(key)):
                if isinstance(item.value, str):  # as the schema of 2022 had it
                    continue
                if not isinstance(item.value, dict) or (reference in item.value) == ("spec" in item.value):
                    item.fail(f"a mapping with {reference}, or a whole {of}")
                if reference in item.value:
                    if not isinstance(item.value[reference], str):
                        item.child(reference).fail(f"the name of an {of}")
                    continue
                part = item.convert(Part)
                if part.kind not in (of, UNSET):
                    item.child("kind").fail(of)
                if part.api_version not in (self.version, UNSET):
                    item.child("apiVersion").fail(self.version)
                item.child("spec").convert(self.specs[of])
                self._check_parts(of, item)

    def slos(self, document: Read, documents: Sequence[Read]) -> list[Slo]:
        """Its SLO, if it is one. Raises :class:`ConfigError` for one that is about several things."""
        if document.kind != "SLO":
            return []
        node = document.node.child("spec")
        objectives = node.child("objectives")
        if len(objectives.value) > 1:
            objectives.child(1).fail("one objective: a class promises one availability; make an SLO of each")
        objective = objectives.child(0)
        for key in (self.indicator, self.reference, "compositeWeight"):
            if key in objective.value:
                objective.child(key).fail("no composite SLO: a class promises the availability of its own workloads")
        indicator = self._indicator(node, documents)
        method = node.child("budgetingMethod")
        metadata = document.node.child("metadata")
        window_at = node.child(self.windows).child(0) if node.value.get(self.windows) else None
        return [
            Slo(
                label=document.label,
                name=document.name,
                name_at=metadata.child("name"),
                metadata=metadata,
                annotations=document.annotations,
                objective=objective,
                target=target_of(objective),
                window=self._window(window_at) if window_at is not None else None,
                window_at=window_at,
                indicator=indicator,
                budgeting=Budgeting(method, method.value in TIME_BASED),
                service=self._service(node, documents),
            )
        ]

    def _window(self, node: Node) -> dict[str, Any]:
        return windows.of_openslo(node)

    def _indicator(self, node: Node, documents: Sequence[Read]) -> Indicator:
        if (self.indicator in node.value) == (self.reference in node.value):
            raise ConfigError(f"{node.where}: {self.indicator}: expected either {self.indicator} or {self.reference}")
        if self.reference in node.value:
            sli = self._other("SLI", node.value[self.reference], documents)
            if sli is None:
                node.child(self.reference).fail("the name of an SLI in these files")
            spec = sli.node.child("spec")
        else:
            spec = node.child(self.indicator).child("spec")
        metric = metric_of(spec)
        if metric.place[-1] == "thresholdMetric":
            return Indicator(metric, (), threshold=True)
        return Indicator(metric, tuple(self._queries(metric)))

    def _queries(self, ratio: Node) -> Iterator[Query]:
        """All queries of a ratio; one that has none counts as empty text."""
        for role in (one for one in ROLES if one in ratio.value):
            node = ratio.child(role)
            for step in self.query:
                if not isinstance(node.value, dict) or step not in node.value:
                    break
                node = node.child(step)
            text = node.value if isinstance(node.value, str) else ""
            yield Query(ratio.value.get("rawType", "success") if role == "raw" else role, text, node)

    def _service(self, node: Node, documents: Sequence[Read]) -> tuple[Mapping[str, str], Node] | None:
        names = [node.value[key] for key in self.services if key in node.value]
        if not names:
            raise ConfigError(f"{node.where}: {self.services[0]} is missing, expected the name of a service")
        service = self._other("Service", names[0], documents)
        return None if service is None else (service.annotations, service.node.child("metadata"))

    def _other(self, kind: str, name: str, documents: Sequence[Read]) -> Read | None:
        return next((one for one in documents if one.key == (self.version, kind, name)), None)


V1 = Form(
    API_VERSION, Document, SPECS, "indicator", "indicatorRef", ("service",), ("metricSource", "spec", "query")
)  # fmt: skip
V2ALPHA = Form(V2_API_VERSION, V2Document, V2_SPECS, "sli", "sliRef", ("service", "serviceRef"), ("spec", "query"))


def _items(node: Node) -> Iterator[Node]:
    return (node.child(index) for index in range(len(node.value)))


def metric_of(indicator: Node) -> Node:
    """The ``thresholdMetric`` or ``ratioMetric`` of an indicator. Raises :class:`ConfigError` where it is none."""
    said = indicator.value
    if ("thresholdMetric" in said) == ("ratioMetric" in said):
        raise ConfigError(f"{indicator.where}: ratioMetric: expected either thresholdMetric or ratioMetric")
    if "thresholdMetric" in said:
        return indicator.child("thresholdMetric")
    ratio = indicator.child("ratioMetric")
    of = {key for key in ROLES if key in ratio.value}
    if of not in ({"good", "total"}, {"bad", "total"}, {"raw"}):
        raise ConfigError(f"{ratio.where}: total: found {', '.join(sorted(of)) or 'nothing'}, expected good and total, "
                          f"bad and total, or raw")  # fmt: skip
    if "raw" in of and "rawType" not in ratio.value:
        raise ConfigError(f"{ratio.where}: rawType is missing, expected success or failure")
    return ratio


def check_slices(objective: Node, method: object) -> None:
    """OpenSLO wants to know which share of a slice makes it a good one; a class has no use for it."""
    share = objective.value.get("timeSliceTarget")
    if share is None:
        if method == "Timeslices":
            raise ConfigError(
                f"{objective.where}: timeSliceTarget: expected a number above 0 and at most 1, as budgetingMethod is "
                "Timeslices"
            )
    elif not 0 < share <= 1:
        objective.child("timeSliceTarget").fail("a number above 0 and at most 1")


def target_of(objective: Node) -> float:
    """The share of ``target`` or ``targetPercent``."""
    said = objective.value
    if ("target" in said) == ("targetPercent" in said):
        raise ConfigError(f"{objective.where}: target: expected either target or targetPercent")
    key, most = ("target", 1) if "target" in said else ("targetPercent", 100)
    node = objective.child(key)
    if not 0 <= node.value < most:
        node.fail(f"a number from 0 to below {most}: OpenSLO knows no promise without a budget")
    share: Decimal = Decimal(repr(node.value)) / most
    return float(share)
