"""Trains a policy that sets windows, and holds it against the published rules over networks it has not seen.

    pip install fairpath[gymnasium] stable-baselines3
    python learn_to_split.py --minutes 10 --out learned

Writes `learned.zip` (the policy), `learned.json` (the mean reward of each network and policy) and `learned.svg` (one
run of the policy). Prints a table, and on how many of the networks the policy is better than each rule.
"""

import argparse
import json
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

import fairpath.envs

NAME = "fairpath/MultipathCC-v0"
RULES = ["reno", "cubic", "lia", "olia", "balia", "coupled_cubic", "wvegas"]
# Networks are drawn from seeds: those of training are below, those of the comparison from here on.
HELD_OUT = 1_000_000


class Scaled(gym.ObservationWrapper):
    """Facts of very different sizes, as their logarithms."""

    def __init__(self, env):
        super().__init__(env)
        shape = env.observation_space.shape
        self.observation_space = gym.spaces.Box(0.0, 20.0, shape, np.float32)

    def observation(self, observation):
        return np.log1p(observation)


def make():
    return Scaled(gym.make(NAME, seconds=20))


class Training(gym.Wrapper):
    """Draws each network of training from the seeds below the held-out ones."""

    def __init__(self, env, first):
        super().__init__(env)
        self._seed = first

    def reset(self, *, seed=None, options=None):
        self._seed = (self._seed + 1) % HELD_OUT
        return self.env.reset(seed=self._seed, options=options)


def episode(env, seed, act=None, rule=None):
    """The mean reward of a step."""
    seen, _ = env.reset(seed=seed, options={"policy": rule} if rule else None)
    rewards, over = [], False
    while not over:
        action = act(seen) if act else np.zeros(env.action_space.shape)
        seen, reward, terminated, truncated, _ = env.step(action)
        rewards.append(reward)
        over = terminated or truncated
    return float(np.mean(rewards))


def train(minutes):
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Until(BaseCallback):
        end = time.monotonic() + 60 * minutes

        def _on_step(self):
            return time.monotonic() < self.end

    envs = DummyVecEnv([lambda first=first: Training(make(), 1000 * first) for first in range(8)])
    model = PPO("MlpPolicy", envs, seed=1, n_steps=256, batch_size=512, gamma=0.98, device="cpu")
    model.learn(10**9, callback=Until())
    return model


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--networks", type=int, default=30)
    arguments.add_argument("--out", type=Path, default=Path("learned"))
    given = arguments.parse_args()
    model = train(given.minutes)
    model.save(given.out.with_suffix(".zip"))

    def act(seen):
        return model.predict(seen, deterministic=True)[0]

    env, seeds = make(), range(HELD_OUT, HELD_OUT + given.networks)
    rewards = {"learned": [episode(env, seed, act) for seed in seeds]}
    rewards["windows as they are"] = [episode(env, seed) for seed in seeds]
    for rule in RULES:
        rewards[rule] = [episode(env, seed, rule=rule) for seed in seeds]
    whole = {"steps": model.num_timesteps, "minutes": given.minutes, "rewards": rewards}
    given.out.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")
    print(f"{model.num_timesteps} steps; mean reward over {given.networks} held-out networks")
    learned = np.array(rewards["learned"])
    for name, values in sorted(rewards.items(), key=lambda entry: -np.mean(entry[1])):
        better = int((learned > np.array(values)).sum())
        beside = "" if name == "learned" else f"   the learned one is better on {better} of {given.networks}"
        print(f"{name:20} {np.mean(values):7.3f} ± {1.96 * np.std(values) / len(values) ** 0.5:.3f}{beside}")
    shown = Scaled(gym.make(NAME, seconds=20, render_mode="svg"))
    episode(shown, HELD_OUT, act)
    given.out.with_suffix(".svg").write_text(shown.render())


if __name__ == "__main__":
    main()
