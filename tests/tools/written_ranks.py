"""Ranks of a run whose events the test writes, for tests of verdicts. Each test is called with ROOT as first
argument."""

import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools/run_parts"))

import events  # noqa: E402

sentence_of = runpy.run_path(str(ROOT / "tools/why"))["sentence"]


class WrittenRanks(unittest.TestCase):
    """Files in which all ranks are this process, which is alive."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "run/events").mkdir(parents=True)

    def path(self, number):
        return self.folder / f"run/events/rank-{number:04}"

    def rank(self, number, *told, step=12, host="h0", started=100.0, beat=None, place=None, oom_kills=2**62, survived=None, serves=0, count=1000, ranks=3):
        """Writes a rank's file. `told` has tuples (seconds ago, kind, number, text)."""
        now, clock = time.time_ns(), time.monotonic_ns()
        stat = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        begin = int(started * 1e9)
        text = lambda value, size: value.encode().ljust(size, b"\0")
        data = events.HEADER.pack(b"PLXEVENT", 1, 119, number, ranks, os.getpid(), int(stat[19]), now - begin, clock - begin, oom_kills,
                                  int(started if beat is None else started - beat), step, 0, count, text(host, 64),
                                  text(events.own_place() if place is None else place, 128), text("", 64),
                                  0 if survived is None else clock - int(survived * 1e9), 0, serves)
        data = data.ljust(events.HEADER_BYTES, b"\0") + text("fc1.weight, fc1.bias", 128)
        data = data.ljust(events.SLOTS_AT, b"\0")
        for i, (ago, kind, value, words) in enumerate(told):
            data += events.SLOT.pack(i + 1, clock - int(ago * 1e9), value, kind, os.getpid(), text(words, 480))
        path = self.path(number)
        path.write_bytes(data.ljust(65536, b"\0"))
        return path

    def ranks(self):
        return events.read_ranks(self.folder / "run").ranks

    def ask(self):
        """Runs tools/why."""
        return subprocess.run([ROOT / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)

    def why(self, kind, pattern):
        """Checks the verdict within this process. While another process starts, the written events would
        become older."""
        self.assertRegex(sentence_of(self.folder / "run"), rf"\A{kind}: {pattern}.*\Z")


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
