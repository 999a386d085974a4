"""Removes the checkpoints of old runs, so that a folder of runs stays below a size. Logs, reports and tables stay."""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import time

from printing import printable
from tool import Mistake

CHECKPOINT = re.compile(r"checkpoint(-\d+|\.removed-\d+|\.unfinished)")
# The files of a checkpoint, and a temporary one that a killed run has left. A run with anything else in a checkpoint is left out.
CHECKPOINT_FILE = re.compile(r"(weights|state)\.safetensors|\.(weights|state)\.safetensors\.unfinished-.*")
LOCK = ".lock"
UNITS = {"": 1, "B": 1, **{f"{letter}{end}": factor ** power for power, letter in enumerate("KMGT", 1) for end, factor in (("", 1000), ("B", 1000), ("IB", 1024))}}


@dataclasses.dataclass
class FoundRun:
    """A folder with checkpoints. `changed` is the time of the newest file in them, in seconds since 1970. `bytes` is their size on the disk.
    `foreign` is a path among them that belongs to no checkpoint, or None."""

    folder: pathlib.Path
    checkpoints: list
    changed: float
    bytes: int
    foreign: pathlib.Path | None


def size_of(text):
    """Returns the bytes of a text such as 20GB, 500M or 1.5TiB. A letter without B also means a power of 1,000."""
    found = re.fullmatch(r"(\d{1,30}(?:\.\d+)?) ?([A-Za-z]*)", text, re.ASCII)
    if not found or found[2].upper() not in UNITS:
        raise Mistake(f"--limit '{text}' is no size; write 20GB, 500MB or 1.5TiB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def shown_bytes(count):
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = "TB"
    return f"{count:.3g} {unit}"


def taken(path):
    """Returns the bytes that a file or folder takes on the disk. Links are not followed."""
    total = path.lstat().st_blocks * 512
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            with contextlib.suppress(FileNotFoundError):  # a run under way has removed it
                total += taken(entry)
    return total


def entries_of(path):
    """Returns the sorted paths in a folder. Returns an empty list for a link or a file."""
    return sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []


def foreign_at(path):
    """Returns what would be lost with a path that has the name of a checkpoint: the path itself if it is no folder, or an entry that belongs
    to no checkpoint. Returns None if there is nothing."""
    if path.is_symlink() or not path.is_dir():
        return path
    return next((entry for entry in entries_of(path) if not CHECKPOINT_FILE.fullmatch(entry.name) or not entry.is_file() or entry.is_symlink()), None)


def run_in(folder):
    """Returns the run whose folder this is, or None if there are no checkpoints. Each run has written the file of its lock: a folder without
    it contains copies of checkpoints."""
    while (folder / LOCK).exists():
        try:
            checkpoints = sorted(path for path in folder.iterdir() if CHECKPOINT.fullmatch(path.name))
            if not checkpoints:
                return None
            changed = max(entry.lstat().st_mtime for path in checkpoints for entry in (path, *entries_of(path)))
            return FoundRun(folder, checkpoints, changed, sum(map(taken, checkpoints)), next(filter(None, map(foreign_at, checkpoints)), None))
        except FileNotFoundError:  # a run under way has removed one meanwhile
            continue
    return None


def find_runs(folder):
    """Returns the runs in the folder and below, the newest first."""
    runs = list(filter(None, (run_in(pathlib.Path(place)) for place, _, _ in os.walk(folder, onerror=raise_error))))
    return sorted(runs, key=lambda run: (-run.changed, run.folder))


def raise_error(error):
    """Raises the error, unless the folder is missing because a run under way has removed it."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextlib.contextmanager
def lock_of(folder):
    """Holds the lock of the run's folder, as a run does. Yields false if a run holds it."""
    with open(folder / LOCK, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_under_way(folder):
    """Holds a shared lock for a moment. A run that starts in this moment is refused, as if another run was under way."""
    try:
        with open(folder / LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def remove(run):
    """Removes the checkpoints, and the link to the best one if it was one of them. Renames all checkpoints before it removes the first, so that
    an interrupted removal leaves no incomplete one under the name of a checkpoint. Returns false if a run uses the folder, or has changed
    its checkpoints since they were found."""
    with lock_of(run.folder) as is_free:
        if not is_free or run_in(run.folder) != run:
            return False
        whole = [path for path in run.checkpoints if path.name.startswith("checkpoint-")]
        for path in run.checkpoints:
            if path not in whole:
                shutil.rmtree(path)
        aside = [path.rename(path.with_name(path.name.replace("-", ".removed-"))) for path in whole]
        best = run.folder / "best"
        if best.is_symlink() and not best.exists():
            best.unlink()
        for path in aside:
            shutil.rmtree(path)
        return True


def prune(options):
    """Prints what is removed, or what --delete would remove. Returns 1 if the limit cannot be kept."""
    folder = pathlib.Path(options.folder)
    if options.limit is None and options.keep_last is None:
        raise Mistake("there is no rule for what to remove; give --limit SIZE, or --keep-last N, or both")
    limit = None if options.limit is None else size_of(options.limit)
    try:
        return prune_folder(folder, limit, options.keep_last or 0, options.delete)
    except OSError as error:
        raise Mistake(f"'{error.filename}' cannot be read or removed: {error.strerror}; name a folder of runs that are yours") from error


def refusal(run, deletes):
    """Returns why a run keeps its checkpoints, or "". With `deletes` it removes them."""
    if run.foreign:
        return f"'{run.foreign.relative_to(run.folder)}' is not of a checkpoint, so all stay; move it away"
    is_kept = not remove(run) if deletes else is_under_way(run.folder)
    return "a run is under way, so it stays" if is_kept else ""


def prune_folder(folder, limit, keep_last, deletes):
    total = taken(folder.resolve(strict=True))
    left = total
    for run in reversed(find_runs(folder)[keep_last:]):
        if limit is not None and left <= limit:
            break
        why = refusal(run, deletes)
        left -= 0 if why else run.bytes
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.changed))
        names = why or ", ".join(path.name for path in run.checkpoints)
        print(printable(f"{date}  {shown_bytes(run.bytes):>10}  {run.folder}: {names}"))
    freed = total - left
    print(printable(f"{'freed' if deletes else 'would free'} {shown_bytes(freed)} of {shown_bytes(total)} in '{folder}'"
                    + ("" if deletes or not freed else "; --delete removes these checkpoints")))
    if limit is not None and left > limit:
        print(printable(f"'{folder}' takes more than {shown_bytes(limit)} without them, too: logs and reports, other files, runs under way, and those of "
                        "--keep-last stay"))
        return 1
    return 0
