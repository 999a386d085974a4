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
from sweep_table import figures_text, is_finished, lines_of_sweep, metrics_of_trials, summary
from tensors import FileFault
from tool import Mistake, whole_file
from trials import make_trials, refuse_replaced

FORMAT = "plexaura sweep 1"
RECORD = "sweep.json"
TURN = 0.1  # seconds between two looks at the signals
LONGEST_REASON = 300  # characters of the last line of a trial that failed
# Arguments that belong to one run. The sweep gives each trial its own.
OF_ONE_RUN = ("--log", "--report", "--resume", "--replace", "--tensorboard", "--profile")
# With these a program does something else than to train.
NOT_TRAINING = ("--check", "--check-gradients", "--describe", "--dry-run", "--evaluate", "--find-lr", "--generate", "--help", "-h", "--overfit",
                "--predict", "--serve", "--version")


@dataclasses.dataclass
class Sweep:
    """`command` starts the program. `files` are the hashes of the input files that it names. `trials` are those of this call. `done` is the
    record of every trial that has ended, by its name, and `planned` has the settings of every trial, by its name: both also have those of
    earlier calls."""

    folder: pathlib.Path
    command: list
    files: dict
    metric: str | None
    reports: bool
    trials: list
    done: dict
    planned: dict

    def save(self):
        table = summary(self.trials, self.done, self.metric)
        record = {"format": FORMAT, "command": self.command, "files": self.files, "planned": self.planned, "trials": list(self.done.values()), **table}
        try:
            with whole_file(self.folder / RECORD) as file:
                file.write(json.dumps(record, indent=1).encode(errors="replace") + b"\n")
        except OSError as error:
            raise Mistake(f"'{self.folder / RECORD}' cannot be written: {error.strerror}; free space, and call the same command again") from error


def sweep(options):
    """Returns the exit status: 0 if all trials have succeeded, 1 if one has failed, or the status of the signal that ended the sweep."""
    signals = Asked()
    set_handler(lambda number, _: signals.append(number))
    plan = prepare(options)
    with locked(plan.folder):
        read_record(plan)
        plan_trials(plan)
        check_metric(plan)
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
        name = word.partition("=")[0]
        if name in OF_ONE_RUN:
            raise Mistake(f"{name} cannot be one for all trials; leave it out, for each trial has a folder of its own in --out")
        if name in NOT_TRAINING:
            raise Mistake(f"with {name} the program does not train, and a sweep compares what was trained; leave it out, or start the program itself")
    trials = make_trials(options.vary, options.folds, options.seeds)
    refuse_replaced(command, [*trials[0].settings, "output.dir", *(["data.folds"] if options.folds else [])])
    if options.folds:
        command = [*command, "--set", f"data.folds={options.folds}"]
    folder = pathlib.Path(options.out)
    try:
        files = {word: hashlib.sha256(pathlib.Path(word).read_bytes()).hexdigest() for word in command[1:] if is_input(word)}
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"'{error.filename}' cannot be used: {error.strerror}; name another") from error
    return Sweep(folder, command, files, options.metric, options.report, trials, {}, {})


def is_input(word):
    """True if the argument names an input file: the YAML file, or weights to start from. The program itself, a binary or script, is none."""
    if not pathlib.Path(word).is_file():
        return False
    with open(word, "rb") as file:
        return file.read(2) not in (b"#!", b"\x7fE")


def locked(folder):
    """Locks the folder against a second sweep until the process ends. Returns the file that holds the lock."""
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
    """Reads the records of earlier calls. Refuses those of another command, whose figures could not be compared."""
    path = plan.folder / RECORD
    if not path.exists():
        return
    try:
        record = json.loads(path.read_bytes())
        if record["format"] != FORMAT:
            raise ValueError
        plan.done = {trial["name"]: trial for trial in record["trials"] if isinstance(trial["status"], int)}
        plan.planned = record["planned"]
        if not all(isinstance(settings, dict) for settings in plan.planned.values()):
            raise ValueError
        same = (record["command"], record["files"]) == (plan.command, plan.files)
        changed = [name for name, digest in plan.files.items() if record["files"].get(name) not in (None, digest)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Mistake(f"'{path}' is no record of a sweep; name another folder in --out") from error
    if not same:
        why = f"{changed[0]} has changed since" if changed else "their command was another: " + " ".join(map(str, record["command"]))
        raise Mistake(printable(f"'{plan.folder}' has trials that cannot be compared with these, because {why}; name another folder in --out"))


def plan_trials(plan):
    """Refuses a trial whose folder has the run of other settings. Names may be equal, as they have only the last part of each key."""
    for trial in plan.trials:
        folder = plan.folder / trial.name
        known = plan.planned.get(trial.name)
        if known != trial.settings and (is_finished(plan.done.get(trial.name)) or any(folder.glob("checkpoint-*"))):
            whose = "a run that no call for this sweep has started" if known is None else "a trial with other settings: " + trial_text(known)
            raise Mistake(printable(f"'{folder}' is of {whose}; name another folder in --out"))
        if known != trial.settings:
            plan.done.pop(trial.name, None)
            plan.planned[trial.name] = trial.settings


def trial_text(settings):
    return " ".join(f"{key}={value}" for key, value in settings.items())


def run_trial(plan, trial, signals):
    """Runs a trial to its end and records it. A trial that a signal stops is not recorded, and the next call resumes it. `seconds` in the
    record begin with the last start."""
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
    record = {"name": trial.name, "settings": trial.settings, "status": status, "seconds": round(time.monotonic() - begun, 3)}
    record |= figures_of(folder) if status == 0 else {"reason": last_line(folder / "output.txt", start)}
    plan.done[trial.name] = record
    plan.save()
    check_metric(plan)
    show(f"  {figures_text(record)}" if is_finished(record) else f"  failed with status {status}: {record['reason']}")


def check_metric(plan):
    """A first trial has to end before the figures are known. It is recorded before it is checked, so that it is not repeated."""
    names = metrics_of_trials(plan.done.values())
    if plan.metric is not None and names and plan.metric not in names:
        raise Mistake(f"--metric {plan.metric} is no figure of these trials; they have {', '.join(names)}; name one of them, and call again: what "
                      "has finished is not repeated")


def run(command, output, signals):
    """Starts the program and returns its exit status. The program has its own session, so that Ctrl-C reaches it once: a second signal would
    kill it before it has saved."""
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


def figures_of(folder):
    """Returns the figures of the validation after the best epoch if the run had a goal, and after the last epoch if not. Without a log it
    returns the reason why the trial counts as failed."""
    try:
        epochs = read_log(folder / "log.jsonl", folder.name).epochs
    except OSError as error:
        return {"reason": f"'{folder / 'log.jsonl'}' cannot be read: {error.strerror}; name a program that trains"}
    except LogFault as error:
        return {"reason": str(error)}
    try:
        goal, mode, best = goal_of(folder)
        epoch = next(epoch for epoch in epochs if epoch["epoch"] == best) if goal else (epochs or [{}])[-1]
    except (OSError, FileFault, KeyError, ValueError, StopIteration) as error:
        why = str(error) if isinstance(error, FileFault) else f"'{folder / 'best'}' does not name an epoch of the log"
        return {"figures": {}, "rising": [], "goal": None, "note": f"{why}, so the figures of the best epoch are not known"}
    figures = {name.removeprefix("val_"): value for name, value in epoch.items() if name.startswith("val_")}
    figures = {name: None if number_of(value) != number_of(value) else value for name, value in figures.items()}
    rising = [name for name in epoch.get("rising") or [] if name != goal] + [goal] * (mode == "max")
    return {"figures": {**{name: value for name, value in figures.items() if name != "loss"}, "loss": figures.get("loss")},
            "rising": rising, "goal": goal, "epoch": epoch.get("epoch", -1) + 1}


def goal_of(folder):
    """Returns the metric of training.goal, its mode, and the best epoch, or None for each. The epoch is that of the log: a step of the
    checkpoint may be another than the last one in the log."""
    if not (folder / "best").is_symlink():
        return None, None, None
    tensors, metadata = read_safetensors(folder / "best/state.safetensors")
    mode, _, metric = metadata["goal"].partition(" ")
    (epoch,) = {tensor.name: tensor for tensor in tensors}["best.epoch"].numbers()
    return metric, mode, epoch


def last_line(path, start):
    """Returns the last line of a trial's output after byte `start` that has more than blanks and hyphens."""
    with open(path, "rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - (1 << 16)))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip("- \r")]
    return printable(lines[-1][:LONGEST_REASON]) if lines else "it has printed nothing"


def report_end(plan, signals):
    for line in lines_of_sweep(plan.trials, plan.done, plan.metric):
        show(line)
    if signals:
        left = sum(not is_finished(plan.done.get(trial.name)) for trial in plan.trials)
        show(f"{signals.name}: {left} of {len(plan.trials)} trials are left; the same command continues")
        return signals.status
    return int(not all(is_finished(plan.done.get(trial.name)) for trial in plan.trials))


def show(line):
    print(printable(line), flush=True)
