#!/usr/bin/env python3
"""Tests what tools/run knows about ranks on other machines when mpirun has ended, from event files that the
test writes.

usage: elsewhere_test.py ROOT
"""

import pathlib
import shutil
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools/run_parts"))

import events  # noqa: E402
from elsewhere import read_others  # noqa: E402
from job import Job  # noqa: E402

MPIRUN = 4711
JOB, OTHER_JOB = f"prterun-head-{MPIRUN}@1", "prterun-head-11@1"
HOUR = 3600 * 10**9


class ElsewhereTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.begun, self.links = time.time_ns(), []
        self.output = self.folder / "runs/iris"
        (self.output / "events").mkdir(parents=True)

    def write(self, number, status=None, job=JOB, age=0):
        """Writes the file of a rank. `status` is the status with which it has ended, or None."""
        path = self.output / f"events/rank-{number:04}"
        header = events.HEADER.pack(b"PLXEVENT", 1, events.SLOTS, number, 4, 9, 9, self.begun - age, 0, 0, 0, 7, 0, 1, b"node2", b"another boot", job.encode(), 0, 0, 0)
        end = b"" if status is None else events.SLOT.pack(1, 0, status, events.Kind.END, 9, b"")
        path.write_bytes((header.ljust(events.SLOTS_AT, b"\0") + end).ljust(events.FILE_BYTES, b"\0"))
        return path

    def read(self, *program, seen=()):
        return [rank.rank for rank in read_others(self.links, program, list(seen), MPIRUN, self.begun)]

    def see(self, number, job=JOB):
        """Makes the rank one of this machine, with a link in the folder of tools/run."""
        link = self.folder / f"rank-{number:04}"
        link.symlink_to(self.write(number, job=job))
        self.links.append(link)
        with link.open("rb") as file:
            return events.Rank(file)

    def test_where_ranks_of_this_machine_keep_theirs(self):
        seen = [self.see(0)]
        for number in (1, 2):
            self.write(number)
        self.write(3, job=OTHER_JOB)
        self.assertEqual(self.read("mlp", seen=seen), [1, 2])

    def test_of_an_open_mpi_that_names_jobs_otherwise(self):
        seen = [self.see(0, job="1234567")]
        self.write(1, job="1234567")
        self.write(2)
        self.assertEqual(self.read("mlp", seen=seen), [1])

    def test_where_the_program_is_told_to_keep_them(self):
        self.write(0)
        self.write(1, job=OTHER_JOB)
        self.write(2, age=HOUR)  # belongs to an older run with the same name
        for number, text in enumerate((f"output:\n  every: 10\n  dir: {self.output}  # of this run\n", f"output: {{every: 10, dir: '{self.output}'}}\n")):
            file = self.folder / f"{number}.yaml"
            file.write_text(text)
            self.assertEqual(self.read("mlp", str(file)), [0])
        for setting in (f"output.dir={self.output}", f"output={{dir: {self.output}}}"):
            self.assertEqual(self.read("mlp", "no.yaml", "--set", setting), [0])
        self.assertEqual(self.read("mlp", "no.yaml"), [])

    def test_their_processes_are_gone(self):
        self.write(0)
        rank, = read_others([], ["mlp", "--set", f"output.dir={self.output}"], [], MPIRUN, self.begun)
        self.assertEqual(rank.process_state(), "")

    def status(self, started, has_hosts=True):
        """Returns the exit status if mpirun has returned 0, and what was printed."""
        job = Job.__new__(Job)
        job.ranks = read_others([], ["mlp", "--set", f"output.dir={self.output}"], [], MPIRUN, self.begun)
        job.started, job.has_hosts, job.options = started, has_hosts, types.SimpleNamespace(survive=True)
        said = []
        with unittest.mock.patch("job.say", said.append):
            return job.status_of_those_that_ended(), "\n".join(said)

    def test_the_status(self):
        told = "mpirun returned 0, as it also does if a signal has killed all ranks; {} of 3 are visible from here, and none of them has reached its end"
        self.assertEqual(self.status(3, has_hosts=False), (0, ""))  # the program keeps no events
        self.assertEqual(self.status(3), (0, told.format(0)))
        self.write(0)
        self.assertEqual(self.status(3), (0, told.format(1)))
        self.assertEqual(self.status(3, has_hosts=False), (1, ""))
        for number in (1, 2):
            self.write(number)
        self.assertEqual(self.status(3), (1, ""))
        self.write(2, status=0)
        self.assertEqual(self.status(3), (0, ""))
        self.assertEqual(self.status(4), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
