#!/usr/bin/env python3
"""Tests tools/reproduce: its page, its refusals, and how it turns the rows of a measurement into tables.

usage: reproduce_test.py ROOT
"""

import contextlib
import importlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "tools/reproduce_parts"), str(ROOT / "tools/scaling_parts"), str(ROOT / "tools")]

import page  # noqa: E402
from lab import Lab, number  # noqa: E402
from tool import Mistake  # noqa: E402


def row(strategy, ranks, **values):
    common = {"samples_per_second": 100.0 * ranks, "speed_up": 0.9 * ranks, "efficiency": 0.9, "validation_loss": 0.5, "accuracy": 0.97, "batch": 16.0,
              "exchanged": None, "idle": None, "of_ideal": 0.5, "seconds_to_target": None, "sent": 2e6}
    return {"strategy": strategy, "ranks": float(ranks), **common, **values}


class MadeUpLab(Lab):
    """Returns made-up results instead of running programs."""

    fake_hosts = True

    def scale(self, name, *words, program, hosts=None):
        self.commands.append([*words, *program])
        strategies = next((words[i + 1].split(",") for i, word in enumerate(words) if word == "--strategies"), ["allreduce"])
        rows = [row("one rank", 1), *(row(strategy, ranks) for strategy in strategies for ranks in (2, 4))]
        return rows if self.fake_hosts or not hosts else None

    def train(self, ranks, program, hosts=None, threads=1):
        epochs = [{"event": "epoch", "epoch": epoch, "seconds": 8.0 / ranks, "val_accuracy": 0.98, "waited_share": 0.1} for epoch in range(3)]
        return (epochs, 20.0) if self.fake_hosts or not hosts else None


class Workloads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def results_of(self, name, full=True, fake_hosts=True):
        out = pathlib.Path(self.folder.name) / name
        lab = MadeUpLab(ROOT, pathlib.Path("build"), pathlib.Path("data"), out, full, None)
        lab.commands, lab.fake_hosts = [], fake_hosts
        with contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(name).run(lab)
            lab.finish(name)
        return json.loads((out / "results.json").read_text(encoding="utf-8"))

    def test_iris_beside_the_published_seconds(self):
        results = self.results_of("iris_and_photos")
        self.assertEqual(results["tables"][0]["rows"][1], ["allreduce", "2", "200", "2.00", "1.54", "0.500000", "97.00 %"])  # 1.40 s / 0.91 s
        self.assertEqual(results["tables"][1]["rows"][1][4], "–")  # nothing was published for photos
        self.assertTrue(all((pathlib.Path(self.folder.name) / "iris_and_photos" / picture["file"]).is_file() for picture in results["pictures"]))

    def test_all_nine_rows_of_the_digits(self):
        rows = self.results_of("mnist_cnn")["tables"][0]["rows"]
        self.assertEqual([cells[0] for cells in rows], ["1 × 1", "1 × 2", "2 × 1", "1 × 4", "2 × 2", "4 × 1", "1 × 8", "2 × 4", "4 × 2"])
        self.assertEqual(rows[-1], ["4 × 2", "1.0", "8.00", "6.92", "98.00 %", "94.03 %", "20", "131", "10.0 %"])

    def test_rows_of_several_hosts_need_them(self):
        table = self.results_of("mnist_cnn", fake_hosts=False)["tables"][0]
        self.assertEqual([cells[0] for cells in table["rows"]], ["1 × 1", "1 × 2", "1 × 4", "1 × 8"])
        self.assertIn("were not run", table["note"])

    def test_weak_scaling_of_the_full_batch(self):
        weak = self.results_of("mnist_full_batch")["tables"][1]
        self.assertEqual(weak["rows"][2], ["4", "400", "3.60", "3.04", "90.0 %", "76.1 %", "0.500000", "97.00 %"])  # 4 * 4.3 s / 5.65 s

    def test_the_page_renders_the_results(self):
        self.results_of("mnist_full_batch", full=False)
        text = page.page_of(pathlib.Path(self.folder.name))
        self.assertIn("`tools/reproduce mnist_full_batch`", text)
        self.assertIn("| 4 | 400 | 3.60 | 3.04 |", text)
        self.assertIn("/mnist_full_batch/strong.svg", text)

    def test_damaged_results(self):
        path = pathlib.Path(self.folder.name) / "resnet" / "results.json"
        path.parent.mkdir()
        for damage in ("", "[]", '{"workload": "resnet"}'):
            path.write_text(damage, encoding="utf-8")
            with self.assertRaisesRegex(Mistake, "is not a file of results"):
                page.page_of(pathlib.Path(self.folder.name))

    def test_empty_cells(self):
        self.assertEqual([number(cell) for cell in ("", "1.5", "allreduce")], [None, 1.5, "allreduce"])


class Page(unittest.TestCase):
    def test_the_page_of_the_documentation_is_up_to_date(self):
        folder = ROOT / "docs/lab/results"
        self.assertEqual(page.page_of(folder), folder.with_name("results.md").read_text(encoding="utf-8"),
                         "write it again: tools/reproduce --page docs/lab/results")


class Words(unittest.TestCase):
    def refusal(self, *words):
        done = subprocess.run([ROOT / "tools/reproduce", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def test_refusals(self):
        for words, sentence in (((), "name one workload"), (("resnet", "--page", "x"), "name one workload"), (("alexnet",), "invalid choice"),
                                (("mnist_cnn", "--peer", "python3"), "--peer is only for"), (("--page", "nowhere"), "there is no nowhere/"),
                                (("--page", "x", "--full"), "--page only renders"), (("resnet", "--build", "nowhere"), "build it first"),
                                (("resnet", "--quick", "--full"), "not allowed with")):
            with self.subTest(words=words):
                self.assertIn(sentence, self.refusal(*words))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
