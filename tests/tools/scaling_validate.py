#!/usr/bin/env python3
"""Compares predictions of tools/scaling with steps that build/dev/replay_step replays over fake hosts: it
sleeps instead of computing, and sends buckets over links of known speed. The links' parameters are fitted
on two hosts at one rate. The compared cases are different: some are listed below, others are random. The
second part counts the steps of ranks with varying compute times that are within the predicted bounds of 90
%. Needs root, and takes 30 minutes; the second part alone, with --bounds, takes 8.

usage: scaling_validate.py BUILD [--bounds]
"""

import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT, BUILD = Path(__file__).resolve().parents[2], Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tools" / "scaling_parts"))

import report  # noqa: E402
from inputs import Bucket, Link, Links, Profile, Spread, Step  # noqa: E402
from step import Setting, predict  # noqa: E402

FITTED_MBIT = 100
CHOICES = ("allreduce/hierarchical", "allreduce/ring", "allreduce/tree", "reduce-broadcast")
MB = 1_000_000


class Scenario:
    """Ranks on hosts with links of this rate. They compute for 0.3 s and have a number of buckets of equal
    size."""

    def __init__(self, hosts, on_host, mbit, count, size, overlap=False, slow=None, spread=0, steps=5):
        self.hosts, self.on_host, self.mbit, self.overlap, self.slow, self.spread, self.steps = hosts, on_host, mbit, overlap, slow, spread, steps
        self.count, self.size = count, size
        buckets = tuple(Bucket(size, 0.2 * (i + 1) / count) for i in range(count))
        self.profile = Profile(batch=1, forward=0.1, backward=0.2, update=0.02, gradients=buckets, weight_bytes=size * count,
                               overlap=overlap, slow=(slow,) if slow else (), spread=Spread(sigma=spread))

    def __str__(self):
        words = [f"{self.hosts} × {self.on_host}", f"{self.mbit} Mbit/s", f"{self.count} × {self.size / MB:g} MB"]
        words += ["overlap"] if self.overlap else []
        words += [f"spread {self.spread:g}"] if self.spread else []
        return ", ".join(words + ([f"one rank {self.slow:g} times as slow"] if self.slow else []))


def measure(scenario, choice):
    """Returns the seconds of each step."""
    strategy, _, algorithm = choice.partition("/")
    profile = scenario.profile
    words = ["--forward", profile.forward, "--backward", profile.backward, "--update", profile.update, "--steps", scenario.steps,
             "--spread", profile.spread.sigma, "--strategy", strategy, *(["--algorithm", algorithm] if algorithm else []), *(["--overlap"] if scenario.overlap else [])]
    for bucket in profile.gradients:
        words += ["--bucket", f"{bucket.bytes:.0f}@{bucket.ready:.6f}"]
    if scenario.slow:
        words += ["--slow", f"1:{scenario.slow}"]
    hosts = ["--hosts", scenario.hosts, "--rate", f"{scenario.mbit}mbit", "--burst", "32kb"]
    command = [ROOT / "tests/support/fake_hosts.sh", *hosts, "--within", 300, "-n", scenario.hosts * scenario.on_host, "--", BUILD / "dev/replay_step", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{scenario}, {choice}: {done.stdout}{done.stderr}")
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert found["hosts"] == scenario.hosts, found
    return found["seconds"]


def median_seconds(scenario, choice):
    return statistics.median(measure(scenario, choice))


def prediction(scenario, choice, links):
    return predict(Step([scenario.profile]), choice, scenario.hosts * scenario.on_host, links, Setting(bucket_bytes=1), 1, 1)


def predicted_seconds(scenario, choice, links):
    return prediction(scenario, choice, links).seconds


def fit_inside():
    """Returns latency and bandwidth between two ranks on one host."""
    small, large = (Scenario(1, 2, FITTED_MBIT, count, size) for count, size in ((20, 4000), (1, 8 * MB)))
    calls = 21 * 2  # latencies of the check that begins each call
    latency = max((median_seconds(small, CHOICES[0]) - small.profile.compute) / calls, 0)
    return Link(latency, 8 * MB / max(median_seconds(large, CHOICES[0]) - large.profile.compute - 4 * latency, 0.001))


def fit_between(inside):
    """Returns the latency, from small buckets on two hosts, and the share of the bandwidth that each exchange
    reaches, from large ones."""
    tiny = Scenario(2, 1, FITTED_MBIT, 20, 4000)
    # latencies of the call's check and of the exchange
    latency = max((median_seconds(tiny, CHOICES[0]) - tiny.profile.compute) / (21 * 4), 0)
    links, reached = Links(1, inside, Link(latency, FITTED_MBIT * MB / 8)), {}
    for choice in CHOICES:
        fitted = [Scenario(2, 1, FITTED_MBIT, count, 8 * MB / count) for count in (4, 2, 1)]
        shares = [(predicted_seconds(each, choice, links) - each.profile.compute) / (median_seconds(each, choice) - each.profile.compute) for each in fitted]
        # the median, so that a disturbed run does not count
        reached[choice.partition("/")[2] or "root"] = statistics.median(shares)
    return latency, reached


def drawn(source):
    """Draws a random case that two cores can carry, all links together."""
    hosts = source.choice((3, 4, 5, 6, 8, 12, 16))
    on_host = source.choice((1, 1, 2)) if hosts <= 4 else 1
    mbit = source.choice([rate for rate in (20, 40, 80, 160, 240) if rate * hosts <= 800])
    total = source.uniform(1, 3) * mbit * MB / 8 / hosts  # the slowest exchange takes some seconds
    count = source.choice([count for count in (1, 2, 3, 5, 8) if total / count > MB / 4 or count == 1])
    size = round(total / count, -3)
    return Scenario(hosts, on_host, mbit, count, size, overlap=source.random() < 0.5, slow=source.choice((None, None, None, 2, 3)))


SOURCE = random.Random(1)
SCENARIOS = (
    Scenario(2, 1, 50, 3, 3 * MB),
    Scenario(3, 1, 200, 4, 2.5 * MB, overlap=True),
    Scenario(4, 1, 200, 2, 5 * MB),
    Scenario(3, 1, 100, 6, 1 * MB, overlap=True, slow=3),
    Scenario(2, 2, 200, 4, 2 * MB, overlap=True),
    Scenario(4, 1, 150, 3, 2 * MB),
    Scenario(2, 4, 200, 3, 2 * MB),
    Scenario(4, 2, 150, 2, 3 * MB, overlap=True),
    *(drawn(SOURCE) for _ in range(16)),
)


VARYING = (
    Scenario(2, 1, 100, 2, 1 * MB, spread=0.1, steps=100),
    Scenario(4, 1, 150, 3, 1 * MB, spread=0.2, steps=100),
    Scenario(4, 2, 100, 2, 0.5 * MB, overlap=True, spread=0.1, steps=100),
    Scenario(8, 1, 80, 1, 0.5 * MB, spread=0.3, steps=100),
    Scenario(16, 1, 40, 1, 0.25 * MB, overlap=True, spread=0.1, steps=100),
)


def links_of(scenario, inside, latency, reached):
    return Links(scenario.on_host, inside, Link(latency, scenario.mbit * MB / 8), reached=reached)


def compare_medians(fitted):
    rows, errors, right = [], [], 0
    for scenario in SCENARIOS:
        links = links_of(scenario, *fitted)
        predicted, measured = {}, {}
        for choice in CHOICES:
            predicted[choice], measured[choice] = predicted_seconds(scenario, choice, links), median_seconds(scenario, choice)
            errors.append(predicted[choice] / measured[choice] - 1)
            rows.append((scenario, choice, f"{predicted[choice]:.3f}", f"{measured[choice]:.3f}", f"{errors[-1] * 100:+.1f} %"))
            print(*rows[-1], sep=" | ", flush=True)
        right += min(predicted, key=predicted.get) == min(measured, key=measured.get)
    sizes = sorted(map(abs, errors))
    print("\n" + report.table(("hosts × ranks", "exchange", "predicted s", "measured s", "error"), rows))
    print(f"{len(rows)} cases: median error {sizes[len(sizes) // 2] * 100:.1f} %, 95th percentile {sizes[int(len(sizes) * 0.95)] * 100:.1f} %; "
          f"the fastest is right in {right} of {len(SCENARIOS)}")


def count_within_bounds(fitted):
    rows, within, of_all = [], 0, 0
    for scenario in VARYING:
        expected, steps = prediction(scenario, CHOICES[0], links_of(scenario, *fitted)), measure(scenario, CHOICES[0])
        inside = sum(expected.low <= step <= expected.high for step in steps)
        within, of_all = within + inside, of_all + len(steps)
        rows.append((scenario, f"{expected.seconds:.3f}", f"{statistics.fmean(steps):.3f}", f"{expected.low:.3f} to {expected.high:.3f}", f"{inside} of {len(steps)}"))
        print(*rows[-1], sep=" | ", flush=True)
    print("\n" + report.table(("hosts × ranks", "predicted mean s", "measured mean s", "bounds s", "steps within"), rows))
    print(f"{within / of_all * 100:.0f} % of the steps lie within the bounds of 90 %")


def main():
    inside = fit_inside()
    latency, reached = fit_between(inside)
    print(f"fitted on one host: {inside}; on two hosts at {FITTED_MBIT} Mbit/s: latency {report.seconds(latency)}, {reached}", flush=True)
    fitted = inside, latency, reached
    if sys.argv[2:] != ["--bounds"]:
        compare_medians(fitted)
    count_within_bounds(fitted)


if __name__ == "__main__":
    main()
