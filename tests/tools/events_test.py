#!/usr/bin/env python3
"""Tests how tools/run_parts/events.py reads files that no rank writes like this, and what tools/why then
says.

usage: events_test.py ROOT
"""

import os
import struct
import subprocess

import written_ranks  # adds the folders of the modules below
from events import Kind
from written_ranks import ROOT, WrittenRanks

STEP = (0.1, Kind.STEP, 12, "")


class EventsTest(WrittenRanks):
    def check(self, says):
        """Checks what tools/why says about rank 0's file, without and with files of other ranks."""
        done = self.ask()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"\Awhy: '.*/rank-0000' {says}; no other file there describes a run\n\Z")
        for number in (1, 2):
            self.rank(number, STEP)
        self.why("running", f"rank.*; '.*/rank-0000' {says}, and is left out")
        for number in (1, 2):
            self.path(number).unlink()

    def test_no_run(self):
        done = self.ask()
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Awhy: there are no events in '.*/run': they were removed, or no run has kept any; name the folder output.dir of a run\n\Z")

    def test_a_file_that_holds_something_else(self):
        strange = "holds no events that this version of Plexaura has written"
        for content, says in ((b"x" * 65536, strange), (b"PLXEVENT" + struct.pack("<II", 1, 2**32 - 1) + b"x" * 65520, strange),
                              (b"PLXEVENT" + bytes(300), "is cut off: it has fewer than 65536 bytes")):
            self.path(0).write_bytes(content)
            self.check(says)

    def test_a_file_that_is_damaged(self):
        kind, number = "it has an event of an unknown kind", "it has an event of an unknown signal"
        for told, fields, says in (((0.1, 255, 0, ""), {}, kind), ((0.1, Kind.BACK, -1, ""), {}, kind), ((0.1, Kind.BACK, 1 << 40, ""), {}, kind),
                                   ((0.1, Kind.SIGNAL, 999, ""), {}, number), (STEP, {"ranks": 1 << 30}, "a run has at most 10000 ranks"),
                                   (STEP, {"ranks": -1}, "a run has at most 10000 ranks")):
            self.rank(0, told, **fields)
            self.check(f"is damaged: {says}")

    def test_a_rank_that_has_gone_on_when_it_did_not_run(self):
        for ago in (-1e9, -1000, 101):
            self.rank(0, STEP, survived=ago)
            self.check("is damaged: it has gone on without others at a time at which it did not run")

    def test_texts_that_are_commands_of_a_terminal(self):
        """In the name of a host, in the texts of a rank, and in the name of the folder."""
        told = (1, Kind.ERROR, 1, "it said \x1b]0;title\x07 and\nmore \x9b31m")
        for number in range(3):
            self.rank(number, told, host="h0\x1b[31m")
        done = self.ask()
        self.assertEqual(done.stdout, r"exception: rank 0 on h0\x1b[31m ended in step 12 with the error: it said \x1b]0;title\x07 and\x0amore \xc2\x9b31m" + "\n")
        self.path(0).write_bytes(self.path(0).read_bytes().replace(b"it said", b"\xff\xe6 said"))
        self.assertIn(r"with the error: \xff\xe6 said", self.ask().stdout)
        folder = self.folder / "a\n\x1b[31m"
        done = subprocess.run([ROOT / "tools/why", folder], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, f"why: there is no folder '{self.folder}/a" + r"\x0a\x1b[31m" + "'; name the folder output.dir of a run\n"))

    def test_folders_that_are_none(self):
        (self.folder / "loop").symlink_to("loop")
        for word, says in (("", "one folder is asked about; "), ("x" * 5000, f"'{'x' * 300}…' cannot be read: File name too long; "),
                           (self.folder / "loop", "'.*/loop' cannot be read: Too many levels of symbolic links; ")):
            done = subprocess.run([ROOT / "tools/why", word], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, f"\\Awhy: {says}.*\n\\Z")

    def test_what_is_no_file(self):
        """Reading from a pipe would block."""
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            make(self.path(0))
            self.check("is not a regular file")
            self.path(0).rename(self.folder / make.__name__)

    def test_what_cannot_be_read(self):
        os.symlink("nothing", self.path(0))
        self.check("cannot be read: No such file or directory")
        self.path(0).rename(self.path(1))
        self.rank(0, STEP)
        self.why("running", "rank 0 .*; '.*/rank-0001' cannot be read: No such file or directory, and is left out")

    def test_a_rank_whose_file_is_damaged_has_started(self):
        for number in range(2):
            self.rank(number, (30, Kind.WAIT, 0, "MPI_Init"), step=0, count=1)
        self.path(2).write_bytes(b"")
        self.why("start-up", "rank 0 on h0 has been in start-up, in 'MPI_Init' with the other ranks for .*; '.*/rank-0002' is cut off: ")


if __name__ == "__main__":
    written_ranks.main()
