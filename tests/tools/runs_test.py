#!/usr/bin/env python3
"""Tests tools/runs: the table and the page of runs.

usage: runs_test.py ROOT
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tools/runs_parts"))

from chart import MOST_POINTS, Chart, thinned, ticks  # noqa: E402


def step(number, epoch, loss):
    return {"event": "step", "step": number, "epoch": epoch, "loss": loss, "accuracy": 0.5, "images_per_second": 100 * number, "learning_rate": 0.1}


def epoch(number, loss, accuracy):
    return {"event": "epoch", "epoch": number, "train_loss": loss, "val_loss": loss and loss / 2, "val_accuracy": accuracy, "rising": ["accuracy"], "seconds": 2.5}


class RunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, *entries, end="\n"):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text("\n".join(map(json.dumps, entries)) + end)

    def ask(self, *words, status=0):
        done = subprocess.run([ROOT / "tools/runs", *words], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_the_table(self):
        self.write("a/log.jsonl", step(1, 0, 4), step(2, 0, 2), epoch(0, 3, 0.5), step(3, 1, 1), epoch(1, 1, 0.25))
        self.write("b/log.jsonl", {"event": "exchange", "sentence": "..."}, step(1, 0, 4))
        expected = ["run    epochs  steps  train loss  validation loss  best accuracy  samples/s  seconds",
                    "a/log       2      3           1              0.5  0.5 (epoch 1)        200        5",
                    "b/log       0      1           –                –              –        100        0"]
        self.assertEqual(self.ask("list", "a/log.jsonl", "b/log.jsonl").splitlines(), expected)
        self.assertEqual(self.ask("list", ".").splitlines(), expected)

    def test_what_a_resumed_run_computes_again_counts_once(self):
        self.write("log.jsonl", step(1, 0, 4), step(2, 0, 3), epoch(0, 3, 0.5), step(3, 1, 9), step(4, 1, 9), epoch(1, 9, 0.9), step(3, 1, 1), epoch(1, 2, 0.75))
        row = self.ask("list", "log.jsonl").splitlines()[1].split()
        self.assertEqual(row, ["log", "2", "3", "2", "1", "0.75", "(epoch", "2)", "200", "5"])

    def test_the_log_says_which_metrics_rise(self):
        self.write("log.jsonl", step(1, 0, 4), *({**epoch(i, 3, value), "rising": []} for i, value in enumerate((0.5, 0.25, 0.75))))
        self.assertIn("0.25 (epoch 2)", self.ask("list", "log.jsonl"))
        self.write("log.jsonl", step(1, 0, 4), {**epoch(0, 3, 0.5), "rising": None})  # of an earlier version
        self.assertEqual(self.ask("list", "log.jsonl").splitlines()[1].split(), ["log", "1", "1", "3", "1.5", "–", "100", "2.5"])

    def test_an_unfinished_line_is_left_out(self):
        self.write("log.jsonl", step(1, 0, 4), step(2, 0, 2), end="")
        self.assertEqual(self.ask("list", "log.jsonl").splitlines()[1].split()[:3], ["log", "0", "1"])

    def test_the_page_is_one_file_with_a_curve_of_each_run(self):
        self.write("a<b>.jsonl", *(step(i, 0, 1 / i) for i in range(1, 1501)), epoch(0, 3, 0.5))
        self.write("second.jsonl", step(1, 0, None), step(2, 0, 1), step(3, 0, None), epoch(0, None, 0.25))
        self.ask("draw", "out.html", "a<b>.jsonl", "second.jsonl")
        page = (self.folder / "out.html").read_text()
        self.assertNotRegex(page, r"https?:|src=|href=|<script|@import|url\(")
        self.assertNotIn("<b>", page)
        charts = [xml.etree.ElementTree.fromstring(text) for text in re.findall("<svg.*?</svg>", page, re.DOTALL)]
        self.assertEqual([chart.get("aria-label") for chart in charts],
                         ["loss of each step", "loss of each epoch", "validation loss", "validation accuracy", "accuracy of each step", "learning rate",
                          "samples per second"])
        groups = charts[0].findall("g")
        self.assertEqual([group.find("title").text for group in groups], ["a<b>", "second"])
        self.assertEqual(len(groups[0].find("polyline").get("points").split()), MOST_POINTS)
        self.assertEqual(len(groups[1].findall("circle")), 1)  # the only loss that is known
        self.ask("draw", "out.html", "second.jsonl")  # a page may be written anew

    def test_what_is_wrong(self):
        self.write("log.jsonl", step(1, 0, 4))
        self.write("text", end="some text\n")
        self.write("other.jsonl", {"event": "step", "step": "1", "epoch": 0})
        self.write("empty.jsonl", {"event": "exchange"})
        (self.folder / "folder").mkdir()
        for says, *words in (("'text' line 1 is not JSON; name a file that --log has written", "list", "text"),
                             ("'other.jsonl' line 1 is not of a log", "list", "other.jsonl"),
                             ("'empty.jsonl' has no steps and no epochs", "list", "empty.jsonl"),
                             ("'none' cannot be read: No such file or directory", "list", "none"),
                             ("'folder' has no file that ends in .jsonl or .log", "list", "folder"),
                             ("'log.jsonl' does not end in .html; name the page first", "draw", "log.jsonl", "log.jsonl"),
                             ("'none/out.html' cannot be written: No such file or directory", "draw", "none/out.html", "log.jsonl")):
            self.assertRegex(self.ask(*words, status=2), rf"\Aruns: {re.escape(says)}[^\n]*\n\Z")
        (self.folder / "mine.html").write_text("<p>mine</p>")
        self.assertIn("'mine.html' exists and is no page", self.ask("draw", "mine.html", "log.jsonl", status=2))
        self.assertEqual((self.folder / "mine.html").read_text(), "<p>mine</p>")

    def test_figures_that_cannot_be_drawn(self):
        self.write("log.jsonl", step(1, 0, 10 ** 400), step(2, 0, 1e308), step(3, 0, -1e308), step(4, 0, 5e-324), step(5, 0, 0))
        self.ask("draw", "out.html", "log.jsonl")
        self.write("bad.jsonl", {"event": []})
        self.write("half.jsonl", {**step(1, 0, 1), "\ud800": 1})
        self.write("late.jsonl", step(10 ** 400, 0, 1))
        for name in ("bad", "half", "late"):
            self.assertIn("line 1 is not of a log", self.ask("draw", "out.html", f"{name}.jsonl", status=2))
        self.assertGreater((self.folder / "out.html").stat().st_size, 1000)  # the page stays
        self.assertEqual([path.name for path in self.folder.iterdir() if "unfinished" in path.name], [])

    def test_names_and_places_that_are_odd(self):
        self.write("a\n\udcff.jsonl".encode(errors="surrogateescape").decode(errors="surrogateescape"), {**step(1, 0, 1), "x\ny": 2})
        (self.folder / "other.log").write_text("of another program\n")
        environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
        for words in (["list", "."], ["draw", "out.html", "."]):
            done = subprocess.run([ROOT / "tools/runs", *words], cwd=self.folder, capture_output=True, env=environment, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(len(done.stdout.splitlines()), 2 if words[0] == "list" else 1)
        os.mkfifo(self.folder / "pipe.html")
        (self.folder / "device.html").symlink_to("/dev/full")
        for name in ("pipe", "device"):
            self.assertIn("exists and is no page", self.ask("draw", f"{name}.html", "other.log", status=2))

    def test_a_report_with_wrong_facts(self):
        self.write("run/log.jsonl", step(1, 0, 4))
        facts = {"format": "plexaura report 1", "run": {"ranks": 1}, "memory": {}, "judged": {"samples": 2, "of": 2, "unreadable": 0, "pictures": True},
                 "confusion": [1, 0, 0, 1], "classes": ["a<b>", "c"],
                 "worst": [{"index": 0, "label": 0, "predicted": 1, "probability": 0.5, "loss": None,
                            "picture": {"width": 2, "height": 1, "channels": 3, "pixels": "00ff00ff00ff"}}]}
        self.write("run/report.json", facts)
        self.ask("report", "run")
        page = (self.folder / "run/report.html").read_text()
        self.assertNotIn("<b>", page)
        self.assertEqual(page.count("<img"), 1)
        for key, value, says in (("format", 1, "has no facts of a run"), ("confusion", ["1"], "has facts that no program writes"),
                                 ("worst", [{}], "has facts that no program writes"), ("judged", None, "has facts that no program writes")):
            self.write("run/report.json", {**facts, key: value})
            self.assertRegex(self.ask("report", "run", status=2), rf"\Aruns: 'run/report.json' {says}[^\n]*\n\Z")
        self.write("run/report.json", {**facts, "worst": [{**facts["worst"][0], "picture": {"width": 9, "height": 1, "channels": 3, "pixels": "00"}}]})
        self.ask("report", "run")
        self.assertNotIn("<img", (self.folder / "run/report.html").read_text())
        self.assertIn("cannot be read", self.ask("report", "none", status=2))

    def test_ticks_are_round_and_within_the_axis(self):
        self.assertEqual(ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1])
        self.assertEqual(ticks(0.3, 0.47), [0.3, 0.35, 0.4, 0.45])
        for low, high in ((1, 450), (-3e-7, 5e-7), (1e9, 1.0001e9), (0.05, 0.050001)):
            found = ticks(low, high)
            self.assertTrue(2 <= len(found) <= 6 and low - 1e-9 * abs(low) <= found[0] and found[-1] <= high * (1 + 1e-9), found)

    def test_a_long_curve_is_drawn_by_means(self):
        points = thinned([(x, math.nan if 500 <= x < 600 else 2.0) for x in range(100 * MOST_POINTS)])
        self.assertEqual(len(points), MOST_POINTS)
        self.assertEqual([i for i, (_, y) in enumerate(points) if math.isnan(y)], [5])

    def test_a_constant_curve_lies_in_the_middle(self):
        chart = Chart("constant", "updates", [("run", "#000", [(1, 3.0), (2, 3.0)])])
        self.assertEqual((chart.y_low, chart.y_high), (1.5, 4.5))
        self.assertTrue(Chart("nothing", "updates", [("run", "#000", [(1, math.nan)])]).is_empty)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
