"""What a class may promise."""

from __future__ import annotations

import pytest

from slacktide.errors import ConfigError
from slacktide.model.service_class import LEAST_SLO, ServiceClass


@pytest.mark.parametrize("slo", [0.0, -0.5, 0.000999, 1.0000001, 95.0, float("nan"), float("inf")])
def test_a_promise_that_is_no_share_or_too_small_to_be_exact_is_refused(slo: float) -> None:
    with pytest.raises(ConfigError, match=r"service class 'tin': slo: found .*, expected a number from 0\.001 to 1"):
        ServiceClass("tin", slo, 1)


@pytest.mark.parametrize("slo", [LEAST_SLO, 0.5, 1.0])
def test_a_promise_that_can_be_kept_is_taken(slo: float) -> None:
    assert ServiceClass("tin", slo, 1).slo == slo
