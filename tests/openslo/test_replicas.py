"""Which indicators are shares of replicas as kube-state-metrics counts them, and whose replicas these are."""

from __future__ import annotations

import pytest

from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.openslo.promql import Call, Matcher, Number, Operation, Selector, parse
from slacktide.openslo.replicas import workload_of
from slacktide.openslo.slos import Indicator, Query
from slacktide.settings_file import SettingsFile

AVAILABLE = 'kube_deployment_status_replicas_available{namespace="shop",deployment="web"}'
ASKED = 'kube_deployment_spec_replicas{namespace="shop",deployment="web"}'
DOWN = 'kube_deployment_status_replicas_unavailable{namespace="shop",deployment="web"}'
READY = 'kube_pod_status_ready{namespace="shop",pod=~"web-.*",condition="true"}'
NOT_READY = READY.replace('"true"', '"false"')
W = "[{{.window}}]"


def indicator(**queries: str) -> Indicator:
    node = Node(SettingsFile("slo.yaml", {}), ("spec",), {})
    return Indicator(node, tuple(Query(role, text, Node(node.file, (role,), text)) for role, text in queries.items()))


def of(**queries: str) -> str:
    return str(workload_of(indicator(**queries)))


# -- what is availability ----------------------------------------------------------------------------------------------

SHARES: dict[str, dict[str, str]] = {
    "available over asked for": {"good": f"sum({AVAILABLE})", "total": f"sum({ASKED})"},
    "ready over asked for": {"good": AVAILABLE.replace("available", "ready"), "total": ASKED},
    "one of both over those that are there": {
        "good": f"sum by (namespace) ({AVAILABLE})",
        "total": f"sum({ASKED.replace('spec_replicas', 'status_replicas')}) by (namespace)",
    },
    "unavailable ones": {"bad": f"sum(sum_over_time({DOWN}{W}))", "total": f"sum(sum_over_time({ASKED}{W}))"},
    "a difference": {"bad": f"sum({ASKED}) - sum({AVAILABLE})", "total": f"sum({ASKED})"},
    "a difference that is not negative": {"bad": f"clamp_min({ASKED} - {AVAILABLE}, 0)", "total": ASKED},
    "averages over time": {"good": f"avg_over_time({AVAILABLE}{W})", "total": f"avg_over_time({ASKED}{W})"},
    "a ratio": {"success": f"avg_over_time(({AVAILABLE} / {ASKED})[30d:1m])"},
    "a ratio of errors": {"failure": f"1 - (sum({AVAILABLE}) / sum({ASKED}))"},
    "a ratio of errors by unavailable ones": {"failure": f"({DOWN} / {ASKED}) or vector(0)"},
    "matched by labels": {"success": f"{AVAILABLE} / on (namespace, deployment) kube_deployment_spec_replicas"},
    "several exporters": {
        "success": f"max by (namespace, deployment) ({AVAILABLE}) / max by (namespace, deployment) ({ASKED})"
    },
    "labels of the target beside": {
        "good": AVAILABLE.replace("{", '{job="kube-state-metrics",').replace("namespace=", "exported_namespace="),
        "total": ASKED.replace("{", "{namespace='monitoring',").replace(
            ',namespace="shop"', ',exported_namespace="shop"'
        ),
    },
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_of_a_deployments_replicas_are_recognised(name: str) -> None:
    assert of(**SHARES[name]) == "Deployment shop/web"


POD_SHARES: dict[str, dict[str, str]] = {
    "a gauge that is 1 or 0": {"gauge": READY},
    "an average": {"success": f"avg(avg_over_time({READY}{W}))"},
    "ready over all": {"good": f"sum({READY})", "total": f"count({READY})"},
    "ready over all in time": {"good": f"sum(sum_over_time({READY}{W}))", "total": f"sum(count_over_time({READY}{W}))"},
    "not ready over all conditions": {
        "bad": f"sum(avg_over_time({NOT_READY}{W})) by (pod, cluster)",
        "total": f"sum(avg_over_time({NOT_READY.replace(',condition=', ',other=').replace('false', 'x')}{W})) by (pod)",
    },
    "not ready or unknown": {
        "bad": READY.replace('="true"', '=~"false|unknown"'),
        "total": READY.replace('="true"', '=~".*"'),
    },
    "not true": {
        "failure": f"avg({READY.replace('=', '!=', 3).replace('namespace!', 'namespace').replace('pod!', 'pod')})"
    },
    "1 minus": {"failure": f"1 - avg({READY})"},
}


@pytest.mark.parametrize("name", POD_SHARES)
def test_shares_of_ready_pods_are_recognised(name: str) -> None:
    assert of(**POD_SHARES[name]) == "Pod shop/~web-.*"


def test_statefulsets_and_daemonsets_have_metrics_of_their_own() -> None:
    good = 'kube_statefulset_status_replicas_ready{namespace=~"shop|bank",statefulset="db"}'
    total = 'kube_statefulset_replicas{namespace=~"shop|bank",statefulset="db"}'
    found = workload_of(indicator(good=good, total=total))
    assert found is not None
    assert (str(found), found.in_namespaces()) == ("StatefulSet ~shop|bank/db", ("shop", "bank"))
    bad = 'kube_daemonset_status_number_unavailable{daemonset="cni"}'
    total = 'kube_daemonset_status_desired_number_scheduled{daemonset="cni"}'
    assert of(bad=f"sum_over_time({bad}{W})", total=f"sum_over_time({total}{W})") == "DaemonSet */cni"


@pytest.mark.parametrize("query", ["sum(rate(http_requests_total[5m]))", "probe_success", "", "up{"])
def test_other_metrics_are_none_of_its_business(query: str) -> None:
    assert workload_of(indicator(good=query, total=query)) is None


# -- what is not -------------------------------------------------------------------------------------------------------

OTHERS: dict[str, tuple[dict[str, str], str]] = {
    "turned round": ({"bad": AVAILABLE, "total": ASKED}, "it is the share that is up, where that which is down"),
    "down as good": ({"good": DOWN, "total": ASKED}, "it is the share that is down, where that which is up"),
    "per cent": ({"success": f"100 * {AVAILABLE} / {ASKED}"}, "from 0 to 1"),
    "no ratio": ({"success": AVAILABLE}, "a number of replicas, no share"),
    "all at once": ({"success": f"{AVAILABLE} >= bool {ASKED}"}, "asks whether all replicas are up at once"),
    "another deployment": (
        {"good": f"sum({AVAILABLE})", "total": f"sum({ASKED.replace('web', 'api')})"},
        "one side is of Deployment shop/web, the other of Deployment shop/api",
    ),
    "all deployments": ({"good": f"sum({AVAILABLE})", "total": "sum(kube_deployment_spec_replicas)"}, "the other of"),
    "pods over deployments": ({"good": f"sum({READY})", "total": f"sum({ASKED})"}, "one side counts Pods"),
    "a moment over a time": ({"good": AVAILABLE, "total": f"sum_over_time({ASKED}{W})"}, "adds up over time"),
    "three series a pod": (
        {"good": f"sum({READY})", "total": "count(kube_pod_status_ready{namespace='shop'})"},
        "three series a pod",
    ),
    "a rate of a gauge": ({"good": f"rate({AVAILABLE}[5m])", "total": ASKED}, "rate of a gauge"),
    "running is not ready": (
        {"good": 'sum(kube_pod_status_phase{phase="Running"})', "total": ASKED},
        "kube_pod_status_phase counts none",
    ),
    "a condition": (
        {"gauge": 'kube_deployment_status_condition{condition="Available",status="true"}'},
        "kube_deployment_status_condition counts none",
    ),
    "nodes": (
        {"gauge": 'kube_node_status_condition{condition="Ready",status="true"}'},
        "kube_node_status_condition counts none",
    ),
    "requests among them": (
        {"good": AVAILABLE, "total": "sum(rate(http_requests_total[5m]))"},
        "rate of a gauge",
    ),
    "everybody's": (
        {"good": "sum(kube_deployment_status_replicas_available)", "total": "sum(kube_deployment_spec_replicas)"},
        "name no workload",
    ),
    "the least": ({"good": f"min({AVAILABLE})", "total": f"min({ASKED})"}, "min is neither a sum nor an average"),
    "two in one": ({"good": f"{AVAILABLE} or {READY}", "total": ASKED}, "'or' of two vectors"),
    "divided by nothing": ({"success": f"{AVAILABLE} / 0"}, "a division by 0"),
    "cut off": ({"good": AVAILABLE[:-2], "total": ASKED}, "expected PromQL"),
    "an open bracket": ({"good": f"sum({AVAILABLE}", "total": ASKED}, "found 'the end', expected ','"),
    "a chart's words": ({"good": AVAILABLE.replace('"web"', "{{ .name }}"), "total": ASKED}, "expected PromQL"),
    "a label without quotes": ({"good": AVAILABLE.replace('"web"', "web"), "total": ASKED}, "a text in quotes behind"),
    "two queries": ({"good": f"{AVAILABLE} {ASKED}", "total": ASKED}, "an operator or the end"),
    "a thousand brackets": ({"success": "(" * 1000 + AVAILABLE + ")" * 1000}, "nested too deeply"),
    "a broken pattern": ({"gauge": READY.replace('="true"', '=~"("')}, "a regular expression"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_share_of_replicas_is_refused_by_name(name: str) -> None:
    queries, why = OTHERS[name]
    with pytest.raises(ConfigError) as refused:
        workload_of(indicator(**queries))
    text = str(refused.value)
    assert text.startswith("slo.yaml: ")
    assert "expected a share of replicas that are up" in text
    assert why in text


# -- the language ------------------------------------------------------------------------------------------------------


def test_promql_is_read_by_its_own_precedence() -> None:
    assert parse("1 - 2 * 3 or up") == Operation(
        "or", Operation("-", Number(1), Operation("*", Number(2), Number(3))), Selector("up", ())
    )
    assert parse("1 - 2 - 3") == Operation("-", Operation("-", Number(1), Number(2)), Number(3))
    assert parse("a == bool on (x) group_left (y) b") == Operation("== bool", Selector("a", ()), Selector("b", ()))


def test_promql_is_read_with_all_its_trimmings() -> None:
    query = """sum without (pod) ( # a comment
        rate(x:y{a='b\\'c', d!~`e`, "f"!="g",}[5m:30s] offset -1h) ) """
    inner = Selector("x:y", (Matcher("a", "=", "b'c"), Matcher("d", "!~", "e"), Matcher("f", "!=", "g")))
    assert parse(query) == Call("sum", (Call("rate", (inner,)),), None)
    assert parse("sum(a) by (b, c)") == Call("sum", (Selector("a", ()),), ("b", "c"))
    assert parse('{__name__="up", a="b"}') == Selector("up", (Matcher("a", "=", "b"),))
