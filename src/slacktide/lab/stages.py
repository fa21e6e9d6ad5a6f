"""How KWOK plays kubelets: ``stages.yaml``; annotations steer it (:mod:`slacktide.submit.kubelet_annotations`)."""

from __future__ import annotations

from pathlib import Path

CONFIGURATION = Path(__file__).with_name("stages.yaml")
"""What KWOK is started with."""
