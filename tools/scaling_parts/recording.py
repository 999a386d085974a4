"""The command --record: makes a profile of a step from the trace of a run."""

import json
import operator
import pathlib
import statistics
import subprocess
import tempfile
from collections import defaultdict

import report
from inputs import Mistake

TOOLS = pathlib.Path(__file__).resolve().parent.parent
EXCHANGES = ("before_update", "agree", "after_update")  # calls of a strategy
MOST_RATIOS = 101  # the largest number of ratios that a spread keeps
SETTINGS = ("distributed.strategy=allreduce", "distributed.compression=none", "distributed.overlap=off", "distributed.bucket_bytes=1",
            "output.dir=")  # makes a bucket of each tensor


def add_options(parser):
    group = parser.add_argument_group("recording")
    group.add_argument("--record", metavar="PROFILE.json", help="runs PROGRAM for some steps, and writes the profile of its step")
    group.add_argument("-n", type=int, default=2, metavar="RANKS", help="with --record: number of ranks, at least two (2)")
    group.add_argument("--steps", type=int, default=40, metavar="N", help="with --record: steps, of which the first quarter does not count (40)")


def own_settings(option, program, settings):
    """Returns words that set these keys. They follow the words of PROGRAM, which may not set one of these
    keys, as that would have no effect."""
    keys = {setting.split("=")[0] for setting in settings}
    for before, word in zip(["", *program], program):
        text = word if before == "--set" else word.removeprefix("--set=")
        if before != "--set" and text == word:
            continue
        key = text.split("=")[0]
        if key in keys:
            raise Mistake(f"--set {text} would have no effect, because {option} sets this key; leave it out")
        if any(own.startswith(f"{key}.") for own in keys):
            raise Mistake(f"--set {text}: {option} sets keys of this section; set the others one by one, as in --set {key}.KEY=VALUE")
    return [word for setting in settings for word in ("--set", setting)]


def without_section(program, section):
    """Sets a section of the YAML file to its defaults. A `--set` of PROGRAM still counts."""
    at = next((i for i, word in enumerate(program) if word == "--set" or word.startswith("--set=")), len(program))
    return [*program[:at], "--set", f"{section}={{}}", *program[at:]]


def run(options):
    if options.n < 2 or options.steps < 4:
        raise Mistake("--record needs -n of 2 or more, for a rank alone announces no buckets, and --steps of 4 or more")
    if not options.program:
        raise Mistake("--record needs a program to run; for example: tools/scaling --record mlp.json build/models/mlp models/iris.yaml")
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        words = own_settings("--record", options.program, SETTINGS)
        command = [TOOLS / "run", "-n", options.n, *without_section(options.program, "distributed"), *words, "--profile", trace, "--steps", options.steps]
        print(f"recording with {', '.join(SETTINGS)}; what the file says in distributed does not count", flush=True)
        done = subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Mistake(f"the run that was to be recorded ended with exit status {done.returncode}")
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    profile = profile_of(events)
    source = f"recorded with {options.n} ranks: {' '.join(options.program)}"
    report.write(options.record, as_json({"source": source, **profile}))
    parts = ", ".join(f"{name} {report.seconds(profile[name])}" for name in ("forward", "backward", "update"))
    print(f"{profile['batch']} samples on each of {options.n} ranks: {parts}; {len(profile['gradients'])} gradients of "
          f"{sum(size for size, _ in profile['gradients']):,} bytes")


def as_json(profile):
    """Formats the profile with one line for each key, and for groups of gradients."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in profile.items() if key != "gradients"]
    pairs = [json.dumps(pair) for pair in profile["gradients"]]
    rows = [", ".join(pairs[i:i + 8]) for i in range(0, len(pairs), 8)]
    return "{\n" + ",\n".join([*lines, '  "gradients": [\n    ' + ",\n    ".join(rows) + "\n  ]"]) + "\n}\n"


def exchange_share(events):
    """Returns the share of the steps in which ranks exchange data, and the share of the exchange that
    overlaps with the backward pass. The second is None if the strategy does not announce buckets."""
    steps = exchanged = hidden = 0.0
    announces = False
    for step, inside in steps_with_events(events):
        spans = [event for event in inside if event["name"] in EXCHANGES]
        computed = max((event["ts"] for event in inside if event["name"] == "gradients_ready"), default=None)
        steps += step["dur"]
        exchanged += sum(event["dur"] for event in spans)
        if computed is not None:
            announces = True
            hidden += sum(max(min(event["ts"] + event["dur"], computed) - event["ts"], 0) for event in spans)
    return exchanged / steps if steps else None, hidden / exchanged if announces and exchanged else None


class RecordedStep:
    """One step of one rank. Times are in microseconds, as in the trace."""

    def __init__(self, step, inside):
        begin, end = step["ts"], step["ts"] + step["dur"]
        exchanges = [event for event in inside if event["name"] == "before_update"]
        gradients = [event["ts"] for event in inside if event["cat"] == "instruction" and " of gradient of " in event["name"]]
        ready = [event for event in inside if event["name"] == "gradients_ready"]
        if not (exchanges and gradients and ready):
            raise Mistake("the trace shows no exchange of gradients; it needs a strategy that sums them, and two ranks")
        first = min(gradients)
        computed = min(event["ts"] for event in exchanges)
        self.samples = int(step["args"]["detail"])
        self.forward = first - begin
        self.backward = computed - first
        self.update = end - computed - sum(event["dur"] for event in exchanges)
        self.sizes = [int(event["args"]["detail"].split(", ")[1].split()[0]) for event in ready]
        self.ready = [event["ts"] - first for event in ready]

    @property
    def compute(self):
        return self.forward + self.backward + self.update


def steps_with_events(events):
    """Returns the steps of all ranks, without the first quarter of each rank's steps."""
    by_rank = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            by_rank[event["pid"]].append(event)
    for own in by_rank.values():
        steps = sorted((event for event in own if event["name"] == "step"), key=lambda event: event["ts"])
        for step in steps[len(steps) // 4:]:
            yield step, [event for event in own if step["ts"] <= event["ts"] < step["ts"] + step["dur"] and event is not step]


def profile_of(events):
    """Makes the profile. The last bucket has buffers and the tail; it counts as no gradients, and its buffers
    count as weights."""
    steps = [RecordedStep(step, inside) for step, inside in steps_with_events(events)]
    batch = max(step.samples for step in steps)
    # The batch at the end of an epoch may be smaller; such steps are left out.
    steps = [step for step in steps if step.samples == batch]

    def median(value):
        return round(statistics.median(map(value, steps)) * 1e-6, 9)

    sizes = steps[0].sizes
    ready = [median(lambda step: step.ready[i]) for i in range(len(sizes) - 1)]
    typical = statistics.median(step.compute for step in steps)
    return {"batch": batch, **{part: median(operator.attrgetter(part)) for part in ("forward", "backward", "update")}, "overlap": False,
            "weight_bytes": sum(sizes), "spread": thinned([step.compute / typical for step in steps]),
            "gradients": [list(pair) for pair in zip(sizes, ready)]}


def thinned(ratios):
    ratios = sorted(ratios)
    places = range(MOST_RATIOS) if len(ratios) > MOST_RATIOS else range(len(ratios))
    return [round(ratios[place * (len(ratios) - 1) // max(len(places) - 1, 1)], 4) for place in places]
