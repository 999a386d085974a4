"""Tests tools/runs sweep and prune with the programs: folds, a goal, a signal that ends a sweep of several ranks, and old checkpoints."""

import json
import signal
import subprocess

import support
from support import SOURCE, ProgramTest

SWEEP = (SOURCE / "tools/runs", "sweep", "--out", "swept")


class Sweeping(ProgramTest):
    def sweep(self, *words, status=0):
        done = subprocess.run([*map(str, (*SWEEP, *words))], cwd=self.folder, env=support.environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def trials(self):
        return {trial["name"]: trial for trial in json.loads((self.folder / "swept/sweep.json").read_text())["trials"]}

    def test_folds_are_those_of_runs_one_by_one(self):
        words = self.iris("training.epochs=3")
        said = self.sweep("--folds", 5, "--seeds", 2, *self.command("mlp", *words))
        self.assertRegex(said.splitlines()[-1], r"^10 of 10  +0\.\d+ ± 0\.\d+  +0\.\d+ ± 0\.\d+  ")
        for fold in (0, 4):
            self.run_one("mlp", *words, *self.settings("data.folds=5", f"data.fold={fold}", "training.seed=2", "output.dir="), "--log", f"log{fold}")
            epoch = self.log(f"log{fold}")[-1]
            figures = self.trials()[f"fold={fold},seed=2"]["figures"]
            self.assertEqual(figures, {"accuracy": epoch["val_accuracy"], "loss": epoch["val_loss"]})

    def test_folds_of_images(self):
        """Weights of one fold are not evaluated on another, whose images they were trained on."""
        support.draw_images(self.folder / "images", train=4)
        net = self.write("net.yaml", """
model: {name: convnet, layers: [{type: conv, channels: 2, kernel: 3}, {type: relu}, {type: flatten}, {type: linear}]}
data: {format: image_folder, path: images/train, image_size: 16}
training: {batch_size: 4, epochs: 1, optimizer: {name: sgd, learning_rate: 0.01}}
""")
        self.sweep("--folds", 2, *self.command("convnet", net))
        for fold in (0, 1):
            words = [net, *self.settings("data.folds=2", f"data.fold={fold}", "output.dir=swept/fold=0"), "--evaluate"]
            said = self.run_one("convnet", *words, status=2 * fold)
            self.assertIn("was made with another table, text or split", said.err) if fold else self.assertIn("6 samples", said.out)

    def test_figures_of_the_best_epoch_and_a_trial_that_diverges(self):
        words = self.iris("training.epochs=40", "training.goal={metric: loss, patience: 2}")
        said = self.sweep("--vary", "training.optimizer.learning_rate=0.5,1e30", *self.command("mlp", *words), status=1)
        self.assertRegex(said, r"(?m)^learning_rate=1e\+?30 failed with status 2: the loss of step \d+ is (nan|infinite): training diverged")
        self.assertRegex(said, "(?m)^validation, sorted by loss; ")
        (trial,) = [trial for trial in self.trials().values() if trial["status"] == 0]
        losses = [line["val_loss"] for line in self.log("swept/learning_rate=0.5/log.jsonl") if line["event"] == "epoch"]
        self.assertEqual((trial["figures"]["loss"], trial["epoch"]), (min(losses), 1 + losses.index(min(losses))))
        self.assertLess(trial["epoch"], len(losses))

    def test_a_signal_ends_several_ranks_and_the_next_call_resumes_them(self):
        if not support.HAS_MPI:
            self.skipTest("this build has no MPI")
        command = [*SWEEP, "--seeds", 2, SOURCE / "tools/run", "-n", 2, *self.command("mlp", *self.iris("training.epochs=1000000"))]
        trial = self.folder / "swept/seed=1"
        for said in ("", "resumed from the newest checkpoint"):
            last = self.checkpoint("swept/seed=1") if said else None
            sweep = subprocess.Popen([*map(str, command)], cwd=self.folder, env=support.mpi_environment(), stdout=subprocess.PIPE, text=True)
            self.wait_for(lambda: any(path != last for path in trial.glob("checkpoint-[0-9]*")))
            sweep.send_signal(signal.SIGINT)
            out = sweep.communicate(timeout=120)[0]
            self.assertEqual((sweep.returncode, out.splitlines()[-1]), (130, "SIGINT: 2 of 2 trials are left; the same command continues"), out)
            self.assertIn(said, (trial / "output.txt").read_text())
            self.assertEqual(self.processes("training.seed=1"), [])

    def test_checkpoints_of_runs_that_have_ended_are_pruned(self):
        arguments = self.iris("output.dir=run", "training.epochs=2", "training.goal={metric: loss}")
        self.run_one("mlp", *arguments, "--log", "run/log.jsonl")
        endless = subprocess.Popen(self.command("mlp", *self.iris("output.dir=endless", "training.epochs=1000000")), cwd=self.folder, env=support.environment(),
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(endless.wait)
        self.addCleanup(endless.kill)
        self.wait_for(lambda: any(self.folder.glob("endless/checkpoint-[0-9]*")))
        done = subprocess.run([SOURCE / "tools/runs", "prune", "run", "--keep-last", "0", "--delete"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertRegex(done.stdout, r"run: checkpoint-000015, checkpoint-000030\nfreed .* in 'run'\n\Z|run: checkpoint-000030\nfreed ")
        self.assertEqual(self.checkpoints("run"), ["log.jsonl"])
        self.assertIn("no checkpoint in run yet; starting afresh", self.run_one("mlp", *arguments, "--resume").out)
        done = subprocess.run([SOURCE / "tools/runs", "prune", "endless", "--keep-last", "0"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertIn("endless: a run is under way, so it stays\n", done.stdout)


if __name__ == "__main__":
    support.main()
