"""A connection may send a burst, and then so many messages a second."""

from viz.server.websocket_messages import Pace


def test_a_burst_goes_through_and_the_rest_waits_for_its_time():
    pace = Pace(3, 2.0, clock=lambda: 100.0)
    assert [pace.wait() for _ in range(6)] == [0, 0, 0, 0.5, 1.0, 1.5]


def test_a_pause_allows_another_burst_and_no_more_than_that():
    now = [0.0]
    pace = Pace(3, 2.0, clock=lambda: now[0])
    for _ in range(3):
        pace.wait()
    now[0] = 1000.0
    assert [pace.wait() for _ in range(4)] == [0, 0, 0, 0.5]
