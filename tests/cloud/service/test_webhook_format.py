"""The retry schedule and the Retry-After header."""

from datetime import UTC, datetime

import pytest

from docferry_cloud import webhook_format


def test_the_schedule_is_the_specs_with_jitter_and_an_end():
    waits = [webhook_format.next_wait(n, webhook_format.RETRY_SECONDS, 0, 0.0) for n in range(1, 11)]
    assert waits == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400, None]
    assert webhook_format.next_wait(1, webhook_format.RETRY_SECONDS, 0, 1.0) == pytest.approx(5.5)
    assert webhook_format.next_wait(1, webhook_format.RETRY_SECONDS, 120, 0.0) == 120


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("120", 120),
        ("999999", 86400),
        ("Tue, 01 Dec 2026 00:01:00 GMT", 60),
        ("Tue, 01 Dec 2020 00:01:00 GMT", 0),
        ("soon", 0),
        ("-5", 0),
        ("Tue, 01 Dec 2026 00:01:00", 0),
    ],
)
def test_retry_after_is_read_in_both_forms(header, seconds):
    assert webhook_format.retry_after(header, datetime(2026, 12, 1, tzinfo=UTC)) == seconds
