"""Reads the inputs of a prediction: the profile of a training step, and the links between ranks. Times are in
seconds and sizes in bytes."""

import json
import math
import pathlib
import statistics
from dataclasses import dataclass, field, replace


MOST_SIGMA = 10
SMALLEST, LARGEST = 1e-30, 1e30  # bounds of all input numbers, so that results are finite
EXCHANGES = ("hierarchical", "ring", "tree", "mpi", "root")  # the exchanges between hosts


class Mistake(Exception):
    """A mistake of the user, described in one sentence."""


@dataclass(frozen=True)
class Spread:
    """The variation of the compute time of a step between ranks and steps, relative to its median: measured ratios,
    or a log-normal distribution with this sigma."""

    ratios: tuple = ()
    sigma: float = 0.0

    def quantile(self, share):
        if self.ratios:
            return self.ratios[min(int(share * len(self.ratios)), len(self.ratios) - 1)]
        if self.sigma == 0:
            return 1.0
        return math.exp(self.sigma * statistics.NormalDist().inv_cdf(min(max(share, 1e-12), 1 - 1e-12)))

    def mean(self):
        return statistics.fmean(self.ratios) if self.ratios else math.exp(self.sigma**2 / 2)

    def slowest_of(self, ranks):
        """Returns the mean of the largest of `ranks` independent draws."""
        if self.ratios:
            count = len(self.ratios)
            return sum(ratio * (((i + 1) / count) ** ranks - (i / count) ** ranks) for i, ratio in enumerate(self.ratios))
        return statistics.fmean(self.slowest_quantile(ranks, (i + 0.5) / 200) for i in range(200))

    def slowest_quantile(self, ranks, share):
        return self.quantile(share ** (1 / ranks))


@dataclass(frozen=True)
class Bucket:
    bytes: float
    ready: float  # since the beginning of the backward pass


@dataclass(frozen=True)
class Profile:
    batch: float  # samples of one rank in a step
    forward: float
    backward: float
    update: float
    gradients: tuple  # the gradients' buckets, in the order in which they become final
    weight_bytes: float
    sample_bytes: float = 0.0
    overlap: bool = False  # whether buckets are exchanged during the backward pass
    spread: Spread = field(default_factory=Spread)
    slow: tuple = ()  # compute-time factors of ranks that are always slower

    @property
    def compute(self):
        return self.forward + self.backward + self.update

    def with_compute_times(self, factor):
        """Returns the profile of a rank whose compute times are longer by this factor."""
        gradients = tuple(Bucket(b.bytes, b.ready * factor) for b in self.gradients)
        return replace(self, forward=self.forward * factor, backward=self.backward * factor, update=self.update * factor, gradients=gradients)

    def fused(self, bucket_bytes):
        """Merges gradients into buckets like the programs do: a bucket is closed when it has at least this
        many bytes."""
        buckets, size = [], 0.0
        for gradient in self.gradients:
            size += gradient.bytes
            if size >= bucket_bytes:
                buckets.append(Bucket(size, gradient.ready))
                size = 0.0
        if size > 0:
            buckets.append(Bucket(size, self.gradients[-1].ready))
        return replace(self, gradients=tuple(buckets))


@dataclass(frozen=True)
class Link:
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Links:
    ranks_per_host: int
    inside: Link  # bandwidth of one rank to others of its host while all ranks exchange
    between: Link  # bandwidth of a host in each direction
    message: float = 0.0  # compute seconds of a rank to send or receive a message
    # The share of the bandwidth between hosts that an exchange reaches, by the name of the exchange.
    reached: dict = field(default_factory=dict)


def numbers(text, option):
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and len(word) <= 7 and 0 < int(word) <= 1_000_000 for word in words):
        raise Mistake(f"{option}: '{text}' is not a list of numbers of ranks; write 2,4,8")
    return sorted({int(word) for word in words})


def batch_sizes(text):
    """Parses '64,128', and refuses duplicates."""
    try:
        sizes = [float(word) for word in text.split(",")] if text else ""
    except ValueError:
        raise Mistake(f"'{text}' is not a list of batch sizes; write 64, or 64,128") from None
    return list(dict.fromkeys(sizes)) if sizes else ""


def as_value(value):
    """Converts a JSON value to the form of --set."""
    return value if isinstance(value, str) else json.dumps(value)


def check_above_zero(options, *names):
    for name in names:
        value = getattr(options, name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not all(0 < number < math.inf for number in values):
            raise Mistake(f"--{name.replace('_', '-')} must be above 0")
        if not all(SMALLEST <= number <= LARGEST for number in values):
            raise Mistake(f"--{name.replace('_', '-')} must be between {SMALLEST:g} and {LARGEST:g}")


def read(path, make):
    try:
        values = json.loads(pathlib.Path(path).read_text(encoding="utf-8"), object_pairs_hook=without_twins)
    except OSError as error:
        raise Mistake(f"cannot read '{path}': {error.strerror}; name a file") from error
    except ValueError as error:
        raise Mistake(f"'{path}' is no JSON: {error}") from error
    except RecursionError as error:
        raise Mistake(f"'{path}' has too many brackets inside each other") from error
    return make(Table(values, str(path)))


def without_twins(pairs):
    table = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key '{key}' is there twice; remove one")
        table[key] = value
    return table


class Table:
    """A JSON object. Each key may be read once, and a key that was not read is a mistake."""

    def __init__(self, values, place):
        if not isinstance(values, dict):
            raise Mistake(f"{place}: expected an object with keys")
        self.values, self.place, self.known = values, place, {"source"}

    def get(self, key, default=None):
        self.known.add(key)
        if key not in self.values and default is None:
            raise Mistake(f"{self.place}: the key '{key}' is missing")
        return self.values.get(key, default)

    def number(self, key, default=None, above=None, least=0.0):
        return checked_number(self.get(key, default), f"{self.place}: {key}", above, least)

    def flag(self, key, default):
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise Mistake(f"{self.place}: {key} is {value!r}; write true or false")
        return value

    def list(self, key, default=None):
        value = self.get(key, default)
        if not isinstance(value, list):
            raise Mistake(f"{self.place}: {key} is {value!r}; write a list")
        return value

    def table(self, key):
        return Table(self.get(key), f"{self.place}: {key}")

    def end(self):
        for key in self.values:
            if key not in self.known:
                raise Mistake(f"{self.place}: unknown key '{key}'; known are {', '.join(sorted(self.known))}")


def checked_number(value, place, above=None, least=0.0):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and -math.inf < value < math.inf
    if not is_number or (above is not None and not value > above) or (above is None and value < least):
        rule = f"above {above:g}" if above is not None else f"of {least:g} or more"
        raise Mistake(f"{place} is {value!r}; write a number {rule}")
    if value != 0 and not SMALLEST <= value <= LARGEST:
        raise Mistake(f"{place} is {value!r}; write a number between {SMALLEST:g} and {LARGEST:g}")
    return float(value)


def make_profile(table):
    pairs = table.list("gradients")
    place = f"{table.place}: gradients"
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise Mistake(f"{place}: write pairs [bytes, seconds since the beginning of the backward pass]")
    gradients = tuple(Bucket(checked_number(size, place, above=0), checked_number(ready, place)) for size, ready in pairs)
    backward = table.number("backward")
    if any(a.ready > b.ready for a, b in zip(gradients, gradients[1:])) or gradients[-1].ready > backward * 1.000001:
        raise Mistake(f"{place}: write them in the order of their seconds, and none after the end of the backward pass ({backward:g})")
    profile = Profile(batch=table.number("batch", above=0), forward=table.number("forward"), backward=backward, update=table.number("update"),
                      gradients=gradients, weight_bytes=table.number("weight_bytes", sum(b.bytes for b in gradients), above=0),
                      sample_bytes=table.number("sample_bytes", 0), overlap=table.flag("overlap", False), spread=make_spread(table),
                      slow=tuple(checked_number(f, f"{table.place}: slow", least=1) for f in table.list("slow", [])))
    table.end()
    if profile.compute <= 0:
        raise Mistake(f"{table.place}: a step computes for no time; forward, backward and update are all 0")
    return profile


def make_spread(table):
    value = table.get("spread", 0)
    if isinstance(value, list) and value:
        ratios = sorted(checked_number(ratio, f"{table.place}: spread", above=0) for ratio in value)
        return Spread(ratios=tuple(ratio / statistics.median(ratios) for ratio in ratios))
    sigma = checked_number(value, f"{table.place}: spread")
    if sigma > MOST_SIGMA:
        raise Mistake(f"{table.place}: spread is {value!r}; write the sigma of a log-normal distribution, at most {MOST_SIGMA}")
    return Spread(sigma=sigma)


def make_links(table):
    def link(key):
        inner = table.table(key)
        made = Link(inner.number("latency"), inner.number("bandwidth", above=0))
        inner.end()
        return made

    ranks = table.number("ranks_per_host", least=1)
    if ranks != int(ranks):
        raise Mistake(f"{table.place}: ranks_per_host is {ranks:g}; write a whole number")
    shares = Table(table.get("reached", {}), f"{table.place}: reached")
    reached = {name: shares.number(name, 1, above=0) for name in EXCHANGES}
    for name, share in reached.items():
        if share > 1:
            raise Mistake(f"{shares.place}: {name} is {share:g}; write a share of the bandwidth, at most 1")
    shares.end()
    made = Links(int(ranks), link("inside"), link("between"), table.number("message", 0), reached)
    table.end()
    return made


class Step:
    """The profile for any batch size: times are proportional to one profile, or lie on the line through two
    profiles of one model."""

    def __init__(self, profiles):
        self.profiles = sorted(profiles, key=lambda profile: profile.batch)
        first, last = self.profiles[0], self.profiles[-1]
        if len(self.profiles) > 2:
            raise Mistake("name one or two profiles")
        if len(self.profiles) == 2 and (first.batch == last.batch or [b.bytes for b in first.gradients] != [b.bytes for b in last.gradients]):
            raise Mistake("two profiles must be of one model at two batch sizes")

    def at(self, batch):
        first, last = self.profiles[0], self.profiles[-1]
        if first is last:
            share = batch / last.batch
            scaled = last.with_compute_times(share)
            return replace(scaled, batch=batch, update=last.update)
        share = (batch - first.batch) / (last.batch - first.batch)

        def line(a, b):
            return max(a + share * (b - a), 0.0)

        gradients = tuple(Bucket(a.bytes, line(a.ready, b.ready)) for a, b in zip(first.gradients, last.gradients))
        return replace(last, batch=batch, forward=line(first.forward, last.forward), backward=line(first.backward, last.backward),
                       update=line(first.update, last.update), gradients=gradients)
