"""Gymnasium environments: windows, rates or shares of paths, set step by step. `pip install fairpath[gymnasium]`.

    import gymnasium as gym
    import fairpath.envs

    env = gym.make("fairpath/MultipathCC-v0")
    seen, info = env.reset(seed=1)
    seen, reward, terminated, truncated, info = env.step(env.action_space.sample())

An observation is a 32-bit float for each of the facts `FACTS` of each path of each steered flow, flow by flow and
path by path. An episode is over when its time is over, which is told as truncation; nothing terminates. Each
`reset` draws another network; the same seed draws the same one. `reset(options={"policy": NAME})` lets an
algorithm of ours run in the learner's place (one of `env.unwrapped.policies`): actions are ignored, and the rewards
are those that a learner must beat. With `render_mode="svg"` `render()` gives the picture of the run as text.
"""

import math
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space

from ._fairpath import Env as _Env
from ._fairpath import Scenario, congestion_controls, schedulers, step_all

__all__ = ["FACTS", "MultipathCC", "MultipathScheduler", "TrafficSplit", "Vector"]

#: What is seen of a path: the rate at which data was acknowledged in the step, the smoothed and the least
#: round-trip time (0 before the first), the share of what was lost in the step, the window, and what is in flight.
FACTS = ("goodput_mbps", "srtt_ms", "rtt_min_ms", "lost_share", "window_kb", "in_flight_kb")
_MOST = np.array([1e5, 1e5, 1e5, 1.0, 1e7, 1e7], np.float32)
_ENDS = {"from": "server", "to": "phone"}
_WINDOW_KB = (3.0, 10_000.0)
_RATE_MBPS = (0.1, 1_000.0)


class _Steps(gym.Env):
    """What all of them have in common.

    A step is short, and numbers are few: as lists they cost a third of what they cost as small arrays.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["svg"], "render_fps": 1}
    policies: ClassVar[list[str]] = []
    _steering = "windows"

    def __init__(self, scenario, flows, paths, step_ms, seconds, render_mode):
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode = {render_mode!r}: there is svg")
        self.render_mode = render_mode
        self._given, self._flows, self._paths = scenario, flows, paths
        self._step_ms, self._seconds = step_ms, seconds
        self._most = np.tile(_MOST, len(flows) * paths)
        self.observation_space = gym.spaces.Box(np.zeros_like(self._most), self._most, dtype=np.float32)
        self._run, self._values = None, None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        policy = (options or {}).get("policy")
        if policy is not None and policy not in self.policies:
            raise ValueError(f"policy = {policy!r}: there are {', '.join(self.policies)}")
        scenario = self._given if self._given is not None else self._network(self.np_random)
        scenario = scenario.replace("duration", f"{self._seconds}s")
        if policy is not None:
            scenario = scenario.replace({f"flow.{flow}.{self._policy_key}": policy for flow in self._flows})
        seed = int(self.np_random.integers(2**31))
        steering = None if policy is not None else self._steering
        picture = self.render_mode == "svg"
        self._run = _Env(scenario, self._flows, steering, self._step_ms, seed, picture=picture)
        self._values = self._first()
        self._limits = float(self.action_space.low.min()), float(self.action_space.high.max())
        return np.zeros_like(self._most), {"scenario": scenario.to_toml()}

    def step(self, action):
        if self._run is None:
            raise gym.error.ResetNeeded("reset comes before step")
        seen, over = self._run.step(self._set(action))
        return self._told(seen, over)

    def _set(self, action):
        """What the simulator is to do, from an action."""
        values = np.asarray(action, np.float64).ravel().tolist()
        if len(values) != len(self._values) or not all(map(math.isfinite, values)):
            raise ValueError(f"action = {action}: {len(self._values)} finite numbers are needed")
        low, high = self._limits
        self._values = self._next([min(max(value, low), high) for value in values])
        return self._values

    def _told(self, seen, over):
        facts = np.minimum(np.frombuffer(seen, "<f4"), self._most)
        paths = facts.tolist()
        paths = [paths[at : at + len(FACTS)] for at in range(0, len(paths), len(FACTS))]
        return facts, self._reward(paths), False, over, {}

    def render(self):
        """The picture of the run so far, as SVG; `None` without `render_mode="svg"`."""
        if self._run is None or self.render_mode is None:
            return None
        return self._run.plot().svg


class MultipathCC(_Steps):
    """The windows, or the rates, of the paths of one connection.

    Action: a number from -1 to 1 for each path. The window, or the rate, is multiplied by 2 to the power of it.
    Windows begin with ten packets of 1,500 B and stay from 3 kB to 10 MB, rates with 1 Mbit/s and from 0.1 to
    1,000 Mbit/s.

    Reward of a step: ln(1 + goodput in Mbit/s) less `delay_weight` for each 100 ms of queue and less `loss_weight`
    times the share lost; queue and losses are means over the paths, weighted by their goodput.

    Network: two links of 5 to 30 Mbit/s and 5 to 40 ms one way with queues of 50 to 200 ms; on each a flow of CUBIC
    that comes and goes. Or a `scenario` of one's own, with the `flow` to be steered.
    """

    policies: ClassVar[list[str]] = congestion_controls()
    _policy_key = "congestion"

    def __init__(
        self,
        *,
        actions="windows",
        scenario: Scenario | None = None,
        flow: str = "agent",
        paths: int = 2,
        step_ms: int = 100,
        seconds: int = 30,
        delay_weight: float = 0.5,
        loss_weight: float = 5.0,
        render_mode: str | None = None,
    ):
        if actions not in ("windows", "rates"):
            raise ValueError(f"actions = {actions!r}: there are windows and rates")
        super().__init__(scenario, [flow], paths, step_ms, seconds, render_mode)
        self._steering = actions
        self._weights = delay_weight, loss_weight
        self.action_space = gym.spaces.Box(-1.0, 1.0, (paths,), np.float32)

    def _network(self, random):
        links, flows = [], []
        for name in ("wifi", "lte"):
            rate, delay, queue = random.uniform(5, 30), random.uniform(5, 40), random.uniform(50, 200)
            links.append(_link(name, rate, delay, queue))
            on_off = {"on_off": {"on": "4s", "off": "6s"}}
            flows.append({"name": f"{name}_other", "congestion": "cubic", "via": [[name]], "traffic": on_off, **_ENDS})
        agent = {"name": self._flows[0], "congestion": "reno", "via": [["wifi"], ["lte"]], **_ENDS}
        return Scenario(duration="1s", links=links, flows=[agent, *flows])

    def _first(self):
        return [15_000.0 if self._steering == "windows" else 1e6] * self._paths

    def _next(self, action):
        unit, (low, high) = (1e3, _WINDOW_KB) if self._steering == "windows" else (1e6, _RATE_MBPS)
        low, high = unit * low, unit * high
        return [min(max(value * 2.0**one, low), high) for value, one in zip(self._values, action, strict=True)]

    def _reward(self, paths):
        whole = sum(path[0] for path in paths)
        queue = share_lost = 0.0
        for goodput, srtt, least, lost, *_ in paths:
            weight = goodput / whole if whole > 0 else 1 / len(paths)
            queue += weight * (srtt - least) / 100
            share_lost += weight * lost
        delay_weight, loss_weight = self._weights
        return math.log1p(whole) - delay_weight * queue - loss_weight * share_lost


class MultipathScheduler(_Steps):
    """The shares of the packets of one connection that its paths carry; windows are OLIA's.

    Action: a number from 0 to 1 for each path, of which only the ratios count. A path with 0 carries nothing while
    another has more. Packets keep their order: where the path that is next has no room, all wait for it.

    Reward of a step: ln(1 + goodput in Mbit/s) less `delay_weight` for each 100 ms of the slowest path that was
    used: what is sent on it is what the receiver waits for.

    Network: two links of 5 to 30 Mbit/s and 5 to 80 ms one way.
    """

    policies: ClassVar[list[str]] = schedulers()
    _steering = "shares"
    _policy_key = "scheduler"

    def __init__(
        self,
        *,
        scenario: Scenario | None = None,
        flow: str = "agent",
        paths: int = 2,
        step_ms: int = 100,
        seconds: int = 30,
        delay_weight: float = 0.5,
        render_mode: str | None = None,
    ):
        super().__init__(scenario, [flow], paths, step_ms, seconds, render_mode)
        self._delay_weight = delay_weight
        self.action_space = gym.spaces.Box(0.0, 1.0, (paths,), np.float32)

    def _network(self, random):
        links = [
            _link(name, random.uniform(5, 30), random.uniform(5, 80), random.uniform(50, 200))
            for name in ("wifi", "lte")
        ]
        agent = {"name": self._flows[0], "congestion": "olia", "via": [["wifi"], ["lte"]], **_ENDS}
        return Scenario(duration="1s", links=links, flows=[agent])

    def _first(self):
        return [1.0] * self._paths

    def _next(self, action):
        return action

    def _reward(self, paths):
        slowest = max((srtt for goodput, srtt, *_ in paths if goodput > 0), default=0.0)
        return math.log1p(sum(path[0] for path in paths)) - self._delay_weight * slowest / 100


class TrafficSplit(_Steps):
    """Several users over two access links: which share of each user's traffic goes over the first.

    Action: a number from 0 to 1 for each user, the share on `wifi`; the rest goes over `lte`.

    Reward of a step: the mean over the users of ln(goodput in Mbit/s) - ln(delay in ms), with the delay as the mean
    of the round-trip times, weighted by goodput; a user that gets nothing counts with 0.01 Mbit/s.

    Network: users with a steady demand of 2 to 8 Mbit/s each; `wifi` has 15 to 40 Mbit/s and changes every 2 s by up
    to a half, `lte` has 10 to 30 Mbit/s and 30 ms more round trip.
    """

    policies: ClassVar[list[str]] = schedulers()
    _steering = "shares"
    _policy_key = "scheduler"

    def __init__(
        self,
        *,
        users: int = 4,
        step_ms: int = 100,
        seconds: int = 30,
        render_mode: str | None = None,
    ):
        if not 1 <= users <= 100:
            raise ValueError(f"users = {users}: from 1 to 100")
        flows = [f"user{user}" for user in range(users)]
        super().__init__(None, flows, 2, step_ms, seconds, render_mode)
        self.action_space = gym.spaces.Box(0.0, 1.0, (users,), np.float32)

    def _network(self, random):
        wifi = random.uniform(15, 40)
        times = range(0, self._seconds, 2)
        steps = [[f"{at}s", f"{wifi * random.uniform(0.5, 1):.3f}Mbit/s"] for at in times]
        links = [
            {**_link("wifi", wifi, 5, 100), "rate": {"steps": steps}},
            _link("lte", random.uniform(10, 30), 20, 150),
        ]
        flows = [
            {
                "name": flow,
                "congestion": "cubic",
                "coupling": "never",
                "via": [["wifi"], ["lte"]],
                "traffic": {"constant": f"{random.uniform(2, 8):.3f}Mbit/s"},
                **_ENDS,
            }
            for flow in self._flows
        ]
        return Scenario(duration="1s", links=links, flows=flows)

    def _first(self):
        return [0.5] * len(self._flows)

    def _next(self, action):
        return action

    def _set(self, action):
        return [part for share in super()._set(action) for part in (share, 1 - share)]

    def _reward(self, paths):
        utility = 0.0
        for (first, first_ms, *_), (second, second_ms, *_) in zip(paths[::2], paths[1::2], strict=True):
            whole = first + second
            delay = (first * first_ms + second * second_ms) / whole if whole > 0 else max(first_ms, second_ms)
            utility += math.log(max(whole, 0.01)) - math.log(max(delay, 1.0))
        return utility / len(self._flows)


def _link(name, rate_mbps, delay_ms, queue_ms):
    return {
        "name": name,
        "rate": f"{rate_mbps:.3f}Mbit/s",
        "delay": f"{delay_ms:.3f}ms",
        "queue": f"{queue_ms:.0f}ms",
        **_ENDS,
    }


class Vector(gym.vector.VectorEnv):
    """Several environments of one kind, stepped over all cores by threads of Rust.

    `Vector("fairpath/MultipathCC-v0", 8, actions="rates")`. An episode that is over begins anew with the next step,
    whose action is ignored, as gymnasium's `AutoresetMode.NEXT_STEP` says.
    """

    def __init__(self, name: str, number: int, **options: Any):
        if number < 1:
            raise ValueError(f"number = {number}: at least one environment is needed")
        self.metadata = {**_Steps.metadata, "autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}
        self.num_envs = number
        self.envs = [gym.make(name, **options).unwrapped for _ in range(number)]
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, number)
        self.action_space = batch_space(self.single_action_space, number)
        self._over = np.zeros(number, bool)

    def reset(self, *, seed=None, options=None):
        seeds = [None] * self.num_envs if seed is None else [seed + at for at in range(self.num_envs)]
        if isinstance(seed, list | tuple | np.ndarray):
            seeds = [int(one) for one in seed]
        seen = [env.reset(seed=one, options=options)[0] for env, one in zip(self.envs, seeds, strict=True)]
        self._over[:] = False
        return np.stack(seen), {}

    def step(self, actions):
        if len(actions) != self.num_envs:
            raise ValueError(f"{len(actions)} actions for {self.num_envs} environments")
        seen, rewards = [None] * self.num_envs, np.zeros(self.num_envs)
        truncated = np.zeros(self.num_envs, bool)
        going = [at for at in range(self.num_envs) if not self._over[at]]
        values = [self.envs[at]._set(actions[at]) for at in going]
        stepped = step_all([self.envs[at]._run for at in going], values)
        for at, (facts, over) in zip(going, stepped, strict=True):
            seen[at], rewards[at], _, truncated[at], _ = self.envs[at]._told(facts, over)
        for at in np.flatnonzero(self._over):
            seen[at], _ = self.envs[at].reset()
        self._over = truncated.copy()
        return np.stack(seen), rewards, np.zeros(self.num_envs, bool), truncated, {}


for _kind in (MultipathCC, MultipathScheduler, TrafficSplit):
    gym.register(f"fairpath/{_kind.__name__}-v0", entry_point=_kind)
