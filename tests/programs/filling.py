"""Tests what a full disk does to the files of a run, to shards, and to a sweep. Each test fills a small file system of its own, which needs
root.
"""

import json
import re
import shlex
import shutil
import subprocess
import unittest

import support
from support import BUILD, SOURCE, ProgramTest

CAN_MOUNT = subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
FULL = r"cannot (?:write|create) '?(small/\S*?)'?: No space left on device; free space or name another (?:place|folder in output\.dir)"


@unittest.skipUnless(CAN_MOUNT, "a file system of its own needs root")
class Filling(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "small").mkdir()

    def fill(self, kilobytes, command, then):
        """Runs the command on a file system of this size at `small`, makes this larger, runs `then`, and copies all files to `kept`. Returns
        the exit status and the output of the command."""
        shutil.rmtree(self.folder / "kept", ignore_errors=True)
        first, second = (shlex.join(map(str, words)) for words in (command, then))
        script = f"""mount -t tmpfs -o size={kilobytes}k none small || exit 99
                     {first} > said 2>&1; echo $? > status
                     mount -o remount,size=64m small && {second} && cp -r small kept"""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script], cwd=self.folder, env=support.mpi_environment(), capture_output=True, text=True,
                              timeout=120)
        said = (self.folder / "said").read_text()
        self.assertEqual(done.returncode, 0, f"{said}\n{done.stdout}{done.stderr}")
        return int((self.folder / "status").read_text()), said

    def check_run(self, ranks, sizes, *settings):
        """A run that has ended on a full disk continues there, and ends like one that was not disturbed. Returns the files that did not fit."""
        words = self.command("mlp", *self.iris("training.epochs=8", "output.dir=small/run", *settings), "--tensorboard", "small/curves", "--report", "small/run")
        launcher = [SOURCE / "tools/run", "-n", ranks] if ranks > 1 else []
        undisturbed = self.iris("training.epochs=8", "output.dir=whole", *settings)
        subprocess.run([*map(str, launcher), *self.command("mlp", *undisturbed)], cwd=self.folder, env=support.mpi_environment(), check=True, capture_output=True)
        files = set()
        for kilobytes in sizes:
            with self.subTest(kilobytes=kilobytes):
                status, said = self.fill(kilobytes, [*launcher, *words], [*launcher, *words, "--resume"])
                found = re.findall(rf"(?m)^{FULL}$", said)
                self.assertEqual((status, len(found)), (2, 1), said)
                files.add(re.sub(r"tfevents.*", "tfevents", found[0].rpartition("/")[2]))
                self.assertEqual(self.weight_bytes("kept/run"), self.weight_bytes("whole"))
                steps = [line["step"] for line in self.log("kept/run/log.jsonl") if line["event"] == "step"]
                self.assertEqual(sorted(set(steps)), list(range(1, 121)))
                self.assertFalse([path for path in (self.folder / "kept").rglob("*unfinished*")])
        return files

    def test_a_run_continues_when_there_is_space_again(self):
        files = self.check_run(1, (4, 8, 16, 24, 48, 64, 76, 100, 132))
        self.assertLessEqual({"events.out.tfevents", ".lock", "weights.safetensors", "state.safetensors", "report.json"}, files)

    def test_two_ranks_continue_when_there_is_space_again(self):
        if not support.HAS_MPI:
            self.skipTest("this build has no MPI")
        self.check_run(2, (24, 76, 132))

    def test_shards(self):
        """A full disk leaves no index of the training samples. The same command, repeated with more space, packs all samples."""
        support.draw_images(self.folder / "images")
        self.write("net.yaml", "data: {format: image_folder, path: images, image_size: 16}\n")
        pack = lambda out: [BUILD / "tools/pack", "net.yaml", out]
        subprocess.run(pack("whole"), cwd=self.folder, check=True, capture_output=True)
        whole = {path.name: path.read_bytes() for path in (self.folder / "whole").iterdir()}
        total = sum(map(len, whole.values())) // 1024
        for kilobytes in (4, total // 2, total):
            with self.subTest(kilobytes=kilobytes):
                then = ["bash", "-c", f'! test -e small/shards/train.index && {shlex.join(map(str, pack("small/shards")))}']
                status, said = self.fill(kilobytes, pack("small/shards"), then)
                self.assertEqual(status, 2, said)
                self.assertRegex(said, rf"\Apack: {FULL}\n\Z")
                self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "kept/shards").iterdir()}, whole)

    def test_tools_that_write_one_file(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "model.hidden=[100, 100]", "output.dir=run"), "--log", "log.jsonl")
        for words, file in ((["weights", "convert", "run", "small/out.safetensors"], "out.safetensors"), (["runs", "draw", "small/out.html", "log.jsonl"], "out.html")):
            command = [SOURCE / "tools" / words[0], *words[1:]]
            status, said = self.fill(4, command, command)
            self.assertEqual(status, 2, said)
            self.assertRegex(said, rf"\A{words[0]}: 'small/{file}' cannot be written: No space left on device; [^\n]*\n\Z")
            self.assertEqual([path.name for path in (self.folder / "kept").iterdir()], [file])

    def test_a_sweep(self):
        """Trials that do not fit are named, and the same command trains them when there is space."""
        words = [SOURCE / "tools/runs", "sweep", "--out", "small", "--seeds", 4, *self.command("mlp", *self.iris("training.epochs=1"))]
        status, said = self.fill(96, words, words)
        self.assertIn(status, (1, 2), said)
        self.assertRegex(said, r"(?m)^seed=\d failed with status 2: cannot (write|create) \S+ No space left|^runs: 'small\S*' cannot be (written|used): No space left")
        trials = json.loads((self.folder / "kept/sweep.json").read_text())["trials"]
        self.assertEqual([trial["status"] for trial in trials], [0] * 4)


if __name__ == "__main__":
    support.main()
