"""Removes what a job may leave on this machine: its processes, its folder, and the files of Open MPI.

    leftovers.py FOLDER

waits until its standard input is closed. If nothing was written there, the launcher was killed, and this
script ends the processes and removes the files.
"""

import contextlib
import glob
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from asked import NUMBERS
from events import Rank, open_events

SHARED_MEMORY = "/dev/shm"  # where Open MPI 5 leaves files whose names do not show the job
PATIENCE = 20  # minimum of seconds that mpirun gets to end its ranks, which first finish a step and save


def patience(environment):
    """Returns how many seconds mpirun gets. It waits for the time in the variable, asks its ranks to end, and
    waits as long again before it kills them."""
    timeout = environment.get("OMPI_MCA_odls_base_sigkill_timeout", "")
    return max(PATIENCE, 2 * int(timeout) + 2 if timeout.isdecimal() else 0)


class Leftovers:
    def __init__(self, folder):
        self.folder = folder

    def make_shared_folder(self):
        """Makes a folder for the files of Open MPI 5 (distributed/mpi/mpi_session.cpp). Its name cannot be
        guessed, so nobody can make it first. Returns "" if it cannot be made; Open MPI then chooses a
        folder itself."""
        with contextlib.suppress(OSError):
            return tempfile.mkdtemp(prefix=self.shared_prefix, dir=SHARED_MEMORY)
        return ""

    @property
    def shared_prefix(self):
        return f"{self.folder.name}-"

    def processes(self):
        """Yields process id and environment of each process of the job on this machine."""
        marks = (f"PLEXAURA_RUN={self.folder}\0".encode(), f"plexaura_run\0{self.folder}\0".encode())
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                texts = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if any(mark in text for mark in marks for text in texts):
                yield int(entry.name), texts[0]

    def clean_up(self, launchers, ranks):
        """Ends the job's processes and removes its files. `launchers` are process ids, one of which was
        mpirun's."""
        for _ in range(100):  # repeated, because a process may just be starting others
            if not self.end_processes():
                break
            time.sleep(0.05)
        temporary, left = tempfile.gettempdir(), glob.glob(f"{SHARED_MEMORY}/{self.shared_prefix}*")
        for process in launchers:
            left += [f"{temporary}/ompi.{process}", *glob.glob(f"{temporary}/ompi.*/pid.{process}")]
        for job in {int(rank.job) for rank in ranks if rank.job.isdecimal()}:
            left += glob.glob(f"{temporary}/ompi.*/jf.{job >> 16}") + glob.glob(f"{SHARED_MEMORY}/vader_segment.*.{job:x}.*")
        for path in left:
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def end_processes(self):
        """Kills the job's processes. Returns true if there were any."""
        found = False
        for process, _ in self.processes():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                found = True
        return found

    def clean_up_after_launcher(self):
        launchers, end = {process for process, _ in self.processes()}, time.monotonic() + patience(os.environ)
        while list(self.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        ranks = []
        for path in self.folder.glob("rank-*"):
            with contextlib.suppress(OSError, ValueError), open_events(path) as file:
                ranks.append(Rank(file))
        self.clean_up(launchers, ranks)
        shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    for number in NUMBERS:
        # The launcher handles these signals, and closes standard input when it ends.
        signal.signal(number, signal.SIG_IGN)
    if not sys.stdin.read():
        Leftovers(pathlib.Path(sys.argv[1])).clean_up_after_launcher()
