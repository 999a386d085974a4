"""Tests tools/scaling with runs of the programs: the profile of a step, and measurements."""

import csv
import json
import subprocess
import unittest

import support
from support import BUILD, SOURCE, ProgramTest


@unittest.skipUnless(support.HAS_MPI, "built without MPI")
class Scaling(ProgramTest):
    def scaling(self, *arguments, status=0):
        done = subprocess.run([SOURCE / "tools/scaling", *map(str, arguments)], cwd=self.folder, env=support.mpi_environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_a_profile_is_recorded_and_predicted_from(self):
        """The net has batch norm, whose running statistics are exchanged, too. The section `distributed` of
        the file must not matter."""
        text = support.CNN.replace("- {type: relu}", "- {type: batch_norm}\n    - {type: relu}", 1)
        text += "distributed: {strategy: local, every: 4, algorithm: tree}\n"
        self.cnn()
        model = self.write("net.yaml", text)
        said = self.scaling("--record", "net.json", "--steps", 8, BUILD / "models/convnet", model)
        profile = json.loads((self.folder / "net.json").read_text())
        sizes = [size for size, _ in profile["gradients"]]
        ready = [seconds for _, seconds in profile["gradients"]]
        self.assertTrue(said.startswith("recording with distributed.strategy=allreduce, distributed.compression=none, "), said)
        self.assertIn("output.dir=; what the file says in distributed does not count\n", said)
        self.assertIn("5 samples on each of 2 ranks", said)
        self.assertEqual(profile["batch"], 5)
        self.assertEqual(len(sizes), 8)  # weights and biases, the last layer's first
        self.assertLess(sizes[0], sizes[3])
        parameters = 4 * 9 + 4 + 4 + 4 + (4 * 4 * 4 + 1) * 16 + (16 + 1) * 3
        self.assertLessEqual(4 * parameters, sum(sizes))  # includes padding
        self.assertLess(sum(sizes), 2 * 4 * parameters)
        self.assertGreaterEqual(profile["weight_bytes"], sum(sizes) + 2 * 4 * 4)
        self.assertEqual(ready, sorted(ready))
        self.assertTrue(0 < ready[0] < ready[-1] <= profile["backward"])
        self.assertTrue(profile["forward"] > 0 and profile["update"] > 0)
        self.write("links.json", json.dumps({"ranks_per_host": 2, "inside": {"latency": 1e-6, "bandwidth": 1e9},
                                             "between": {"latency": 1e-4, "bandwidth": 1e8}}))
        self.assertIn("allreduce/hierarchical", self.scaling("--predict", "net.json", "--links", "links.json", "--ranks", "2,64"))

    def test_runs_are_measured(self):
        self.scaling("--measure", "out", "--ranks", "1,2", "--strategies", "allreduce,async-server", "--batch", 4, BUILD / "models/mlp",
                     *self.iris("training.epochs=3"))
        with (self.folder / "out/scaling.csv").open() as file:
            rows = {row["strategy"]: row for row in csv.DictReader(file)}
        self.assertEqual({name: row["ranks"] for name, row in rows.items()}, {"one rank": "1", "allreduce": "2", "async-server": "2"})
        for row in rows.values():
            self.assertGreater(float(row["samples_per_second"]), 0)
            self.assertGreater(float(row["accuracy"]), 0.3)
        self.assertTrue(0 < float(rows["allreduce"]["exchange"]) < 1)
        self.assertEqual(rows["allreduce"]["overlap"], "0.0")  # the CPU exchanges after the backward pass
        self.assertTrue((self.folder / "out/speed_up.svg").exists())

    def test_what_is_wrong(self):
        mlp = BUILD / "models/mlp"
        wrong = [
            (("--record", "x.json"), "--record needs a program to run"),
            (("--record", "x.json", "-n", 1, mlp, *self.iris()), "--record needs -n of 2 or more"),
            (("--record", "/proc/x.json", mlp, *self.iris()), "cannot write '/proc/x.json'"),
            (("--measure", "out"), "--measure needs a program to run"),
            (("--record", "x.json", mlp, *self.iris("distributed.overlap=on")), "--set distributed.overlap=on would have no effect"),
            (("--measure", "out", "--ranks", 2, mlp, "none.yaml"),
             "the run of allreduce with 2 ranks ended with exit status 2; --measure has set output.dir=, distributed.strategy=allreduce, distributed.algorithm=auto there"),
            (("--measure", "out", "--ranks", 2, mlp, *self.iris(), "--steps", 2), "the run made no whole epoch"),
            (("--record", "x.json", mlp, "none.yaml"), "the run that was to be recorded ended with exit status 2"),
        ]
        for arguments, expected in wrong:
            self.assertIn(f"scaling: {expected}", self.scaling(*arguments, status=2))
        self.assertFalse((self.folder / "x.json").exists())


if __name__ == "__main__":
    support.main()
