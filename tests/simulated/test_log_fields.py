"""Lines of the log that a leader says while it decides know their pod, node and pass."""

from __future__ import annotations

import io
import json
import logging

from cluster.labtools import pod
from simulated.stage import service_class, staged
from slacktide.kube.client.log_fields import JsonFormatter


def test_a_decision_that_is_given_up_names_pod_and_node() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    with staged([service_class("bronze", 0.5, 3, default=True)]) as place:
        logging.getLogger("slacktide").addHandler(handler)
        logging.getLogger("slacktide").setLevel(logging.INFO)
        try:
            place.nodes(1)
            resources = {"spec": {"provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer"}}
            place.create("storageclasses", {"metadata": {"name": "disks"}, **resources["spec"]})
            wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            place.create(
                "persistentvolumeclaims",
                {"metadata": {"name": "data"}, "spec": {"storageClassName": "disks", **wanted}},
            )
            place.wait(1.0)
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            place.create("pods", pod("one", volumes=volumes))
            place.wait(2.0)
            key = {"volume.kubernetes.io/selected-node": None}
            place.merge("persistentvolumeclaims", "data", {"metadata": {"annotations": key}})
            place.wait(2.0)
        finally:
            logging.getLogger("slacktide").removeHandler(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (given_up,) = [one for one in lines if "goes back to the queue" in one["message"]][:1]
    assert (given_up["pod"], given_up["node"], given_up["level"]) == (f"{place.namespace}/one", "node-0", "info")
