#!/usr/bin/env python3
"""Tests, with a fake clock, how long the processes of a job live when tools/run is killed, and what ends the
watcher.

usage: leftovers_test.py ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools/run_parts"))

import leftovers  # noqa: E402
from asked import NUMBERS  # noqa: E402
from leftovers import Leftovers  # noqa: E402


class LeftoversTest(unittest.TestCase):
    def seconds_until_killed(self, timeout, needed):
        """Returns after how many seconds the job's only process is killed, which needs `needed` seconds to
        end by itself. Returns None if it ends before."""
        clock, killed = [1000.0], []

        def kill(process, number):
            killed.append(clock[0] - 1000)
            clock[0] += needed  # it has ended

        def sleep(seconds):
            clock[0] += seconds

        variables = {"OMPI_MCA_odls_base_sigkill_timeout": timeout} if timeout else {}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, variables), \
                mock.patch.object(leftovers.time, "monotonic", lambda: clock[0]), mock.patch.object(leftovers.time, "sleep", sleep), \
                mock.patch.object(leftovers.os, "kill", kill), \
                mock.patch.object(Leftovers, "processes", lambda self: [(1 << 30, b"")] if clock[0] < 1000 + needed else []):
            if not timeout:
                os.environ.pop("OMPI_MCA_odls_base_sigkill_timeout", None)
            Leftovers(pathlib.Path(folder) / "plexaura-run-test").clean_up_after_launcher()
        return killed[0] if killed else None

    def test_mpirun_has_the_time_that_was_set_for_it(self):
        """mpirun gets twice the time that was set, and at least 20 seconds."""
        self.assertIsNone(self.seconds_until_killed("60", 115))
        self.assertAlmostEqual(self.seconds_until_killed("60", 500), 122, delta=1)
        for timeout in (None, "3", "soon"):
            self.assertIsNone(self.seconds_until_killed(timeout, 19))
            self.assertAlmostEqual(self.seconds_until_killed(timeout, 500), 20, delta=1)

    def test_the_folder_for_shared_memory(self):
        """The name cannot be derived from that of the run's folder. If there is no space, there is no folder.
        """
        with tempfile.TemporaryDirectory() as run, tempfile.TemporaryDirectory() as shared, mock.patch.object(leftovers, "SHARED_MEMORY", shared):
            left = Leftovers(pathlib.Path(run))
            taken = pathlib.Path(shared) / pathlib.Path(run).name
            taken.mkdir()
            folders = [pathlib.Path(left.make_shared_folder()) for _ in range(2)]
            self.assertEqual(len({taken, *folders}), 3)
            for folder in folders:
                self.assertEqual((folder.parent, folder.stat().st_mode & 0o777), (pathlib.Path(shared), 0o700))
            with mock.patch.object(Leftovers, "processes", lambda self: []):
                left.clean_up([], [])
            self.assertEqual(list(pathlib.Path(shared).iterdir()), [taken])
        with mock.patch.object(leftovers, "SHARED_MEMORY", shared):  # a folder that does not exist
            self.assertEqual(left.make_shared_folder(), "")


class WatcherTest(unittest.TestCase):
    """Tests the process that tools/run starts to clean up after it."""

    def setUp(self):
        outer = tempfile.TemporaryDirectory()
        self.addCleanup(outer.cleanup)
        self.folder = pathlib.Path(outer.name) / "plexaura-run-test"
        self.folder.mkdir()
        self.watcher = subprocess.Popen([sys.executable, leftovers.__file__, self.folder], stdin=subprocess.PIPE)
        self.addCleanup(lambda: (self.watcher.kill(), self.watcher.communicate()))

    def ignored(self):
        mask = int(re.search(r"^SigIgn:\s*([0-9a-f]+)$", pathlib.Path(f"/proc/{self.watcher.pid}/status").read_text(), re.M)[1], 16)
        return {number for number in NUMBERS if mask >> (number - 1) & 1}

    def send_all_signals(self):
        end = time.monotonic() + 60
        while self.ignored() != set(NUMBERS):  # waits until it has started
            self.assertIsNone(self.watcher.poll())
            self.assertLess(time.monotonic(), end, f"it ignores {self.ignored()} alone")
            time.sleep(0.01)
        for number in NUMBERS:
            self.watcher.send_signal(number)

    def test_signals_to_the_launcher_do_not_end_it(self):
        self.send_all_signals()
        self.watcher.communicate()  # without a word, as if the launcher was killed
        self.assertEqual((self.watcher.returncode, self.folder.exists()), (0, False))

    def test_it_leaves_the_folder_to_a_launcher_that_ends_by_itself(self):
        self.send_all_signals()
        self.watcher.communicate(b"ended")
        self.assertEqual((self.watcher.returncode, self.folder.exists()), (0, True))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
