"""Trains with all combinations of some settings, one after the other, and prints a table of their figures."""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import time

from asked import Asked, set_handler
from job import end_with_launcher
from logs import LogFault, number_of, read_log
from printing import printable
from safetensors_file import read_safetensors
from starts import resuming
from sweep_table import figures_text, lines_of_sweep, metrics_of_trials, summary
from tensors import FileFault
from tool import Mistake, whole_file
from trials import make_trials

FORMAT = "plexaura sweep 1"
RECORD = "sweep.json"
TURN = 0.1  # seconds between two looks at the signals
LONGEST_REASON = 300  # characters of the last line of a trial that failed
# These belong to one run, and the sweep gives each trial its own.
REFUSED = ("--log", "--report", "--resume", "--replace")


@dataclasses.dataclass
class Sweep:
    """`command` starts the program. `trials` are those of this call. `done` is the record of every trial that has ended, by its name:
    also of those of earlier calls."""

    folder: pathlib.Path
    command: list
    files: dict
    metric: str | None
    reports: bool
    trials: list
    done: dict

    def save(self):
        table = summary(self.trials, self.done, self.metric)
        record = {"format": FORMAT, "command": self.command, "files": self.files, "trials": list(self.done.values()), **table}
        try:
            with whole_file(self.folder / RECORD) as file:
                file.write(json.dumps(record, indent=1).encode(errors="replace") + b"\n")
        except OSError as error:
            raise Mistake(f"'{self.folder / RECORD}' cannot be written: {error.strerror}; free space, and call the same command again") from error


def sweep(options):
    """Returns the exit status: 0 if all trials have succeeded, 1 if one has failed, that of a signal if one has ended the sweep."""
    signals = Asked()
    set_handler(lambda number, _: signals.append(number))
    plan = prepare(options)
    with locked(plan.folder):
        read_record(plan)
        plan.save()  # so that a killed sweep is not continued by another command
        for number, trial in enumerate(plan.trials, 1):
            if signals:
                break
            show(f"trial {number} of {len(plan.trials)}: {trial.name}")
            if is_finished(plan.done.get(trial.name)):
                show(f"  {figures_text(plan.done[trial.name])}, in an earlier call")
            else:
                run_trial(plan, trial, signals)
        return report_end(plan, signals)


def prepare(options):
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise Mistake("no program was named; for example: tools/runs sweep --out runs/folds --folds 5 build/models/mlp models/iris.yaml")
    if not shutil.which(command[0]):
        raise Mistake(f"'{command[0]}' is not a program that can be started; name it after all options, for example build/models/mlp")
    for word in command:
        if word.partition("=")[0] in REFUSED:
            raise Mistake(f"{word.partition('=')[0]} cannot be one for all trials; leave it out, for each trial has its own in --out")
    trials = make_trials(options.vary, options.folds, options.seeds)
    if options.folds:
        command = [*command, "--set", f"data.folds={options.folds}"]
    folder = pathlib.Path(options.out)
    try:
        files = {word: hashlib.sha256(pathlib.Path(word).read_bytes()).hexdigest() for word in command[1:] if is_input(word)}
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"'{error.filename}' cannot be used: {error.strerror}; name another") from error
    return Sweep(folder, command, files, options.metric, options.report, trials, {})


def is_input(word):
    """True for a file among the arguments that determines what is trained: the YAML file, or weights to start from. The program does not count."""
    if not pathlib.Path(word).is_file():
        return False
    with open(word, "rb") as file:
        return file.read(2) not in (b"#!", b"\x7fE")


def locked(folder):
    """Returns the lock on the folder, which a second sweep does not get. It ends with the process."""
    try:
        file = open(folder / ".sweep.lock", "w")
    except OSError as error:
        raise Mistake(f"'{error.filename}' cannot be made: {error.strerror}; name another folder in --out") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise Mistake(f"another sweep runs in '{folder}'; wait until it has ended, or name another folder in --out") from error
    return file


def read_record(plan):
    """Reads what earlier calls have recorded. Refuses trials of another command, which could not be compared."""
    path = plan.folder / RECORD
    if not path.exists():
        return
    try:
        record = json.loads(path.read_bytes())
        if record["format"] != FORMAT:
            raise ValueError
        plan.done = {trial["name"]: trial for trial in record["trials"] if isinstance(trial["status"], int)}
        same = (record["command"], record["files"]) == (plan.command, plan.files)
        changed = [name for name, digest in plan.files.items() if record["files"].get(name) not in (None, digest)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Mistake(f"'{path}' is no record of a sweep; name another folder in --out") from error
    if not same:
        why = f"{changed[0]} has changed since" if changed else "their command was another: " + " ".join(map(str, record["command"]))
        raise Mistake(printable(f"'{plan.folder}' has trials that cannot be compared with these, because {why}; name another folder in --out"))


def is_finished(record):
    return record is not None and record["status"] == 0


def run_trial(plan, trial, signals):
    """Runs a trial to its end and records it. One that is stopped by a signal is not recorded, and the next call resumes it."""
    folder = plan.folder / trial.name
    words = ["--report", str(folder)] if plan.reports else ["--log", str(folder / "log.jsonl")]
    command = [*plan.command, *trial.words(), "--set", f"output.dir={folder}", *words]
    begun = time.monotonic()
    try:
        folder.mkdir(exist_ok=True)
        with open(folder / "output.txt", "ab") as output:
            start = output.tell()
            status = run(resuming(command) if any(folder.glob("checkpoint-*")) else command, output, signals)
    except OSError as error:
        raise Mistake(f"'{error.filename}' cannot be used: {error.strerror}; call the same command again when it can") from error
    if signals and status != 0:
        return
    record = {"name": trial.name, "settings": trial.settings, "status": status, "seconds": round(time.monotonic() - begun, 3), **figures_of(folder, status)}
    if status != 0:
        record["reason"] = last_line(folder / "output.txt", start)
    plan.done[trial.name] = record
    plan.save()
    check_metric(plan)
    show(f"  failed with status {status}: {record['reason']}" if status else f"  {figures_text(record)}")


def check_metric(plan):
    names = metrics_of_trials(plan.done.values())
    if plan.metric is not None and names and plan.metric not in names:
        raise Mistake(f"--metric {plan.metric} is no figure of these trials; they have {', '.join(names)}")


def run(command, output, signals):
    """Returns the exit status. The program has a session of its own, so that Ctrl-C reaches it only from here: a second signal of a kind
    would end it before it has saved."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, preexec_fn=end_with_launcher)
    passed = 0
    while True:
        for number in signals[passed:]:
            process.send_signal(number)
            passed += 1
            if passed == 1:
                with contextlib.suppress(OSError):  # the terminal may be gone
                    show(f"  {signals.name}: the program is asked to save and to end")
        try:
            status = process.wait(TURN)
            return status if status >= 0 else 128 - status
        except subprocess.TimeoutExpired:
            pass


def figures_of(folder, status):
    """Returns the figures of the validation after the best epoch if the run had a goal, and after the last epoch if not."""
    if status != 0:
        return {}
    try:
        epochs = read_log(folder / "log.jsonl", folder.name).epochs
    except (OSError, LogFault) as error:
        return {"figures": {}, "rising": [], "goal": None, "note": str(error)}
    goal, step = goal_of(folder)
    epoch = next((epoch for epoch in epochs if epoch["step"] == step), epochs[-1] if epochs else {})
    figures = {name.removeprefix("val_"): value for name, value in epoch.items() if name.startswith("val_")}
    figures = {name: None if number_of(value) != number_of(value) else value for name, value in figures.items()}
    return {"figures": {**{name: value for name, value in figures.items() if name != "loss"}, "loss": figures.get("loss")},
            "rising": epoch.get("rising") or [], "goal": goal, "epoch": epoch.get("epoch", -1) + 1}


def goal_of(folder):
    """Returns the metric of training.goal and the step of the best epoch, or None twice."""
    best = folder / "best"
    try:
        _, metadata = read_safetensors(best / "state.safetensors")
        return metadata["goal"].partition(" ")[2], int(os.readlink(best).rpartition("-")[2])
    except (OSError, FileFault, KeyError, ValueError):
        return None, None


def last_line(path, start):
    """Returns the last line of a trial's output that says something, without what came before `start`."""
    with open(path, "rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - (1 << 16)))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip("- \r")]
    return printable(lines[-1][:LONGEST_REASON]) if lines else "it has printed nothing"


def report_end(plan, signals):
    plan.save()
    check_metric(plan)
    for line in lines_of_sweep(plan.trials, plan.done, plan.metric):
        show(line)
    if signals:
        left = sum(not is_finished(plan.done.get(trial.name)) for trial in plan.trials)
        show(f"{signals.name}: {left} of {len(plan.trials)} trials are left; the same command continues")
        return signals.status
    return int(not all(is_finished(plan.done.get(trial.name)) for trial in plan.trials))


def show(line):
    print(printable(line), flush=True)
