"""From tables to arrays, and from a manifest to classes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from slacktide import settings
from slacktide.config import Config
from slacktide.metrics.columns import accounting_of, bin_of, bins, class_codes, classes_of, numbers
from slacktide.model import PenaltyTier
from support.run_tables import BRONZE, CLASSES


def test_a_manifest_names_the_classes_with_their_tiers() -> None:
    mine = (*CLASSES, replace(BRONZE, name="tin", rank=4, overhead_limit=0.2, tiers=(PenaltyTier(0.9, 0.5),)))
    config = replace(Config(), classes=mine)
    manifest = json.loads(json.dumps({"configuration": settings.to_mapping(config)}))
    assert classes_of(manifest) == mine
    assert accounting_of(manifest) == config.qos.startup


def test_chunks_may_have_words_of_their_own() -> None:
    chunks = [pa.array(["bronze", "gold"]).dictionary_encode(), pa.array(["gold", "silver"]).dictionary_encode()]
    for column in (pa.chunked_array(chunks), pa.chunked_array([chunk.cast(pa.string()) for chunk in chunks])):
        assert class_codes(pa.table({"class": column}), CLASSES).tolist() == [2, 0, 0, 1]
    assert class_codes(pa.table({"class": pa.array([], pa.string())}), CLASSES).tolist() == []


def test_null_is_no_number() -> None:
    found = numbers(pa.table({"x": pa.array([1, None, 3], pa.int32())}), "x")
    assert found.dtype == np.float64
    assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("count", [1, 2, 7, 20, 100])
def test_every_span_holds_its_lower_end(count: int) -> None:
    assert bin_of(np.arange(count) / count, count).tolist() == list(range(count))
    assert bin_of(np.array([1.0]), count).tolist() == [count - 1]
    assert bins(1.0 / count) == count
