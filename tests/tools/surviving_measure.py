#!/usr/bin/env python3
"""Measures the cost of letting ranks outlive others (docs/guide/surviving.md) with Open MPI 5, and prints two
tables. Takes some 15 minutes, during which nothing else should run on the machine. The times depend on the
machine, so none is right or wrong.

usage: [PLEXAURA_DATA=FOLDER] surviving_measure.py BUILD [--kills 20] [--rounds 5] [--steps 200]

FOLDER has the folder mnist; without it only Iris is measured, and there is no second table. Every rank has
one thread.
1. One of 4 ranks is killed at a random time, in a new run each time. The result is the time from the signal
until all others have finished the step that they repeat, minus a usual step: the median of the last steps
before. The ranks record when a step begins, in nanoseconds. Iris is slowed down, so that the files still
contain these steps when they are read.
2. The median step of the MNIST CNN with --survive and without, in turns.
"""

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/run_parts"), str(ROOT / "tools/scaling_parts")]

import report  # noqa: E402
from events import Kind, read_ranks  # noqa: E402

RANKS = 4
WARM_UP = 20  # number of steps
MNIST = Path(os.environ.get("PLEXAURA_DATA", "")) / "mnist"
MODELS = {"Iris MLP, paced": ("mlp", "iris.yaml", f"data.path={ROOT / 'models/iris.csv'}", "--backend", "paced:times=3000")}
if MNIST.is_dir():
    MODELS["MNIST CNN"] = ("convnet", "mnist_cnn.yaml", f"data.path={MNIST}")


def start(build, folder, model, ranks, on_loss, *words):
    """Starts a run, with --survive unless on_loss is `end`. The output of tools/run and its ranks goes to the
    folder."""
    program, config, data, *backend = MODELS[model]
    settings = (data, f"distributed.on_loss={on_loss}", "training.tuning=off", "training.epochs=1000000", "data.validation_limit=0", "output.dir=")
    launcher = [ROOT / "tests/support/open_mpi_5.sh", build / "open_mpi_5", ROOT / "tools/run", "-n", ranks, *([] if on_loss == "end" else ["--survive"])]
    command = [*launcher, build / "models" / program, ROOT / "models" / config, *backend,
               *(word for setting in settings for word in ("--set", setting)), *words]
    environment = dict(os.environ, TMPDIR=folder, OMP_NUM_THREADS="1", PLEXAURA_PLUGIN_PATH=str(build / "tools"))
    with Path(folder, "said").open("w") as said:
        return subprocess.Popen(list(map(str, command)), env=environment, stdout=said, stderr=said)


def await_ranks(folder, run, are_there):
    while run.poll() is None:
        time.sleep(0.05)
        ranks = [rank for kept in Path(folder).glob("plexaura-run-*") for rank in read_ranks(kept).ranks]
        if are_there(ranks):
            return ranks
    sys.exit(Path(folder, "said").read_text())


def step_times(rank, since=0):
    return [event.time for event in rank.events if event.kind == Kind.STEP and event.time > since]


def measure_kill(build, model, on_loss, source):
    """Returns nanoseconds: of a usual step; from the kill until all ranks continue; until they have finished
    a step."""
    with tempfile.TemporaryDirectory() as folder:
        run = start(build, folder, model, RANKS, on_loss)
        try:
            ranks = await_ranks(folder, run, lambda ranks: len(ranks) == RANKS and all(rank.step > WARM_UP for rank in ranks))
            usual = statistics.median(b - a for rank in ranks for a, b in itertools.pairwise(step_times(rank)))
            victim = source.choice(ranks)
            time.sleep(source.random())
            killed = time.time_ns()
            os.kill(victim.process, signal.SIGKILL)
            has_finished = lambda rank: rank.rank == victim.rank or (rank.survived and len(step_times(rank, rank.survived)) > 1)
            ranks = await_ranks(folder, run, lambda ranks: all(map(has_finished, ranks)))
        finally:
            run.terminate()
            run.wait()
    left = [rank for rank in ranks if rank.rank != victim.rank]
    assert all(rank.last(Kind.SURVIVED) for rank in left), "the ranks have told more than their files hold before these were looked at"
    return usual, max(rank.survived for rank in left) - killed, max(step_times(rank, rank.survived)[1] for rank in left) - killed


def milliseconds(*nanoseconds):
    return [f"{each / 1e6:.1f}" for each in nanoseconds]


def print_kills(build, kills):
    rows = []
    for model, on_loss in itertools.product(MODELS, ("exact", "drop")):
        source = random.Random(1)
        usual, going_on, finished = zip(*(measure_kill(build, model, on_loss, source) for _ in range(kills)))
        beyond = sorted(end - step for step, end in zip(usual, finished))
        times = (statistics.median(usual), statistics.median(going_on), statistics.median(beyond), beyond[round(0.95 * (kills - 1))], beyond[-1])
        rows.append((model, on_loss, kills, *milliseconds(*times)))
    head = ("model", "on_loss", "kills", "step, ms", "all go on after, ms", "beyond a step: median, ms", "95th percentile, ms", "longest, ms")
    print(report.table(head, rows), flush=True)


def measure_step(build, ranks, on_loss, steps):
    """Returns the median time of a step in nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        if start(build, folder, "MNIST CNN", ranks, on_loss, "--steps", WARM_UP + steps, "--log", log, "--set", "training.batch_size=64").wait():
            sys.exit(Path(folder, "said").read_text())
        records = [record for record in map(json.loads, log.read_text().splitlines()) if record["event"] == "step"]
    return statistics.median(64e9 / record["images_per_second"] for record in records[WARM_UP:])


def print_rounds(build, rounds, steps):
    rows, order = [], ("end", "exact")
    for ranks in (2, 4):
        pairs = [{on_loss: measure_step(build, ranks, on_loss, steps) for on_loss in (order, order[::-1])[turn % 2]} for turn in range(rounds)]
        without, surviving = (statistics.median(pair[on_loss] for pair in pairs) for on_loss in order)
        more = [f"{longer / shorter - 1:+.2%}" for shorter, longer in ((without, surviving), *((pair["end"], pair["exact"]) for pair in pairs))]
        rows.append((ranks, *milliseconds(without, surviving), more[0], " ".join(more[1:])))
    print(report.table(("ranks", "step without --survive, ms", "with it, ms", "longer by", "in each round"), rows), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--kills", type=int, default=20, help="for each model and on_loss; 0: no first table")
    parser.add_argument("--rounds", type=int, default=5, help="0: no second table")
    parser.add_argument("--steps", type=int, default=200, help="of each run of a round")
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "models/mlp").exists():
        parser.error(f"'{options.build}' is not a folder of a build")
    print(f"{os.cpu_count()} processors, a load of {os.getloadavg()[0]:.1f} at the start\n", flush=True)
    if options.kills > 0:
        print_kills(build, options.kills)
    if options.rounds > 0 and "MNIST CNN" in MODELS:
        print_rounds(build, options.rounds, options.steps)


if __name__ == "__main__":
    main()
