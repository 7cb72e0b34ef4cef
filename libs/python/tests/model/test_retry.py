"""Retry delays as the fold computes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servo.model.categories import Backoff, ErrorCategory
from servo.model.hashes import crockford
from servo.model.retry import RetryPolicy


def policy(backoff: Backoff) -> RetryPolicy:
    return RetryPolicy(backoff=backoff, initial_delay_ms=1_000, max_delay_ms=10_000)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.EXPONENTIAL, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]),
        (Backoff.LINEAR, [1_000, 2_000, 3_000, 4_000, 5_000, 6_000]),
        (Backoff.CONSTANT, [1_000] * 6),
    ],
)
def test_delays_grow_by_their_kind(backoff: Backoff, delays: list[int]) -> None:
    assert [policy(backoff).full_delay_ms(failures) for failures in range(1, 7)] == delays


def test_jitter_is_between_half_and_all() -> None:
    delays = [policy(Backoff.CONSTANT).delay_ms(1, crockford(bytes([byte] * 16))) for byte in (0, 0x80, 0xFF)]
    assert delays == [500, 750, 999]


def test_failures_end_by_count_category_and_type() -> None:
    attempt = crockford(bytes(16))
    careful = RetryPolicy(
        backoff=Backoff.CONSTANT,
        initial_delay_ms=1_000,
        max_attempts=2,
        retry_types=frozenset({"Flaky"}),
        never_types=frozenset({"Hopeless"}),
    )
    assert careful.after_failure(2, ErrorCategory.TRANSIENT, attempt) is None
    retried = [c for c in ErrorCategory if careful.after_failure(1, c, attempt) == 500]
    assert retried == [ErrorCategory.TRANSIENT, ErrorCategory.INFRASTRUCTURE, ErrorCategory.TIMEOUT]

    def again(error_type: str, retriable: bool | None) -> bool:
        return careful.after_failure(1, ErrorCategory.USER_CODE, attempt, error_type, retriable) is not None

    assert again("Flaky", None)
    assert again("ValueError", True)
    assert not again("ValueError", None)
    assert not again("Hopeless", True)
    assert not again("Flaky", False)


@given(
    st.sampled_from(list(Backoff)),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 80),
    st.binary(min_size=16, max_size=16),
)
def test_delays_are_bounded_and_never_decrease(
    backoff: Backoff, initial: int, longest: int, failures: int, raw: bytes
) -> None:
    policy = RetryPolicy(backoff=backoff, initial_delay_ms=initial, max_delay_ms=longest)
    attempt = crockford(raw)
    full, delay = policy.full_delay_ms(failures), policy.delay_ms(failures, attempt)
    assert full <= longest
    assert full <= 2 * delay <= 2 * full
    assert policy.delay_ms(failures + 1, attempt) >= delay
