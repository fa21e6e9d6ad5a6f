"""Every object slacktide reads, with its kind, and the bodies it sends: one place to import from."""

from __future__ import annotations

from slacktide.kube.client.kinds import *
from slacktide.kube.client.metadata import *
from slacktide.kube.resources.bodies import *
from slacktide.kube.resources.custom_resources import *
from slacktide.kube.resources.devices import *
from slacktide.kube.resources.pods import *
from slacktide.kube.resources.volumes import *
from slacktide.kube.resources.workloads import *
