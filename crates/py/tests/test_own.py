"""Controllers and schedulers in Python."""

import traceback

import pytest

import fairpath as fp

ENDS = {"from": "a", "to": "b"}


@pytest.fixture
def two_links():
    return fp.Scenario(
        duration="6s",
        warm_up="2s",
        links=[
            {"name": "fast", "rate": "10Mbit/s", "delay": "10ms", "queue": "20 packets", **ENDS},
            {"name": "slow", "rate": "4Mbit/s", "delay": "25ms", "queue": "20 packets", **ENDS},
        ],
        flows=[{"name": "mine", "congestion": "reno", "via": [["fast"], ["slow"]], **ENDS}],
    )


class Fixed(fp.Controller):
    """The same window whatever happens."""

    def __init__(self, packets=4):
        self.packets = packets

    def window(self, path):
        return self.packets * path.max_datagram_bytes


class Reno(fp.Controller):
    def __init__(self):
        self.cwnd, self.reduced, self.seen = {}, {}, set()

    def on_open(self, path):
        self.cwnd[path.id], self.reduced[path.id] = 10.0 * path.max_datagram_bytes, -1

    def on_ack(self, path, ack):
        self.seen.add((path.id, len(self.paths)))
        assert path is self.paths[path.id] and path.rtt_min_ns <= path.rtt_ns
        if ack.window_limited and ack.sent_at_ns > self.reduced[path.id]:
            self.cwnd[path.id] += path.max_datagram_bytes * ack.bytes / self.cwnd[path.id]

    def on_loss(self, path, loss):
        if loss.sent_at_ns > self.reduced[path.id]:
            self.cwnd[path.id] /= 2
            self.reduced[path.id] = loss.now_ns

    def window(self, path):
        return self.cwnd[path.id]


def test_a_window_in_python_bounds_what_is_sent(two_links):
    """4 packets of 1,448 B of data in a round trip of 20 ms and a little, over 10 Mbit/s: 4 · 11.6 kbit / 21.6 ms."""
    only = two_links.replace("flow.mine.via", [["fast"]])
    four = only.run(controllers={"mine": Fixed}).goodput_bps("mine")
    assert 1.9e6 < four < 2.3e6
    eight = only.run(controllers={"mine": lambda: Fixed(8)}).goodput_bps("mine")
    assert 1.8 < eight / four < 2.05


def test_reno_in_python_fills_both_links_and_sees_all_paths(two_links):
    made = []

    def make():
        made.append(Reno())
        return made[-1]

    result = two_links.run(controllers={"mine": make})
    by_name = two_links.run()
    assert result.goodput_bps("mine") == pytest.approx(by_name.goodput_bps("mine"), rel=0.1)
    assert len(made) == 1 and made[0].seen == {(0, 2), (1, 2)}
    again = two_links.run(controllers={"mine": Reno})
    assert again.summary == result.summary


def test_a_pacing_rate_in_python_is_kept(two_links):
    class Paced(Fixed):
        def __init__(self):
            super().__init__(100)

        def pacing_rate(self, path):
            return 2e6

    rate = two_links.run(controllers={"mine": Paced}).goodput_bps("mine")
    assert 3.5e6 < rate < 4e6


def test_an_exception_ends_the_run_with_its_traceback(two_links):
    class Fails(Fixed):
        acks = 0

        def on_ack(self, path, ack):
            Fails.acks += 1
            if Fails.acks == 10:
                raise RuntimeError("the tenth was too much")

    with pytest.raises(RuntimeError, match="tenth") as raised:
        two_links.run(controllers={"mine": Fails})
    assert "on_ack" in "".join(traceback.format_exception(raised.value))
    assert Fails.acks == 10


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [(float("nan"), ValueError, "window gave NaN"), (-1, ValueError, "-1"), ("much", TypeError, "much, not a number")],
)
def test_a_window_that_is_none_ends_the_run(two_links, answer, error, says):
    class Wrong(fp.Controller):
        def window(self, path):
            return answer

    with pytest.raises(error, match=says):
        two_links.run(controllers={"mine": Wrong})


def test_what_is_no_controller_is_told(two_links):
    with pytest.raises(fp.ScenarioError, match="there is no flow 'yours'|yours"):
        two_links.run(controllers={"yours": Fixed})
    with pytest.raises(fp.ScenarioError, match="Controller"):
        two_links.run(controllers={"mine": 7})
    with pytest.raises(fp.ScenarioError, match="dict is no Controller"):
        two_links.run(controllers={"mine": dict})
    with pytest.raises(NotImplementedError, match="window"):
        two_links.run(controllers={"mine": fp.Controller})
    with pytest.raises(fp.ScenarioError, match="threads"):
        two_links.run(controllers={"mine": Fixed}, threads=2)
    with pytest.raises(AttributeError):

        class Writes(Fixed):
            def on_ack(self, path, ack):
                path.window_bytes = 7

        two_links.run(controllers={"mine": Writes})


class LeastRtt(fp.Scheduler):
    def pick(self, connection, paths):
        ready = [path for path in paths if path.has_room]
        return min(ready, key=lambda path: path.srtt_ns or 0)


def test_a_scheduler_in_python_is_what_the_same_rule_is(two_links):
    mine = two_links.run(schedulers={"mine": LeastRtt})
    named = two_links.replace("flow.mine.scheduler", "min_rtt").run()
    assert mine.summary["flows"] == named.summary["flows"] and mine.summary["links"] == named.summary["links"]


def test_a_scheduler_may_keep_to_one_path_and_wait_for_it(two_links):
    class First(fp.Scheduler):
        sent = 0

        def pick(self, connection, paths):
            return 0

        def on_sent(self, path, bytes):
            First.sent += path.id == 0

    paths = two_links.run(schedulers={"mine": First}).summary["flows"][0]["paths"]
    assert First.sent > 100 and paths[1]["sent_packets"] == 0 and paths[0]["goodput_bps"] > 8e6


@pytest.mark.parametrize(("answer", "says"), [(9, "path 9; there are 0, 1"), (None, "nothing is in flight")])
def test_a_choice_that_cannot_be_ends_the_run(two_links, answer, says):
    class Wrong(fp.Scheduler):
        def pick(self, connection, paths):
            return answer

    with pytest.raises(ValueError, match=says):
        two_links.run(schedulers={"mine": Wrong})
