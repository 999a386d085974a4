"""Runs a program with several numbers of ranks and strategies, and compares speed and accuracy."""

import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass

import cases as cases_of
import pacing
import plot
import report
import timeline
from cases import ALONE, settings_of
from inputs import Mistake
from recording import TOOLS, exchange_share, own_settings

# columns that are shown only if a run fills them
UNASKED = ("batch", "idle", "waited for", "exchanged", "sent", "of ideal", "to target")


def add_options(parser):
    group = parser.add_argument_group("measurements")
    group.add_argument("--measure", metavar="FOLDER", help="runs PROGRAM with each strategy and number of ranks, and writes results there")
    group.add_argument("--samples", type=int, metavar="N", help="with --measure and --batch: training samples of each rank (data.limit)")
    group.add_argument("--rounds", type=int, default=1, metavar="N", help="with --measure: runs of each case, in turns; medians count (1)")
    group.add_argument("--threads", type=int, default=1, metavar="N", help="with --measure: threads of each rank (1)")
    group.add_argument("--trace-steps", type=int, metavar="N", help="with --measure: steps of the run that shows the exchange (20; 0: none)")
    group.add_argument("--host", metavar="NAME:SLOTS,...", help="with --measure: hosts, as tools/run takes them")
    group.add_argument("--target", type=float, metavar="ACCURACY", help="with --measure: also says when the validation accuracy has reached this, from 0 to 1")
    cases_of.add_options(group)
    pacing.add_options(group)


@dataclass(frozen=True)
class Row:
    strategy: str
    ranks: int
    batch: int | None  # the value of --batch or --global-batch
    seconds: float  # duration of the whole program
    samples_per_second: float
    speed_up: float
    efficiency: float
    exchange: float | None  # share of a step that is spent in exchanges
    overlap: float | None  # share of the exchange that overlaps with the backward pass
    idle: float | None  # share of their time in which training ranks wait for others
    straggler: int | None  # the rank for which others waited in most epochs
    exchanged: float | None  # bytes that one rank contributed to exchanges in an epoch
    sent: float | None  # bytes of the messages that it sent for that
    # The speed divided by the sum of the ranks' own speeds, if --pace says how fast each is.
    of_ideal: float | None
    accuracy: float | None  # of the validation after the last epoch
    validation_loss: float | None
    seconds_to_target: float | None  # training time until the first epoch whose validation reaches the target


def check(options):
    if not options.program:
        raise Mistake("--measure needs a program to run; for example: tools/scaling --measure runs/scaling build/models/mlp models/iris.yaml")
    for name, least in (("samples", 1), ("rounds", 1), ("threads", 1), ("trace_steps", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise Mistake(f"--{name.replace('_', '-')} must be {least} or more")
    for name, unit in (("batch", "samples"), ("global_batch", "samples"), ("bucket_bytes", "bytes")):
        value = getattr(options, name)
        for number in value if isinstance(value, list) else [value]:
            if number is not None and (number < 1 or number != int(number)):
                raise Mistake(f"--{name.replace('_', '-')} is {number:g}; write a whole number of {unit}")
    for name in ("batch", "global_batch"):
        setattr(options, name, [int(number) for number in getattr(options, name) or []])
    if options.samples and not options.batch:
        raise Mistake("--samples is for weak scaling; give --batch, too")
    if options.target is not None and not 0 < options.target <= 1:
        raise Mistake(f"--target is {options.target:g}; it must be above 0, and 1 at most")
    pacing.check(options)


def run(options):
    check(options)
    cases = cases_of.make(options)
    for case in cases:
        command(options, case, [])  # checks all command lines before the first run
    choices = list(dict.fromkeys(case.choice for case in cases if not case.is_alone))
    if choices:
        decides = "--variants" if options.variants else "--strategies"
        print(f"{decides} decides ({','.join(choices)}); distributed.strategy and distributed.algorithm of the file do not count", flush=True)
    folder = pathlib.Path(options.measure)
    report.make_folder(folder)
    with tempfile.TemporaryDirectory() as scratch:
        for round_number in range(options.rounds):
            for case in cases:
                case.rounds.append(measure(options, case, pathlib.Path(scratch)))
                print(f"round {round_number + 1} of {options.rounds}: {case}: {report.rate(case.rounds[-1]['samples_per_second'])} samples/s", flush=True)
                # after each round, so that an interrupted series keeps its results
                write_all(options, folder, [done for done in cases if done.rounds])
    print("\n" + (folder / "scaling.md").read_text(encoding="utf-8"), end="")


def command(options, case, log):
    settings = settings_of(options, case)
    hosts = ["--host", options.host] if options.host else []
    return [str(TOOLS / "run"), "-n", str(case.ranks), *hosts, *options.program, *own_settings("--measure", options.program, settings),
            *pacing.words(options, case.ranks, case.trainers), *log]


def measure(options, case, scratch):
    log, trace = scratch / "log.jsonl", scratch / "trace.json"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    said = start(options, case, command(options, case, ["--log", str(log)]))
    seconds = time.monotonic() - begin
    samples = re.search(r"([\d,]+) samples of", said)
    epochs = [event for event in map(json.loads, log.read_text(encoding="utf-8").splitlines()) if event["event"] == "epoch"]
    if not epochs or not samples:
        raise Mistake("the run made no whole epoch, so its speed is unknown; leave out --steps")
    # The first epoch may be slower than the others, so it is not counted.
    counted = epochs[min(1, len(epochs) - 1):]
    duration = statistics.median(event["seconds"] for event in counted)
    exchange, overlap, step = None, None, None
    trace_steps = 20 if options.trace_steps is None else options.trace_steps
    if trace_steps and case.ranks > 1:
        start(options, case, command(options, case, ["--profile", str(trace), "--steps", str(trace_steps)]))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        exchange, overlap = exchange_share(events)
        step = timeline.of_step(events)
    course_of_run = list(accuracies(epochs))
    reached = [passed for passed, accuracy in course_of_run if options.target and accuracy is not None and accuracy >= options.target]
    return {"seconds": seconds, "samples_per_second": int(samples[1].replace(",", "")) / duration, "exchange": exchange, "overlap": overlap,
            "accuracy": epochs[-1].get("val_accuracy"), "validation_loss": epochs[-1]["val_loss"], "epochs": course_of_run,
            "seconds_to_target": min(reached, default=None), "step": step, "idle": median_of(counted, "waited_share"),
            "exchanged": median_of(counted, "exchange_bytes"), "sent": median_of(counted, "exchange_bytes_sent"),
            "stragglers": [event.get("straggler") for event in counted]}


def median_of(events, key):
    """Returns None if no event has the key."""
    values = [event[key] for event in events if event.get(key) is not None]
    return statistics.median(values) if values else None


def accuracies(epochs):
    """Returns pairs: the seconds of training until the end of an epoch, and the accuracy of its validation.
    """
    passed = 0.0
    for event in epochs:
        passed += event["seconds"]
        yield passed, event.get("val_accuracy")


def start(options, case, words):
    """Starts a run and returns what it prints."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), **pacing.environment(options))
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Mistake(f"the run of {case.choice} with {case.ranks} ranks ended with exit status {done.returncode}; "
                      f"--measure has set {', '.join(settings_of(options, case))} there")
    return done.stdout


def rows_of(options, cases):
    """Makes a row for each case. A case is compared with one rank, or with its strategy's smallest number of
    ranks, at the same batch size."""
    for case in cases:
        alike = [other for other in cases if other.batch == case.batch]
        alone = next((other for other in alike if other.is_alone), None)
        base = alone or min((other for other in alike if other.choice == case.choice), key=lambda other: other.ranks)
        rate, rate_of_base = (median_of(found.rounds, "samples_per_second") for found in (case, base))
        speed_up = base.ranks * rate / rate_of_base
        of_ideal = pacing.of_ideal(options, rate, alone and rate_of_base, case.trainers)
        same = ("seconds", "exchange", "overlap", "idle", "exchanged", "sent", "accuracy", "validation_loss")
        yield Row(strategy=case.choice, ranks=case.ranks, batch=case.batch, samples_per_second=rate, speed_up=speed_up, efficiency=speed_up / case.ranks,
                  straggler=straggler_of(case), of_ideal=of_ideal, seconds_to_target=seconds_to_target_of(case), **{key: median_of(case.rounds, key) for key in same})


def seconds_to_target_of(case):
    """Returns the median of all rounds, in which rounds that missed the target count as slowest. Returns None
    if the median is one of these."""
    median = statistics.median(math.inf if one_round["seconds_to_target"] is None else one_round["seconds_to_target"] for one_round in case.rounds)
    return median if math.isfinite(median) else None


def straggler_of(case):
    """Returns the rank for which others waited in most epochs of all rounds, or None if that is no rank."""
    found = [number for one_round in case.rounds for number in one_round["stragglers"]]
    number = statistics.mode(found)
    return number if found.count(number) > len(found) / 2 else None


def write_all(options, folder, cases):
    rows = list(rows_of(options, cases))
    report.write_csv(folder / "scaling.csv", [asdict(row) for row in rows])
    report.write(folder / "scaling.md", table(rows))
    for name, title, unit, value in (("speed_up", "Speed-up", "times one rank", lambda row: row.speed_up),
                                     ("efficiency", "Efficiency", "%", lambda row: 100 * row.efficiency),
                                     ("accuracy", "Validation accuracy", "%", lambda row: row.accuracy and 100 * row.accuracy)):
        found = curves(rows, value)
        if found:
            report.write(folder / f"{name}.svg", plot.draw(title, unit, found, from_zero=name != "accuracy"))
    courses = {name_of(case): course(case) for case in cases}
    if any(len(points) > 1 for points in courses.values()):
        picture = plot.draw("Validation accuracy after each epoch", "%", courses, from_zero=False, across="seconds of training")
        report.write(folder / "course.svg", picture)
    steps = {name_of(case): case.rounds[0]["step"] for case in cases if case.rounds[0]["step"]}
    if steps:
        report.write(folder / "timelines.svg", timeline.draw(steps))


def name_of(case):
    return f"{case.choice}, {case.ranks}" + (f", batch {case.batch}" if case.batch else "")


def course(case):
    """Returns for the first round the seconds of training until the end of each epoch, and the accuracy in
    percent."""
    return [(seconds, 100 * accuracy) for seconds, accuracy in case.rounds[0]["epochs"] if accuracy is not None]


def curves(rows, value):
    """Returns the curves of a plot. The case of one rank begins each curve. There is one curve for each batch
    size."""
    several = len({row.batch for row in rows}) > 1
    found = {}
    for choice, batch in dict.fromkeys((row.strategy, row.batch) for row in rows if row.strategy != ALONE):
        points = [(row.ranks, value(row)) for row in rows if row.strategy in (choice, ALONE) and row.batch == batch]
        found[f"{choice}, batch {batch}" if several else choice] = [point for point in points if point[1] is not None]
    return {name: points for name, points in found.items() if points}


def table(rows):
    def share(value):
        return "-" if value is None else report.percent(value)

    def accuracy(value):
        return "-" if value is None else f"{value * 100:.2f} %"

    def time_of(value):
        return "-" if value is None else report.seconds(value)

    def number(value, form="{}"):
        return "-" if value is None else form.format(value)

    columns = {"strategy": lambda row: row.strategy, "ranks": lambda row: row.ranks, "batch": lambda row: number(row.batch),
               "samples/s": lambda row: report.rate(row.samples_per_second), "speed-up": lambda row: f"{row.speed_up:.2f}",
               "efficiency": lambda row: share(row.efficiency), "exchange": lambda row: share(row.exchange), "overlap": lambda row: share(row.overlap),
               "idle": lambda row: share(row.idle), "waited for": lambda row: number(row.straggler, "rank {}"),
               "exchanged": lambda row: number(row.exchanged, "{:,.0f}"), "sent": lambda row: number(row.sent, "{:,.0f}"),
               "of ideal": lambda row: share(row.of_ideal), "accuracy": lambda row: accuracy(row.accuracy),
               "to target": lambda row: time_of(row.seconds_to_target), "whole run": lambda row: report.seconds(row.seconds)}
    head = list(columns)
    cells = [[value(row) for value in columns.values()] for row in rows]
    kept = [column for column, name in enumerate(head) if name not in UNASKED or any(row[column] != "-" for row in cells)]
    return report.table([head[column] for column in kept], [[row[column] for column in kept] for row in cells])
