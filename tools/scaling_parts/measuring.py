"""Runs a program over numbers of ranks and strategies, and compares speed and accuracy."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass

import pacing
import plot
import report
from inputs import Mistake, numbers
from recording import TOOLS, exchange_share, own_settings
from step import EXACT, FREE, SERVING, SUMMING, check_choices, check_use

ALONE = "one rank"
UNASKED = ("of ideal", "to target")  # columns that only some options fill


def add_options(parser):
    group = parser.add_argument_group("measurements")
    group.add_argument("--measure", metavar="FOLDER", help="runs PROGRAM with each strategy and number of ranks, and writes results there")
    group.add_argument("--samples", type=int, metavar="N", help="with --measure and --batch: training samples of each rank (data.limit)")
    group.add_argument("--rounds", type=int, default=1, metavar="N", help="with --measure: runs of each case, in turns; medians count (1)")
    group.add_argument("--threads", type=int, default=1, metavar="N", help="with --measure: threads of each rank (1)")
    group.add_argument("--trace-steps", type=int, metavar="N", help="with --measure: steps of the run that shows the exchange (20; 0: none)")
    group.add_argument("--host", metavar="NAME:SLOTS,...", help="with --measure: hosts, as tools/run takes them")
    group.add_argument("--target", type=float, metavar="ACCURACY", help="with --measure: also says when the validation accuracy has come to this, from 0 to 1")
    pacing.add_options(group)


@dataclass
class Case:
    choice: str
    ranks: int
    rounds: list

    @property
    def samples_per_second(self):
        return statistics.median(found["samples_per_second"] for found in self.rounds)

    def median(self, key):
        values = [found[key] for found in self.rounds if found[key] is not None]
        return statistics.median(values) if values else None


@dataclass(frozen=True)
class Row:
    strategy: str
    ranks: int
    seconds: float  # of the whole program
    samples_per_second: float
    speed_up: float
    efficiency: float
    exchange: float | None  # share of a step
    overlap: float | None  # share of the exchange that lies within the backward pass
    of_ideal: float | None  # this speed / what the ranks that train would reach without waiting, where --pace says how fast each is
    accuracy: float | None  # of the validation after the last epoch
    validation_loss: float | None
    seconds_to_target: float | None  # of training, until the first epoch whose validation is that good


def check(options):
    if not options.program:
        raise Mistake("--measure needs a program to run; for example: tools/scaling --measure runs/scaling build/models/mlp models/iris.yaml")
    for name, least in (("samples", 1), ("rounds", 1), ("threads", 1), ("trace_steps", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise Mistake(f"--{name.replace('_', '-')} must be {least} or more")
    for name, unit in (("batch", "samples"), ("global_batch", "samples"), ("bucket_bytes", "bytes")):
        value = getattr(options, name)
        if value is not None and (value < 1 or value != int(value)):
            raise Mistake(f"--{name.replace('_', '-')} is {value:g}; write a whole number of {unit}")
    if options.samples and not options.batch:
        raise Mistake("--samples is for weak scaling; give --batch, too")
    if options.target is not None and not 0 < options.target <= 1:
        raise Mistake(f"--target is {options.target:g}; it must be above 0, and 1 at most")
    pacing.check(options)


def check_use_of(options, ranks, choices):
    check_use(options, choices, EXACT, "bucket_bytes")
    check_use(options, choices, FREE, "every")
    for name in ("strategies", "bucket_bytes", "every", "trace_steps", "slow"):
        if getattr(options, name) is not None and max(ranks) == 1:
            raise Mistake(f"--{name.replace('_', '-')} has no effect with one rank; leave it out, or name more in --ranks")


def run(options):
    check(options)
    ranks = numbers(options.ranks or "1,2,4", "--ranks")
    choices = strategies(options.strategies or "allreduce")
    check_use_of(options, ranks, choices)
    cases = [Case(ALONE, 1, [])] if 1 in ranks else []
    cases += [Case(choice, count, []) for choice in choices for count in ranks if count > 1]
    if not cases:
        raise Mistake(f"--ranks: {options.ranks} leaves nothing to run")
    for case in cases:
        command(options, case, [])  # before the first one runs
    if max(ranks) > 1:
        print(f"--strategies decides ({','.join(choices)}); distributed.strategy and distributed.algorithm of the file do not count", flush=True)
    folder = pathlib.Path(options.measure)
    report.make_folder(folder)
    with tempfile.TemporaryDirectory() as scratch:
        for round_number in range(options.rounds):
            for case in cases:
                case.rounds.append(measure(options, case, pathlib.Path(scratch)))
                print(f"round {round_number + 1} of {options.rounds}: {case.choice}, {case.ranks} ranks: "
                      f"{report.rate(case.rounds[-1]['samples_per_second'])} samples/s", flush=True)
                write_all(options, folder, [done for done in cases if done.rounds])  # so that a long series leaves what it has found
    print("\n" + (folder / "scaling.md").read_text(encoding="utf-8"), end="")


def strategies(text):
    """A strategy without an algorithm is that with `auto`."""
    words = text.split(",")
    check_choices(words)
    return list(dict.fromkeys(words))


def command(options, case, log):
    settings = settings_of(options, case)
    hosts = ["--host", options.host] if options.host else []
    return [str(TOOLS / "run"), "-n", str(case.ranks), *hosts, *options.program, *own_settings("--measure", options.program, settings),
            *pacing.words(options, case.ranks), *log]


def settings_of(options, case):
    strategy, _, algorithm = case.choice.partition("/")
    settings = ["output.dir=", *pacing.settings(options)]
    if case.choice != ALONE:
        settings.append(f"distributed.strategy={strategy}")
    if case.choice != ALONE and strategy in SUMMING:
        settings.append(f"distributed.algorithm={algorithm or 'auto'}")
    if case.choice != ALONE and strategy in FREE and options.every:
        settings.append(f"distributed.{'push_every' if strategy in SERVING else 'every'}={options.every}")
    if options.bucket_bytes and case.choice != ALONE and strategy in EXACT:
        settings.append(f"distributed.bucket_bytes={int(options.bucket_bytes)}")
    trainers = trainers_of(case)
    if options.batch or options.global_batch:
        settings.append(f"training.batch_size={int(options.global_batch or options.batch * trainers)}")
    if options.samples:
        settings.append(f"data.limit={options.samples * trainers}")
    return settings


def trainers_of(case):
    return case.ranks - 1 if case.choice in (*SERVING, "send-recv") else case.ranks


def measure(options, case, scratch):
    log, trace = scratch / "log.jsonl", scratch / "trace.json"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    said = start(options, case, command(options, case, ["--log", str(log)]))
    seconds = time.monotonic() - begin
    samples = re.search(r"([\d,]+) samples of", said)
    epochs = [event for event in map(json.loads, log.read_text(encoding="utf-8").splitlines()) if event["event"] == "epoch"]
    if not epochs or not samples:
        raise Mistake("the run made no whole epoch, so that nothing tells its speed; leave out --steps")
    # Each sample is used once an epoch. The first one may be slower than the others.
    duration = statistics.median(event["seconds"] for event in epochs[min(1, len(epochs) - 1):])
    exchange, overlap = None, None
    trace_steps = 20 if options.trace_steps is None else options.trace_steps
    if trace_steps and case.ranks > 1:
        start(options, case, command(options, case, ["--profile", str(trace), "--steps", str(trace_steps)]))
        exchange, overlap = exchange_share(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])
    course_of_run = list(accuracies(epochs))
    reached = [passed for passed, accuracy in course_of_run if options.target and accuracy is not None and accuracy >= options.target]
    return {"seconds": seconds, "samples_per_second": int(samples[1].replace(",", "")) / duration, "exchange": exchange, "overlap": overlap,
            "accuracy": epochs[-1].get("val_accuracy"), "validation_loss": epochs[-1]["val_loss"], "epochs": course_of_run,
            "seconds_to_target": min(reached, default=None)}


def accuracies(epochs):
    """Pairs of the seconds of training behind each epoch and the accuracy of its validation."""
    passed = 0.0
    for event in epochs:
        passed += event["seconds"]
        yield passed, event.get("val_accuracy")


def start(options, case, words):
    """What the run says."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), **pacing.environment(options))
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Mistake(f"the run of {case.choice} with {case.ranks} ranks ended with exit status {done.returncode}; "
                      f"--measure has set {', '.join(settings_of(options, case))} there")
    return done.stdout


def rows_of(options, cases):
    """Each is compared with one rank, or with the smallest number of ranks of its strategy."""
    alone = next((case for case in cases if case.choice == ALONE), None)
    for case in cases:
        base = alone or min((other for other in cases if other.choice == case.choice), key=lambda other: other.ranks)
        speed_up = base.ranks * case.samples_per_second / base.samples_per_second
        of_ideal = pacing.of_ideal(options, case.samples_per_second, alone and alone.samples_per_second, trainers_of(case))
        yield Row(case.choice, case.ranks, case.median("seconds"), case.samples_per_second, speed_up, speed_up / case.ranks,
                  case.median("exchange"), case.median("overlap"), of_ideal, case.median("accuracy"), case.median("validation_loss"),
                  case.median("seconds_to_target"))


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
    courses = {f"{case.choice}, {case.ranks}": course(case) for case in cases}
    if any(len(points) > 1 for points in courses.values()):
        picture = plot.draw("Validation accuracy after each epoch", "%", courses, from_zero=False, across="seconds of training")
        report.write(folder / "course.svg", picture)


def course(case):
    """Of the first round: the seconds of training behind each epoch, and the accuracy in percent."""
    return [(seconds, 100 * accuracy) for seconds, accuracy in case.rounds[0]["epochs"] if accuracy is not None]


def curves(rows, value):
    """Those of one rank begin each curve."""
    found = {}
    for choice in dict.fromkeys(row.strategy for row in rows if row.strategy != ALONE):
        points = [(row.ranks, value(row)) for row in rows if row.strategy in (choice, ALONE)]
        found[choice] = [point for point in points if point[1] is not None]
    return {choice: points for choice, points in found.items() if points}


def table(rows):
    def share(value):
        return "-" if value is None else report.percent(value)

    def accuracy(value):
        return "-" if value is None else f"{value * 100:.2f} %"

    def time_of(value):
        return "-" if value is None else report.seconds(value)

    cells = [(row.strategy, row.ranks, report.rate(row.samples_per_second), f"{row.speed_up:.2f}", share(row.efficiency), share(row.exchange),
              share(row.overlap), share(row.of_ideal), accuracy(row.accuracy), time_of(row.seconds_to_target), report.seconds(row.seconds))
             for row in rows]
    head = ("strategy", "ranks", "samples/s", "speed-up", "efficiency", "exchange", "overlap", "of ideal", "accuracy", "to target", "whole run")
    kept = [column for column, name in enumerate(head) if name not in UNASKED or any(row[column] != "-" for row in cells)]
    return report.table([head[column] for column in kept], [[row[column] for column in kept] for row in cells])
