#!/usr/bin/env python3
"""Tests tools/runs sweep with a program that only writes a log: which trials are run, what is resumed, and the table.

usage: sweep_test.py ROOT
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "tools/runs_parts"), str(ROOT / "tools")]

from trials import list_of, make_trials  # noqa: E402

# Accuracy is the learning rate less a hundredth of the fold. It counts its starts in the file `starts`, fails at the learning rate `bad`,
# and with `wait` it waits for a signal after it has saved. With `goal` its first epoch is the best one by the metric dice, of which larger values are better,
# and the checkpoint of that epoch has another step than the log. With `logs=no` it writes no log.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, signal, struct, sys
words = sys.argv[1:]
keys = dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--set")
folder = pathlib.Path(keys["output.dir"])
with open("starts", "a") as file:
    file.write(folder.name + (" resumed" if "--resume" in words else "") + "\\n")
rate = next((value for key, value in keys.items() if key.endswith("rate")), "1")
if rate == "bad":
    sys.exit("the loss is infinite; lower the rate")
(folder / "checkpoint-000001").mkdir(exist_ok=True)
if pathlib.Path("wait").exists() and "--resume" not in words:
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    pathlib.Path("waits").touch()
    signal.pause()
if keys.get("logs") == "no":
    sys.exit(0)
accuracy = float(rate) - int(keys.get("data.fold", 0)) / 100
place = words[words.index("--log") + 1] if "--log" in words else words[words.index("--report") + 1] + "/log.jsonl"
with open(place, "a") as log:
    for epoch in range(2):
        log.write(json.dumps({"event": "step", "step": epoch + 1 + 4 * ("goal" in keys), "epoch": epoch, "loss": 1}) + "\\n")
        values = {"train_loss": 1, "val_loss": 1 - accuracy, "val_accuracy": accuracy if epoch else 0, "rising": ["accuracy"], "seconds": 1}
        if "goal" in keys:
            values["val_dice"] = float(rate) - epoch / 10
        log.write(json.dumps({"event": "epoch", "epoch": epoch, **values}) + "\\n")
if "goal" in keys:
    (folder / "best").symlink_to("checkpoint-000001")
    tensors = {"best.epoch": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}
    header = json.dumps({"__metadata__": {"goal": "max dice"}, **(tensors if keys["goal"] == "dice" else {})}).encode()
    (folder / "best/state.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8 * (keys["goal"] == "dice")))
print("done", *words)
"""


class SweepTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program").write_text(PROGRAM)
        (self.folder / "program").chmod(0o755)
        (self.folder / "net.yaml").write_text("model: 1\n")

    def sweep(self, *words, status=0, out="out", command=("./program", "net.yaml")):
        done = subprocess.run([ROOT / "tools/runs", "sweep", "--out", out, *words, *command], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr if status == 2 else done.stdout

    def wait_for(self, done):
        until = time.monotonic() + 60
        while not done():
            self.assertLess(time.monotonic(), until, "it did not come")
            time.sleep(0.02)

    def starts(self):
        file = self.folder / "starts"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def record(self, out="out"):
        return json.loads((self.folder / out / "sweep.json").read_text())

    def test_the_table_has_means_and_deviations_over_folds(self):
        said = self.sweep("--vary", "rate=0.5,0.75", "--folds", "3").splitlines()
        self.assertEqual(self.starts(), [f"rate={rate},fold={fold}" for rate in ("0.5", "0.75") for fold in range(3)])
        self.assertIn("  accuracy 0.48  loss 0.52  ", said[5])
        self.assertEqual(said[-3].split(), ["rate", "trials", "accuracy", "loss", "seconds", "in", "all"])
        self.assertEqual([line.split()[:-1] for line in said[-2:]], [["0.75", "3", "of", "3", "0.74", "±", "0.01", "0.26", "±", "0.01"],
                                                                   ["0.5", "3", "of", "3", "0.49", "±", "0.01", "0.51", "±", "0.01"]])
        record = self.record()
        self.assertEqual((record["metric"], record["rises"], len(record["trials"])), ("accuracy", True, 6))
        self.assertEqual(record["table"][0]["settings"], {"rate": "0.75"})
        self.assertAlmostEqual(record["table"][0]["deviation"]["accuracy"], 0.01)
        self.assertIn("data.folds=3", record["command"])

    def test_the_loss_is_to_fall(self):
        self.sweep("--vary", "rate=0.5,0.75,0.25", "--metric", "loss")
        self.assertEqual([row["settings"]["rate"] for row in self.record()["table"]], ["0.75", "0.5", "0.25"])
        self.assertIsNone(self.record()["table"][0]["deviation"]["loss"])  # one trial has none
        self.assertIn("--metric mae is no figure of these trials; they have accuracy, loss",
                      self.sweep("--vary", "rate=0.5,0.75,0.25", "--metric", "mae", status=2))

    def test_a_goal_selects_the_best_epoch_and_the_order(self):
        said = self.sweep("--vary", "rate=0.5,0.75", command=("./program", "net.yaml", "--set", "goal=dice"))
        self.assertIn("sorted by dice", said)
        record = self.record()
        self.assertEqual([(trial["epoch"], trial["figures"]["dice"], trial["figures"]["accuracy"]) for trial in record["trials"]], [(1, 0.5, 0), (1, 0.75, 0)])
        self.assertEqual([row["settings"]["rate"] for row in record["table"]], ["0.75", "0.5"])
        self.assertTrue(record["rises"])

    def test_an_unknown_best_epoch_is_a_note(self):
        said = self.sweep("--vary", "rate=0.5", out="other", command=("./program", "net.yaml", "--set", "goal=unknown"))
        self.assertRegex(said, r"(?m)^rate=0.5: 'other/rate=0.5/best' does not name an epoch of the log, so the figures of the best epoch are not known$")
        self.assertEqual(self.record("other")["trials"][0]["figures"], {})

    def test_a_wrong_metric_repeats_no_trial(self):
        for started in ["rate=0.5"], []:
            self.assertIn("--metric dice is no figure of these trials; they have accuracy, loss; name one of them",
                          self.sweep("--vary", "rate=0.5,0.25", "--metric", "dice", status=2))
            self.assertEqual(self.starts(), started)
        self.sweep("--vary", "rate=0.5,0.25", "--metric", "loss")
        self.assertEqual(self.starts(), ["rate=0.25"])

    def test_a_trial_without_a_log_has_failed(self):
        command = ("./program", "net.yaml", "--set", "logs=no")
        for _ in range(2):
            said = self.sweep("--seeds", "2", command=command, status=1)
            self.assertIn("seed=1 failed with status 0: 'out/seed=1/log.jsonl' cannot be read: No such file or directory", said)
            self.assertEqual(len(self.starts()), 2)

    def test_trials_of_other_keys_are_not_mixed(self):
        self.sweep("--vary", "a.rate=bad", status=1)
        self.sweep("--vary", "b.rate=bad,0.5", status=1)  # the folder of a trial that failed at once has no figures
        self.assertEqual(self.starts(), ["rate=bad", "rate=bad", "rate=0.5"])
        self.assertIn("'out/rate=0.5' is of a trial with other settings: b.rate=0.5; name another folder", self.sweep("--vary", "a.rate=0.5", status=2))
        record = self.record()
        del record["trials"][-1]  # as after a kill
        (self.folder / "out/sweep.json").write_text(json.dumps(record))
        self.assertIn("'out/rate=0.5' is of a trial with other settings: b.rate=0.5; name another folder", self.sweep("--vary", "a.rate=0.5", status=2))
        (self.folder / "out/sweep.json").unlink()
        self.assertIn("'out/rate=0.5' is of a run that no call for this sweep has started", self.sweep("--vary", "b.rate=0.5", status=2))
        self.assertEqual(self.starts(), [])

    def test_finished_trials_are_not_repeated_and_failed_ones_are(self):
        said = self.sweep("--vary", "rate=bad,0.5", status=1)
        self.assertEqual(self.starts(), ["rate=bad", "rate=0.5"])
        self.assertEqual(said.splitlines()[-1], "rate=bad failed with status 1: the loss is infinite; lower the rate")
        self.assertNotIn("sorted by", self.sweep("--vary", "rate=bad", status=1))  # there is nothing to sort
        self.starts()
        self.sweep("--vary", "rate=bad,0.5,0.25", status=1)
        self.assertEqual(self.starts(), ["rate=bad", "rate=0.25"])
        self.assertEqual(len(self.record()["trials"]), 3)
        self.assertRegex(self.sweep("--vary", "rate=0.5,0.25"), r"(?m)^  accuracy 0\.5  loss 0\.5  \S+ s, in an earlier call$")
        self.assertEqual(self.starts(), [])

    def test_trials_of_other_commands_are_not_mixed(self):
        self.sweep("--seeds", "2")
        self.starts()
        self.assertIn("their command was another: ./program net.yaml; name another folder in --out",
                      self.sweep("--seeds", "2", command=("./program", "net.yaml", "--set", "a=1"), status=2))
        (self.folder / "net.yaml").write_text("model: 2\n")
        self.assertIn("because net.yaml has changed since", self.sweep("--seeds", "2", status=2))
        self.assertEqual(self.starts(), [])
        (self.folder / "other").mkdir()
        (self.folder / "other/sweep.json").write_text("{}")
        self.assertIn("'other/sweep.json' is no record of a sweep", self.sweep("--seeds", "2", out="other", status=2))

    def test_a_signal_ends_the_sweep_and_the_next_call_resumes_the_trial(self):
        (self.folder / "wait").touch()
        command = [ROOT / "tools/runs", "sweep", "--out", "out", "--seeds", "2", "./program", "net.yaml"]
        sweep = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.wait_for(lambda: (self.folder / "waits").exists())
        self.assertIn("another sweep runs in 'out'", self.sweep("--seeds", "2", status=2))
        sweep.send_signal(signal.SIGINT)
        said = sweep.communicate(timeout=60)[0]
        self.assertEqual(sweep.returncode, 130, said)
        self.assertEqual(said.splitlines()[-1], "SIGINT: 2 of 2 trials are left; the same command continues")
        (self.folder / "wait").unlink()
        self.sweep("--seeds", "2")
        self.assertEqual(self.starts(), ["seed=1", "seed=1 resumed", "seed=2"])

    def test_a_program_dies_with_the_sweep(self):
        (self.folder / "wait").touch()
        sweep = subprocess.Popen([ROOT / "tools/runs", "sweep", "--out", "out", "--seeds", "2", "./program", "net.yaml"], cwd=self.folder, stdout=subprocess.DEVNULL)
        self.wait_for(lambda: (self.folder / "waits").exists())
        (program,) = pathlib.Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
        sweep.kill()
        sweep.wait()
        self.wait_for(lambda: not pathlib.Path(f"/proc/{program}").exists() or "zombie" in pathlib.Path(f"/proc/{program}/status").read_text())

        (self.folder / "net.yaml").write_text("model: 2\n")  # the trial that was killed would be resumed with another model
        self.assertIn("because net.yaml has changed since", self.sweep("--seeds", "2", status=2))

    def test_a_report_of_each_trial(self):
        self.sweep("--seeds", "2", "--report")
        self.assertTrue((self.folder / "out/seed=1/log.jsonl").exists())
        self.assertIn("--report out/seed=1", (self.folder / "out/seed=1/output.txt").read_text())

    def test_what_is_wrong(self):
        for says, *words in (("there is one trial; give --vary, --folds or --seeds", ),
                             ("--vary 'rate' is not KEY=VALUE,VALUE", "--vary", "rate"),
                             ("--vary 'rate=1,,2' has an empty value", "--vary", "rate=1,,2"),
                             ("--vary 'rate=1,1' has a value twice: 1 and 1", "--vary", "rate=1,1"),
                             ("has a value twice: 0.1 and 1e-1", "--vary", "rate=0.1,1e-1"),
                             ("has a value twice: {a: 0.1} and {a: .10}", "--vary", "rate={a: 0.1},{a: .10}"),
                             ("has a quote that is not closed", "--vary", "rate='1,2"),
                             ("lacks a ] at its end", "--vary", "rate=[1,2"),
                             ("has a } that closes nothing", "--vary", "rate=[1},2"),
                             ("--vary names a.rate before a, which would replace it", "--vary", "a.rate=1", "--vary", "a={b: 1}"),
                             ("--folds and --seeds are at most 10,000", "--seeds", "9" * 12),
                             ("--vary names rate twice", "--vary", "rate=1", "--vary", "rate=2"),
                             ("--vary names output.dir, but each trial has a folder of its own", "--vary", "output.dir=a,b"),
                             ("--vary names data.fold, but --folds and --seeds give its values", "--folds", "2", "--vary", "data.fold=1,2"),
                             ("argument --folds: '1' is not a whole number from 2 on", "--folds", "1")):
            self.assertIn(says, self.sweep(*words, status=2))
        for says, *words in (("--log cannot be one for all trials", "--log=x"),
                             ("with --check the program does not train", "--check"),
                             ("--set data.folds in the command has no effect", "--set", "data.folds=3"),
                             ("--set data.fold in the command has no effect", "--set=data.fold=1"),
                             ("--set output.dir in the command has no effect", "--set", "output.dir=x"),
                             ("--set a.b in the command has no effect, because the sweep sets a for each trial", "--set", "a.b=1")):
            self.assertIn(says, self.sweep("--folds", "2", "--vary", "a={b: 1}", command=("./program", *words), status=2))
        self.assertIn("'none' is not a program that can be started", self.sweep("--seeds", "2", command=("none",), status=2))
        self.assertIn("no program was named", self.sweep("--seeds", "2", command=(), status=2))
        self.assertEqual(self.starts(), [])
        self.assertFalse((self.folder / "out").exists())

    def test_values_may_be_sections_and_names_differ(self):
        trials = make_trials(["a.optimizer={name: sgd, rate: 1},{name: adam, rate: 1}", "path=x/y,x?y", "b.rate=[1,2]", "c.rate='1,2'"], None, None)
        self.assertEqual([list(trial.settings.values()) for trial in trials[:2]],
                         [["{name: sgd, rate: 1}", "x/y", "[1,2]", "'1,2'"], ["{name: sgd, rate: 1}", "x?y", "[1,2]", "'1,2'"]])
        self.assertEqual(list_of("", "Men's,Women's"), ["Men's", "Women's"])
        self.assertEqual(list_of("", "'it''s, a',\"b\\\",c\",[\"],\", ']']"), ["'it''s, a'", "\"b\\\",c\"", "[\"],\", ']']"])
        self.assertEqual(list_of("", "photos-1,photos-01"), ["photos-1", "photos-01"])
        names = [trial.name for trial in trials]
        self.assertEqual(len(set(names)), 4)
        self.assertTrue(all("/" not in name and "b.rate=" in name for name in names), names)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
