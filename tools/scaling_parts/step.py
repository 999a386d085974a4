"""Predicts a training step of many ranks, bucket by bucket, for each strategy of the project."""

import math
from dataclasses import dataclass

from exchange import ALGORITHMS, Group, broadcast, root_seconds, sum_seconds
from inputs import Bucket, Mistake

# The bytes of the loss and counts of a step. Strategies that do not sum gradients sum these, too.
TAIL_BYTES = 128
# Those strategies sum the loss and counts after this many seconds or steps.
REPORT_SECONDS, MOST_STEPS = 1, 1000
SUMMING = ("allreduce", "local", "elastic")
SERVING = ("async-server", "downpour")
STRATEGIES = (*SUMMING, "reduce-broadcast", "send-recv", "scatter-gather", *SERVING)
FREE = ("local", "elastic", *SERVING)  # strategies that do not train like one rank would
# strategies that exchange gradients
EXACT = tuple(strategy for strategy in STRATEGIES if strategy not in FREE)
CHOICES = [f"{strategy}/{algorithm}" for strategy in SUMMING for algorithm in ALGORITHMS]
CHOICES += [strategy for strategy in STRATEGIES if strategy not in SUMMING]


@dataclass(frozen=True)
class Setting:
    """The settings of a run in `distributed`, and whether buckets are exchanged during the backward pass."""

    bucket_bytes: float = 26_214_400
    every: int = 16  # steps between exchanges of local, elastic, async-server (push_every) and downpour
    overlap: bool | None = None  # None: as in the profile


@dataclass(frozen=True)
class Prediction:
    choice: str
    ranks: int
    seconds: float  # seconds of a step
    low: float  # bounds of 90 % of all steps, as the ranks' compute times vary
    high: float
    samples_per_second: float
    efficiency: float  # speed divided by that of one rank, times the number of ranks
    overlap: float  # share of the exchange that takes no additional time


def predict(step, choice, ranks, links, setting, batch, batch_of_one):
    """Returns None if this choice cannot work. `batch` is the number of samples of a rank, `batch_of_one`
    that of the single rank for comparison."""
    strategy, _, algorithm = choice.partition("/")
    group = Group(ranks, links)
    if ranks < 2 or (algorithm == "window" and group.hosts > 1):
        return None
    profile = step.at(batch).fused(setting.bucket_bytes)
    one = batch_of_one / (step.at(batch_of_one).compute * profile.spread.mean())
    if strategy in SERVING:
        return predict_server(choice, profile, group, setting, one)
    trainers = ranks - 1 if strategy == "send-recv" else ranks

    def seconds(factor):
        return timeline(strategy, algorithm, profile.with_compute_times(factor), group, setting)

    slowest = max((1.0, *profile.slow))
    spread = profile.spread
    together = min(steps_to_report(profile), setting.every) if strategy in ("local", "elastic") else 1

    def factor(of_one_step):
        """Returns the mean factor of steps between two exchanges. Variations even out, because ranks wait for
        each other only after all of them."""
        return slowest * (spread.mean() + (of_one_step - spread.mean()) / math.sqrt(together))

    total, exchange, alone = seconds(factor(spread.slowest_of(trainers)))
    rate = trainers * batch / total
    return Prediction(choice, ranks, total, seconds(factor(spread.slowest_quantile(trainers, 0.05)))[0],
                      seconds(factor(spread.slowest_quantile(trainers, 0.95)))[0], rate, rate / (ranks * one),
                      min(max(1 - (total - alone) / exchange, 0.0), 1.0) if exchange > 0 else 1.0)


def steps_to_report(profile):
    return max(min(int(REPORT_SECONDS / profile.compute), MOST_STEPS), 1)


def timeline(strategy, algorithm, profile, group, setting):
    """Returns the seconds of the step, of its exchange, and of its computation."""
    alone = profile.compute
    if strategy in ("local", "elastic"):
        steps = steps_to_report(profile)
        exchange = sum_seconds(algorithm, group, TAIL_BYTES * steps) / steps + sum_seconds(algorithm, group, profile.weight_bytes) / setting.every
        return alone + exchange, exchange, alone
    costs = [exchange_of_bucket(strategy, algorithm, group, bucket.bytes) for bucket in buckets_of(profile)]
    overlaps = profile.overlap if setting.overlap is None else setting.overlap
    end = exchange_end(profile, costs, overlaps)
    behind = broadcast(group, profile.weight_bytes) if strategy == "scatter-gather" else 0.0
    total = end + behind
    if strategy == "scatter-gather":  # the samples of the next step use the same link at the same time
        samples = (group.ranks - group.on_host) * profile.batch * profile.sample_bytes / group.links.between.bandwidth
        total = max(total, sum(costs) + behind + samples)
    return total, sum(costs) + behind, alone


def buckets_of(profile):
    """Returns the buckets of the gradients, and a last one of buffers and the tail."""
    rest = profile.weight_bytes - sum(bucket.bytes for bucket in profile.gradients)
    return (*profile.gradients, Bucket(max(rest, TAIL_BYTES), profile.backward))


def exchange_end(profile, costs, overlaps):
    """Returns when the last update ends. Buckets are exchanged one after another, each as soon as it is final
    or all after the backward pass. The update of a bucket follows its exchange; if the device computes by
    itself, it runs during the next exchange."""
    begin = profile.forward
    computed = profile.forward + profile.backward
    size = sum(bucket.bytes for bucket in profile.gradients)
    now = updated = begin if overlaps else computed
    for i, (bucket, cost) in enumerate(zip(buckets_of(profile), costs)):
        update = profile.update * bucket.bytes / size if i < len(profile.gradients) else 0.0
        if overlaps:
            now = max(now, begin + bucket.ready) + cost
            updated = max(updated, now, computed) + update
        else:
            now += cost + update
    return max(now, updated, computed)


def exchange_of_bucket(strategy, algorithm, group, size):
    if strategy == "allreduce":
        return sum_seconds(algorithm, group, size)
    adders = group.ranks - 1 if strategy == "send-recv" else group.ranks
    return root_seconds(group, size, adders, strategy != "scatter-gather")


def predict_server(choice, profile, group, setting, one):
    """Predicts a parameter server. Clients push and wait for the answer, and the server handles one push
    after another. A client waits for others only if the server is busy all the time."""
    link = group.slowest
    clients = group.ranks - 1
    # the answer travels while the next push arrives
    way = 2 * link.latency + profile.weight_bytes / link.bandwidth
    service = profile.weight_bytes / link.bandwidth + 2 * profile.weight_bytes / group.links.inside.bandwidth + 2 * group.links.message
    factors = [1.0] * max(clients - len(profile.slow), 0) + list(profile.slow[:clients])
    compute = profile.compute * profile.spread.mean()
    cycles = [setting.every * compute * factor + way + service for factor in factors]
    pushes = min(sum(1 / cycle for cycle in cycles), 1 / service)
    rate = pushes * setting.every * profile.batch
    seconds = clients * profile.batch / rate
    return Prediction(choice, group.ranks, seconds, seconds, seconds, rate, rate / (group.ranks * one),
                      0.0)


def fastest(predictions, only_exact=False):
    """Returns the fastest strategy, of all or of those that train like one rank would."""
    known = [p for p in predictions if p is not None and not (only_exact and p.choice.split("/")[0] in FREE)]
    return max(known, key=lambda p: p.samples_per_second, default=None)


def check_choices(words, place="--strategies"):
    chosen = []
    for word in words:
        found = [choice for choice in CHOICES if choice == word or choice.split("/")[0] == word]
        if not found:
            raise Mistake(f"{place}: there is no strategy '{word}'; known are {', '.join(CHOICES)}")
        chosen += found
    return list(dict.fromkeys(chosen))


def check_use(options, choices, users, *names, place="--strategies"):
    """Checks that each option which `place` names is used by at least one of the strategies."""
    strategies = {choice.split("/")[0] for choice in choices}
    for name in names:
        if getattr(options, name) is not None and not strategies & set(users):
            raise Mistake(f"--{name.replace('_', '-')} is for {', '.join(users)}; leave it out, or name one of these in {place}")


def goodput(ranks, hours_between_failures, checkpoint, restart, interval=None):
    """Returns the share of time that makes progress, and the seconds between two checkpoints. Failures are a
    Poisson process with this mean time in hours for each rank, and after one all ranks resume from the
    last checkpoint. Without `interval` the seconds between checkpoints are the optimum (Daly 2006)."""
    mean = hours_between_failures * 3600 / ranks
    if interval is None:
        interval = math.sqrt(2 * checkpoint * mean) - checkpoint if checkpoint < mean / 2 else mean
    exponent = (interval + checkpoint) / mean
    share = interval / (mean * math.exp(restart / mean) * math.expm1(exponent)) if max(exponent, restart / mean) < 700 else 0.0
    return share, interval
