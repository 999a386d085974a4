"""Lists the runs of --measure, one for each variant, batch size and number of ranks, and their settings."""

from dataclasses import dataclass, field

import pacing
from inputs import Mistake, as_value, numbers, read
from step import EXACT, FREE, SERVING, SUMMING, check_choices, check_use

ALONE = "one rank"


@dataclass(frozen=True)
class Variant:
    """One thing to compare: a strategy and further keys."""

    name: str
    choice: str  # STRATEGY or STRATEGY/ALGORITHM; empty for one rank
    overrides: tuple = ()  # words KEY=VALUE

    @property
    def strategy(self):
        return self.choice.partition("/")[0]

    @property
    def servers(self):
        if self.strategy not in SERVING:
            return 1 if self.strategy == "send-recv" else 0
        told = dict(word.split("=", 1) for word in self.overrides).get("distributed.servers", "")
        return int(told) if told.isdigit() else 1


@dataclass
class Case:
    variant: Variant
    ranks: int
    batch: int | None = None  # the value of --batch or --global-batch
    rounds: list = field(default_factory=list)

    @property
    def choice(self):
        return self.variant.name

    @property
    def trainers(self):
        return self.ranks - self.variant.servers

    @property
    def is_alone(self):
        return not self.variant.choice

    def __str__(self):
        return f"{self.choice} with {self.ranks} {'rank' if self.ranks == 1 else 'ranks'}" + (f" and batch {self.batch}" if self.batch else "")


def add_options(group):
    group.add_argument("--trainers", metavar="N,N,...", help="with --measure, instead of --ranks: numbers of ranks that train; a server comes on top")
    group.add_argument("--variants", metavar="FILE.json", help="with --measure, instead of --strategies: what to compare, with keys of the YAML file")


def make(options):
    """Makes all cases. If one rank is asked for, the cases of each batch size begin with it."""
    if options.trainers and options.ranks:
        raise Mistake("--ranks and --trainers exclude each other; give one of them")
    if options.variants and options.strategies:
        raise Mistake("--strategies and --variants exclude each other; give one of them")
    option = "--trainers" if options.trainers else "--ranks"
    counts = numbers(options.trainers or options.ranks or "1,2,4", option)
    variants = read(options.variants, make_variants) if options.variants else variants_of(options.strategies or "allreduce")
    check_use_of(options, option, counts, variants)
    cases = []
    for batch in options.batch or options.global_batch or [None]:
        cases += [Case(Variant(ALONE, ""), 1, batch)] if 1 in counts else []
        cases += [Case(variant, count + (variant.servers if options.trainers else 0), batch) for variant in variants for count in counts if count > 1]
    for case in cases:
        if case.trainers < 1:
            raise Mistake(f"{case}: {case.variant.servers} of them serve, so that none trains; name more in {option}")
    if options.slow and max(case.trainers for case in cases) == 1:
        raise Mistake(f"--slow has no effect where one rank trains; leave it out, or name more in {option}")
    return cases


def variants_of(text):
    """Parses --strategies. A strategy without an algorithm uses `auto`."""
    words = text.split(",")
    check_choices(words)
    return [Variant(word, word) for word in dict.fromkeys(words)]


def make_variants(table):
    """Reads variants by name: `strategy`, and further keys in `set`. `source` is a free text."""
    if not isinstance(table.get("source", ""), str):
        raise Mistake(f"{table.place}: source is free text; give the variant another name")
    variants = []
    for name in table.values:
        if name in table.known:
            continue
        inner = table.table(name)
        choice = inner.get("strategy")
        check_choices([choice], f"{inner.place}: strategy")
        keys = inner.get("set", {})
        if not isinstance(keys, dict):
            raise Mistake(f"{inner.place}: set is {keys!r}; write an object with keys of the YAML file")
        inner.end()
        variants.append(Variant(name, choice, tuple(f"{key}={as_value(value)}" for key, value in keys.items())))
    if not variants or ALONE in table.values:
        raise Mistake(f"{table.place}: name one variant or more, and none '{ALONE}'")
    return variants


def check_use_of(options, option, counts, variants):
    choices = [variant.choice for variant in variants]
    place = "--variants" if options.variants else "--strategies"
    check_use(options, choices, EXACT, "bucket_bytes", place=place)
    check_use(options, choices, FREE, "every", place=place)
    for name in ("strategies", "variants", "bucket_bytes", "every", "trace_steps"):
        if getattr(options, name) is not None and max(counts) == 1:
            raise Mistake(f"--{name.replace('_', '-')} has no effect with one rank; leave it out, or name more in {option}")


def settings_of(options, case):
    variant = case.variant
    settings = ["output.dir=", *pacing.settings(options)]
    if not case.is_alone:
        settings += settings_of_variant(options, variant)
    if case.batch:
        settings.append(f"training.batch_size={case.batch * (case.trainers if options.batch else 1)}")
    if options.samples:
        settings.append(f"data.limit={options.samples * case.trainers}")
    keys = [setting.split("=")[0] for setting in settings]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise Mistake(f"{options.variants}: {variant.name}: {twice} is set by the strategy or by an option of --measure, too; leave one of them out")
    return settings


def settings_of_variant(options, variant):
    strategy, _, algorithm = variant.choice.partition("/")
    yield f"distributed.strategy={strategy}"
    if strategy in SUMMING:
        yield f"distributed.algorithm={algorithm or 'auto'}"
    if strategy in SERVING and not any(word.startswith("distributed.servers=") for word in variant.overrides):
        yield f"distributed.servers={variant.servers}"
    if strategy in FREE and options.every:
        yield f"distributed.{'push_every' if strategy in SERVING else 'every'}={options.every}"
    if options.bucket_bytes and strategy in EXACT:
        yield f"distributed.bucket_bytes={int(options.bucket_bytes)}"
    yield from variant.overrides
