"""The folder for temporary files, which mpirun needs, too: whether it takes those of a run."""

import errno
import os
import tempfile

from hosts import Mistake

BYTES = 10 << 20  # of the files of Open MPI 4; those of Open MPI 5 are smaller
FILES, FILES_PER_RANK = 30, 3
ELSEWHERE = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")  # mpirun is told to keep its files in another folder
TOO_SMALL = f"has less than the {BYTES >> 20} MB left that mpirun needs", "free space there"  # and what mends it


def folder_for_temporary_files():
    """As mpirun finds it. Python's tempfile would go on to another one if this one cannot be written."""
    return os.path.abspath(next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), "/tmp"))


def make_run_folder(ranks):
    """`ranks`: how many are on this machine for certain. Returns a folder that is removed when it is left."""
    folder = folder_for_temporary_files()
    try:
        os.makedirs(folder, exist_ok=True)  # as mpirun does
        made = tempfile.TemporaryDirectory(prefix="plexaura-run-", dir=folder)
    except OSError as error:
        raise refusal(folder, *explain(folder, error)) from error
    if not any(os.environ.get(name) for name in ELSEWHERE):
        check_room(folder, FILES + FILES_PER_RANK * ranks)
    return made


def refusal(folder, what, remedy):
    return Mistake(f"'{folder}', the folder for temporary files, {what}; {remedy}, or name another folder in TMPDIR")


def explain(folder, error):
    """What is wrong, and what mends it."""
    if error.errno == errno.ENOSPC and files_left(folder) == 0:
        return "has no inodes left", "remove files there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TOO_SMALL
    if error.errno == errno.EROFS:
        return "is read-only", "mount it to be written"
    return f"cannot be used: {error.strerror}", "mend that"


def files_left(folder):
    """How many more can be made; None where the file system does not count them."""
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
