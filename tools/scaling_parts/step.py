"""A training step of many ranks, bucket by bucket, for each strategy of the project."""

import math
from dataclasses import dataclass

from exchange import ALGORITHMS, Group, broadcast, root_seconds, sum_seconds
from inputs import Bucket, Mistake

TAIL_BYTES = 128  # loss and counts of a step, which the strategies that do not sum gradients sum nevertheless
REPORT_SECONDS, MOST_STEPS = 1, 1000  # of whose steps they sum them at once
SUMMING = ("allreduce", "local", "elastic")
SERVING = ("async-server", "downpour")
STRATEGIES = (*SUMMING, "reduce-broadcast", "send-recv", "scatter-gather", *SERVING)
FREE = ("local", "elastic", *SERVING)  # these do not train as one rank would
EXACT = tuple(strategy for strategy in STRATEGIES if strategy not in FREE)  # these exchange gradients
CHOICES = [f"{strategy}/{algorithm}" for strategy in SUMMING for algorithm in ALGORITHMS]
CHOICES += [strategy for strategy in STRATEGIES if strategy not in SUMMING]


@dataclass(frozen=True)
class Setting:
    """What a run would say in `distributed`, and whether buckets are exchanged during the backward pass."""

    bucket_bytes: float = 26_214_400
    every: int = 16  # for local, elastic, async-server (push_every) and downpour
    overlap: bool | None = None  # None: as the profile says


@dataclass(frozen=True)
class Prediction:
    choice: str
    ranks: int
    seconds: float  # of a step
    low: float  # of 90 % of all steps, as far as the ranks' compute times vary
    high: float
    samples_per_second: float
    efficiency: float  # against so many times one rank
    overlap: float  # share of the exchange that takes no time of its own


def predict(step, choice, ranks, links, setting, batch, batch_of_one):
    """None where this choice cannot work. `batch`: samples of a rank; `batch_of_one`: of the one rank that it is compared with."""
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
        """The same of steps behind which ranks wait for each other once: what varies evens out."""
        return slowest * (spread.mean() + (of_one_step - spread.mean()) / math.sqrt(together))

    total, exchange, alone = seconds(factor(spread.slowest_of(trainers)))
    rate = trainers * batch / total
    return Prediction(choice, ranks, total, seconds(factor(spread.slowest_quantile(trainers, 0.05)))[0],
                      seconds(factor(spread.slowest_quantile(trainers, 0.95)))[0], rate, rate / (ranks * one),
                      min(max(1 - (total - alone) / exchange, 0.0), 1.0) if exchange > 0 else 1.0)


def steps_to_report(profile):
    return max(min(int(REPORT_SECONDS / profile.compute), MOST_STEPS), 1)


def timeline(strategy, algorithm, profile, group, setting):
    """Seconds of the step, of its exchange, and of its computing."""
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
    if strategy == "scatter-gather":  # the samples of the next step travel meanwhile, on the same link
        samples = (group.ranks - group.on_host) * profile.batch * profile.sample_bytes / group.links.between.bandwidth
        total = max(total, sum(costs) + behind + samples)
    return total, sum(costs) + behind, alone


def buckets_of(profile):
    """Those of the gradients, and as the last one changes of buffers and the tail."""
    rest = profile.weight_bytes - sum(bucket.bytes for bucket in profile.gradients)
    return (*profile.gradients, Bucket(max(rest, TAIL_BYTES), profile.backward))


def exchange_end(profile, costs, overlaps):
    """Buckets are exchanged one after the other, each when it is final, or all behind the backward pass. The update of a bucket
    follows its exchange; where the device computes by itself, beside the exchange of the next."""
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
    """Clients push and wait for the answer; the server takes in one push after the other. No client waits for another, unless the
    server has no time left."""
    link = group.slowest
    clients = group.ranks - 1
    way = 2 * link.latency + profile.weight_bytes / link.bandwidth  # the answer travels while the next push arrives
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
    """Of those that train as one rank would, or of all."""
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
    """An option that none of the strategies uses, which `place` names, is a mistake."""
    strategies = {choice.split("/")[0] for choice in choices}
    for name in names:
        if getattr(options, name) is not None and not strategies & set(users):
            raise Mistake(f"--{name.replace('_', '-')} is for {', '.join(users)}; leave it out, or name one of these in {place}")


def goodput(ranks, hours_between_failures, checkpoint, restart, interval=None):
    """The share of the time that makes progress where a rank fails after so many hours on average and all go on from the last
    checkpoint, and the seconds between two checkpoints: the best ones (Daly 2006) unless they are given. Failures come as a Poisson
    process."""
    mean = hours_between_failures * 3600 / ranks
    if interval is None:
        interval = math.sqrt(2 * checkpoint * mean) - checkpoint if checkpoint < mean / 2 else mean
    exponent = (interval + checkpoint) / mean
    share = interval / (mean * math.exp(restart / mean) * math.expm1(exponent)) if max(exponent, restart / mean) < 700 else 0.0
    return share, interval
