"""The environments, checked by gymnasium's own check and by what they must show."""

import warnings

import pytest

gym = pytest.importorskip("gymnasium")

import numpy as np
from gymnasium.utils.env_checker import check_env

import fairpath as fp
import fairpath.envs

NAMES = ["MultipathCC", "MultipathScheduler", "TrafficSplit"]


def make(name, **options):
    return gym.make(f"fairpath/{name}-v0", **options)


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_wrong(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name, seconds=3).unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_episode_and_its_end_is_a_truncation(name):
    def episode(seed):
        env = make(name, seconds=2, step_ms=100)
        env.action_space.seed(5)
        seen, rewards = [env.reset(seed=seed)[0]], []
        for _ in range(20):
            facts, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            seen.append(facts)
            rewards.append(reward)
            assert not terminated
        assert truncated
        return np.stack(seen), rewards

    one, again, other = episode(1), episode(1), episode(2)
    assert (one[0] == again[0]).all() and one[1] == again[1]
    assert (one[0] != other[0]).any()


ENDS = {"from": "a", "to": "b"}
TWO_LINKS = fp.Scenario(
    duration="1s",
    links=[{"name": name, "rate": "10Mbit/s", "delay": "20ms", "queue": "100ms", **ENDS} for name in ("x", "y")],
    flows=[{"name": "agent", "congestion": "olia", "via": [["x"], ["y"]], **ENDS}],
)


def steps(env, action, count, options=None):
    env.reset(seed=1, options=options)
    facts = [env.step(np.asarray(action))[0].reshape(-1, len(fp.envs.FACTS)) for _ in range(count)]
    return np.mean(facts[count // 2 :], axis=0)


def test_windows_and_rates_do_what_is_said():
    env = make("MultipathCC", scenario=TWO_LINKS, seconds=6)
    # The first step halves the first window of 15 kB: 5 and 10 packets of 12 kbit in each round trip, which takes 40 ms
    # and at least one packet of 1.2 ms.
    env.reset(seed=1)
    env.step(np.array([-1.0, 0.0]))
    facts = np.mean([env.step(np.zeros(2))[0].reshape(2, -1) for _ in range(40)], axis=0)
    assert 1.3 < facts[0, 0] < 1.5 and 2.6 < facts[1, 0] < 2.95 and list(facts[:, 4]) == [7.5, 15.0]
    rates = make("MultipathCC", scenario=TWO_LINKS, seconds=6, actions="rates")
    facts = steps(rates, [0.0, 0.0], 40)
    assert (abs(facts[:, 0] - 1.0) < 0.1).all()


def test_shares_divide_the_packets():
    env = make("MultipathScheduler", scenario=TWO_LINKS, seconds=10)
    facts = steps(env, [0.2, 0.8], 80)
    assert 3.2 < facts[1, 0] / facts[0, 0] < 5.0
    facts = steps(env, [1.0, 0.0], 80)
    assert facts[1, 0] < 0.01 and facts[0, 0] > 7.0
    split = make("TrafficSplit", users=2, seconds=6)
    facts = steps(split, [1.0, 0.0], 50).reshape(2, 2, -1)
    assert facts[0, 1, 0] < 0.05 and facts[1, 0, 0] < 0.05 and facts[0, 0, 0] > 1 and facts[1, 1, 0] > 1


def test_all_algorithms_are_policies():
    assert {"lia", "olia", "balia", "cubic"} <= set(fp.envs.MultipathCC.policies)
    env = make("MultipathCC", scenario=TWO_LINKS, seconds=3)
    for policy in fp.envs.MultipathCC.policies:
        assert steps(env, [0.0, 0.0], 30, {"policy": policy})[:, 0].sum() > 3, policy
    with pytest.raises(ValueError, match="lia"):
        env.reset(options={"policy": "none"})


def test_several_environments_step_as_each_does_alone():
    vector = fp.envs.Vector("fairpath/MultipathCC-v0", 3, seconds=2)
    alone = [make("MultipathCC", seconds=2) for _ in range(3)]
    seen, _ = vector.reset(seed=7)
    firsts = [env.reset(seed=7 + at)[0] for at, env in enumerate(alone)]
    assert (seen == np.stack(firsts)).all()
    vector.action_space.seed(1)
    for step in range(25):
        actions = vector.action_space.sample()
        seen, rewards, terminated, truncated, _ = vector.step(actions)
        if step < 20:
            each = [env.step(action) for env, action in zip(alone, actions, strict=True)]
            assert (seen == np.stack([one[0] for one in each])).all()
            assert list(rewards) == [one[1] for one in each]
            assert truncated.all() == (step == 19) and not terminated.any()
        if step == 20:
            assert (seen == 0).all() and not truncated.any(), "a new episode begins"


def test_a_run_is_drawn_and_wrong_actions_are_told():
    env = make("MultipathCC", seconds=2, render_mode="svg")
    env.reset(seed=1)
    for _ in range(20):
        env.step(np.zeros(2))
    assert env.render().startswith("<svg")
    with pytest.raises(ValueError, match="finite"):
        env.unwrapped.step(np.array([np.nan, 0]))
    with pytest.raises(ValueError, match="users = 0"):
        make("TrafficSplit", users=0)
    with pytest.raises(ValueError, match="actions"):
        make("MultipathCC", actions="wishes")
    with pytest.raises(fp.Error, match="step_ms = 0"):
        make("MultipathCC", step_ms=0).reset()
