"""Checks the folder for temporary files, which mpirun uses, too: whether a run's files fit there."""

import errno
import os
import tempfile

from hosts import Mistake

BYTES = 10 << 20  # bytes of the files of Open MPI 4; Open MPI 5 needs less
FILES, FILES_PER_RANK = 30, 3
# variables that make mpirun keep its files in another folder
ELSEWHERE = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
# the fault, and how to fix it
TOO_SMALL = f"has less than the {BYTES >> 20} MB left that mpirun needs", "free space there"


def folder_for_temporary_files():
    """Returns the folder that mpirun uses. Python's tempfile would try another one if this one cannot be
    written."""
    return os.path.abspath(next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), "/tmp"))


def make_run_folder(ranks):
    """Makes a folder for the run, as a context that removes it at the end. `ranks` is the number of ranks
    that surely run on this machine."""
    folder = folder_for_temporary_files()
    try:
        os.makedirs(folder, exist_ok=True)  # mpirun does the same
        made = tempfile.TemporaryDirectory(prefix="plexaura-run-", dir=folder)
    except OSError as error:
        raise refusal(folder, *explain(folder, error)) from error
    if not any(os.environ.get(name) for name in ELSEWHERE):
        check_room(folder, FILES + FILES_PER_RANK * ranks)
    return made


def refusal(folder, what, remedy):
    return Mistake(f"'{folder}', the folder for temporary files, {what}; {remedy}, or name another folder in TMPDIR")


def explain(folder, error):
    """Returns a pair: the fault, and how to fix it."""
    if error.errno == errno.ENOSPC and files_left(folder) == 0:
        return "has no inodes left", "remove files there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TOO_SMALL
    if error.errno == errno.EROFS:
        return "is read-only", "mount it to be written"
    return f"cannot be used: {error.strerror}", "mend that"


def files_left(folder):
    """Returns how many files can still be made, or None if the file system has no limit."""
    try:
        system = os.statvfs(folder)
    except OSError:
        return None
    return system.f_favail if system.f_files else None


def check_room(folder, files):
    left = files_left(folder)
    if left is not None and left < files:
        raise refusal(folder, f"has {left or 'no'} inodes left, and the run needs {files}", "remove files there")
    system = os.statvfs(folder)
    if system.f_bavail * system.f_frsize < BYTES:
        raise refusal(folder, *TOO_SMALL)
