#!/usr/bin/env python3
"""Tests tools/runs prune: which checkpoints it removes, and what it leaves.

usage: prune_test.py ROOT
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "tools/runs_parts"), str(ROOT / "tools/run_parts"), str(ROOT / "tools")]

from prune import shown_bytes, size_of  # noqa: E402

KILOBYTES = 64  # of each checkpoint


class PruneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make_run(self, name, *steps, day=1):
        """Makes a run with checkpoints of these steps, written on this day of 1970, a log, and the file of a lock."""
        for step in steps:
            place = self.folder / name / f"checkpoint-{step:06}"
            place.mkdir(parents=True)
            for file in ("weights", "state"):
                (place / f"{file}.safetensors").write_bytes(os.urandom(KILOBYTES * 512))
            for path in (*place.iterdir(), place):
                os.utime(path, (86400 * day, 86400 * day))
        (self.folder / name / "log.jsonl").write_text("{}\n")
        (self.folder / name / ".lock").touch()

    def prune(self, *words, status=0):
        done = subprocess.run([ROOT / "tools/runs", "prune", *words], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr if status == 2 else done.stdout

    def left(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("checkpoint*"))

    def test_the_newest_runs_keep_their_checkpoints(self):
        for name, day in (("old", 1), ("deep/new", 3), ("middle", 2)):
            self.make_run(name, 1, 2, day=day)
        (self.folder / "old/best").symlink_to("checkpoint-000001")
        before = self.left()
        said = self.prune(".", "--keep-last", "2").splitlines()
        self.assertRegex(said[0], r"^1970-01-0[12] \d\d:\d\d +1\d\d kB  old: checkpoint-000001, checkpoint-000002$")
        self.assertRegex(said[1], r"^would free 1\d\d kB of \d+ kB in '\.'; --delete removes these checkpoints$")
        self.assertEqual(self.left(), before)
        self.assertRegex(self.prune(".", "--keep-last", "2", "--delete"), r"(?m)^freed 1\d\d kB of")
        self.assertEqual(self.left(), [path for path in before if not path.startswith("old")])
        self.assertEqual(sorted(path.name for path in (self.folder / "old").iterdir()), [".lock", "log.jsonl"])
        self.assertEqual(self.prune(".", "--keep-last", "2").count("\n"), 1)

    def test_a_limit_takes_the_oldest_first_and_no_more_than_needed(self):
        for name, day in (("a", 2), ("b", 1), ("c", 3)):
            self.make_run(name, 1, day=day)
        self.prune(".", "--limit", "180kB", "--delete")
        self.assertEqual(self.left(), ["a/checkpoint-000001", "c/checkpoint-000001"])
        (self.folder / "data").write_bytes(os.urandom(200_000))
        self.assertIn("'.' takes more than 100 kB without them, too", self.prune(".", "--limit", "100KB", "--keep-last", "1", "--delete", status=1))
        self.assertEqual(self.left(), ["c/checkpoint-000001"])

    def test_what_is_no_checkpoint_stays(self):
        self.make_run("run", 1)
        self.make_run("linked", 1)
        (self.folder / "run/checkpoint-best").mkdir()
        (self.folder / "kept").mkdir()
        (self.folder / "kept/weights.safetensors").write_text("mine")
        (self.folder / "linked/checkpoint-000002").symlink_to("../kept")
        (self.folder / "link").symlink_to("linked")
        (self.folder / "run/checkpoint.unfinished").mkdir()
        (self.folder / "run/checkpoint.unfinished/.weights.safetensors.unfinished-7").write_text("")
        (self.folder / "run/checkpoint.removed-000001").mkdir()
        self.prune(".", "--keep-last", "0", "--delete")
        self.assertEqual(self.left(), ["linked/checkpoint-000001", "linked/checkpoint-000002", "run/checkpoint-best"])

    def test_a_run_with_another_file_in_a_checkpoint_stays_whole(self):
        self.make_run("run", 1, 2)
        (self.folder / "run/checkpoint-000002/notes.txt").write_text("mine")
        (self.folder / "run/best").symlink_to("checkpoint-000001")
        for words in ((), ("--delete",)):
            said = self.prune(".", "--keep-last", "0", *words)
            self.assertIn("run: 'checkpoint-000002/notes.txt' is not of a checkpoint, so all stay; move it away", said)
            self.assertRegex(said, "(would free|freed) 0 bytes of")
        self.assertEqual(self.left(), ["run/checkpoint-000001", "run/checkpoint-000002"])
        self.assertTrue((self.folder / "run/best").exists())

    def test_a_link_to_a_checkpoint_elsewhere_stays(self):
        self.make_run("run", 1)
        shutil.copytree(self.folder / "run/checkpoint-000001", self.folder / "kept/checkpoint-000001")
        (self.folder / "run/best").symlink_to("../kept/checkpoint-000001")
        self.prune(".", "--keep-last", "0", "--delete")
        self.assertEqual(self.left(), ["kept/checkpoint-000001"])  # a copy without a run stays, too
        self.assertTrue((self.folder / "run/best").exists())

    def test_a_link_to_the_folder_of_runs(self):
        self.make_run("runs/run", 1)
        (self.folder / "link").symlink_to("runs")
        self.assertIn("link/run: checkpoint-000001", self.prune("link", "--limit", "1kB", status=1))

    def test_a_run_under_way_stays(self):
        self.make_run("run", 1)
        with open(self.folder / "run/.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for words in ((), ("--delete",)):
                said = self.prune(".", "--keep-last", "0", *words)
                self.assertIn("run: a run is under way, so it stays", said)
                self.assertRegex(said, "(would free|freed) 0 bytes of")
        self.assertEqual(self.left(), ["run/checkpoint-000001"])

    def test_sizes(self):
        self.assertEqual([size_of(text) for text in ("20GB", "1.5 TiB", "7k", "9", "1B")], [20 * 10 ** 9, 3 * 2 ** 39, 7000, 9, 1])
        self.assertEqual([shown_bytes(count) for count in (0, 999, 1500, 2 * 10 ** 10, 3 * 10 ** 12)], ["0 bytes", "999 bytes", "1.5 kB", "20 GB", "3 TB"])

    def test_what_is_wrong(self):
        for says, *words in (("there is no rule for what to remove; give --limit SIZE", "."),
                             ("--limit '20 apples' is no size; write 20GB", ".", "--limit", "20 apples"),
                             ("is no size; write 20GB", ".", "--limit", "9" * 400),
                             ("argument --keep-last: '-1' is not a whole number from 0 on", ".", "--keep-last=-1"),
                             ("'none' cannot be read or removed: No such file or directory", "none", "--keep-last", "1")):
            self.assertIn(says, self.prune(*words, status=2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
