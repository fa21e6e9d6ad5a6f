"""Which answers 403 may be others in a moment, and for how long that is waited for."""

from __future__ import annotations

import pytest

from slacktide.kube.client.pacing import MissingRights, lacks_right, right_of

POD = "/api/v1/namespaces/shop/pods/web-1"
MISSING = (
    'pods "web-1" is forbidden: User "system:serviceaccount:slacktide-system:slacktide" cannot create resource '
    '"pods/eviction" in API group "" in the namespace "shop": RBAC: clusterrole.rbac.authorization.k8s.io '
    '"slacktide-scheduler" not found'
)


@pytest.mark.parametrize(
    "message",
    [
        'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
        'events "a" is forbidden: unable to create new content in namespace b because it is being terminated',
        "deployments.apps \"front\" is forbidden: ValidatingAdmissionPolicy 'slacktide-class' denied request: no",
        'pods "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set',
        "",
    ],
)
def test_other_refusals_are_answers(message: str) -> None:
    assert lacks_right(MISSING)
    assert not lacks_right(message)
    assert not MissingRights(30.0).may_come("POST", POD, message)


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (POD, ("PATCH", "api", "v1", "pods")),
        (f"{POD}/status", ("PATCH", "api", "v1", "pods", "status")),
        ("/api/v1/pods?limit=1", ("PATCH", "api", "v1", "pods")),
        ("/api/v1/namespaces/shop", ("PATCH", "api", "v1", "namespaces")),
        ("/apis/slacktide.io/v1beta1/namespaces/shop/availabilities/pod-a",
         ("PATCH", "apis", "slacktide.io", "v1beta1", "availabilities")),
        ("/version", ("PATCH", "version")),
    ],
)  # fmt: skip
def test_a_right_is_the_same_for_all_objects_of_a_kind(path: str, right: tuple[str, ...]) -> None:
    assert right_of("PATCH", path) == right


def test_a_right_is_waited_for_once_until_it_was_granted() -> None:
    now = [1000.0]
    missing, eviction = MissingRights(30.0, lambda: now[0]), f"{POD}/eviction"
    assert missing.may_come("POST", eviction, MISSING)
    now[0] += 29.0
    assert missing.may_come("POST", eviction, MISSING)
    now[0] += 1.0
    assert not missing.may_come("POST", eviction, MISSING)
    assert not missing.may_come("POST", "/api/v1/namespaces/other/pods/p/eviction", MISSING)
    assert missing.may_come("PATCH", f"{POD}/status", MISSING)  # another right
    now[0] += 1000.0
    assert not missing.may_come("POST", eviction, MISSING)  # nobody has given it
    missing.granted("POST", eviction)
    assert missing.may_come("POST", eviction, MISSING)  # an API server has begun anew
    assert not MissingRights(0.0).may_come("POST", eviction, MISSING)
