"""How long a slot waits before it asks again."""

from hypothesis import given
from hypothesis import strategies as st

from qualeval.retry import backoff


@given(st.integers(1, 10**9), st.floats(0.001, 3600))
def test_wait_grows_up_to_its_cap_whatever_the_attempt(attempt: int, max_wait: float) -> None:
    """A card may ask for thousands of attempts."""
    wait, later = (backoff(number, None, max_wait) for number in (attempt, attempt + 1))
    assert 0 < wait <= later <= max_wait


def test_waits_are_a_second_and_twice_the_one_before() -> None:
    assert [1, 2, 4, 8] == [backoff(attempt, None, 60) for attempt in (1, 2, 3, 4)]


def test_server_that_says_how_long_is_obeyed_up_to_the_cap() -> None:
    assert (7.5, 60) == (backoff(1, 7.5, 60), backoff(1, 1e6, 60))
    assert 2 == backoff(2, 0, 60), "at once is no time to wait"
