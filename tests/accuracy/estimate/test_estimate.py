"""A small member of `script/accuracy estimate`."""

import pytest
from recording import default_build

from tests.accuracy.estimate.cases import SMALL_CASES, Case
from tests.accuracy.estimate.comparison import compare


@pytest.mark.parametrize("case", SMALL_CASES, ids=str)
def test_estimate_agrees_with_a_dry_run(case: Case) -> None:
    result = compare(default_build(), case)
    assert result.parameters_agree
    assert abs(result.states_error) < 0.1
    assert abs(result.peak_error) < 2
    assert result.used_low <= result.reserved <= result.used_high
