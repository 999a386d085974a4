"""Runs the programs of a reproduced report, and keeps its tables and pictures."""

import csv
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import page
import plot
from tool import Mistake

SKIPPED = 77  # exit status of fake_hosts.sh where there are no network namespaces
RATE = "1gbit"  # of a fake host's link


class Lab:
    """Where an experiment runs: build, data, length, and the folder of its results."""

    def __init__(self, root, build, data, out, full, peer):
        self.root, self.build, self.data, self.out, self.full, self.peer = root, build, data, out, full, peer
        self.tables, self.pictures = [], []
        self.load = os.getloadavg()[0]  # of other programs
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Mistake(f"cannot make the folder '{out}': {error.strerror}; give --out another place") from error

    def choose(self, quick, full):
        return full if self.full else quick

    def program(self, name, configuration, *settings):
        """Returns the command of a program of the zoo. The path of its data follows from the configuration's name."""
        folder = next((folder for folder in ("mnist", "photos", "resnet") if configuration.startswith(folder)), None)
        words = [str(self.build / "models" / name), f"models/{configuration}.yaml"]
        if folder:
            words += ["--set", f"data.path={self.data / ('photos' if folder == 'resnet' else folder)}"]
        for setting in settings:
            words += ["--set", setting]
        return words

    def scale(self, name, *words, program, hosts=None):
        """Runs tools/scaling --measure and returns the rows of its table, or None where there are no fake hosts. `hosts`: their number,
        the rate of their links, and the number of all ranks."""
        command = ["tools/scaling", "--measure", str(self.out.resolve() / name), *words]
        status = self.run(command, program, hosts)
        if status is None:
            return None
        with open(self.out / name / "scaling.csv", encoding="utf-8") as file:
            return [{key: number(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def train(self, ranks, program, hosts=None, threads=1):
        """Trains once. Returns the events of its log and the seconds of the whole run, or None where there are no fake hosts."""
        with tempfile.TemporaryDirectory() as scratch:
            log = pathlib.Path(scratch) / "log.jsonl"
            begin = time.monotonic()
            if self.run(["tools/run", "-n", str(ranks)], [*program, "--set", "output.dir=", "--log", str(log)], hosts, threads) is None:
                return None
            seconds = time.monotonic() - begin
            return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()], seconds

    def run(self, command, program, hosts, threads=1):
        print("  " + " ".join([*command, *program]), file=sys.stderr, flush=True)
        if hosts:
            number_of_hosts, rate, ranks = hosts
            script = 'program=("${@:' + str(len(command) + 1) + '}"); exec "${@:1:' + str(len(command)) + '}" --host "$FAKE_HOSTS" "${program[@]}"'
            command = ["tests/support/fake_hosts.sh", "--hosts", str(number_of_hosts), "--rate", rate, "-n", str(ranks), "--no-mpirun", "--",
                       "bash", "-c", script, "-", *command]
        done = subprocess.run([*command, *program], cwd=self.root, env=dict(os.environ, OMP_NUM_THREADS=str(threads)), stdout=subprocess.PIPE, text=True)
        if done.returncode == SKIPPED and hosts:
            return None
        if done.returncode != 0:
            raise Mistake(f"'{' '.join([*command[:3], '...', *program[:2]])}' ended with exit status {done.returncode}; its message is above")
        return done.stdout

    def add_table(self, title, head, rows, note=""):
        """Adds a table to the results and prints it. A row that is None was not run."""
        self.tables.append({"title": title, "head": head, "rows": [[str(cell) for cell in row] for row in rows if row is not None],
                            "note": note + (" Rows with several hosts were not run: there are no network namespaces." if None in rows else "")})
        print("\n" + page.table_of(self.tables[-1]), flush=True)

    def add_picture(self, name, title, unit, curves, **options):
        """Draws curves {name: [(x, y), ...]}."""
        (self.out / f"{name}.svg").write_text(plot.draw(title, unit, curves, **options), encoding="utf-8")
        self.pictures.append({"file": f"{name}.svg", "title": title})

    def finish(self, name):
        results = {"workload": name, "length": "full" if self.full else "quick", "date": datetime.date.today().isoformat(), "commit": commit_of(self.root),
                   "machine": machine(), "load": round(self.load, 1), "tables": self.tables, "pictures": self.pictures}
        (self.out / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"\nresults in {self.out}/results.json")


def number(text):
    """Converts a cell of a CSV file. An empty cell becomes None."""
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def epochs_of(events):
    return [event for event in events if event["event"] == "epoch"]


def seconds_of_epoch(events):
    """Returns the median duration of the epochs. The first one does not count if there are several."""
    epochs = epochs_of(events)
    return statistics.median(event["seconds"] for event in epochs[min(1, len(epochs) - 1):])


def commit_of(root):
    done = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() or "unknown"


def machine():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"{processor}, {len(os.sched_getaffinity(0))} cores"


def percent(value, digits=2):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def times(value):
    return "–" if value is None else f"{value:.2f}"
