"""Tests the training on rows that a command prints."""

import support
from support import SOURCE, ProgramTest

# Prints the rows of Iris again and again; `head` ends the stream. An argument is the number of rows.
ROWS = f"""
i=0
while [ $i -lt 12 ]; do tail -n +2 {SOURCE / "models/iris.csv"}; i=$((i + 1)); done | head -n $1 > rows.$$
head -n 1 {SOURCE / "models/iris.csv"}
cat rows.$$
rm rows.$$
"""


class Streaming(ProgramTest):
    def stream(self, command, *settings):
        self.write("rows.sh", ROWS)
        return self.iris(f"data.stream={command}", "data.steps_per_epoch=20", "training.epochs=4", *settings)

    def test_a_stream_ends_the_run_and_is_resumed_bitwise(self):
        for ranks, command in ((1, "sh rows.sh 500"), (2, "sh rows.sh $((300 - 50 * {rank}))")):
            with self.subTest(ranks):
                names = [f"{name}{ranks}" for name in ("whole", "parts")]
                arguments = lambda name: self.stream(command, "data.shuffle_buffer=40", f"output.dir={name}")
                whole = self.run_ranks(ranks, "mlp", *arguments(names[0]))
                # 62 steps of 8 rows; or 250 rows of rank 1, in parts of 4.
                self.assertIn("a stream has no samples for another step", whole.out)
                self.assertEqual(self.checkpoint(names[0]).name, "checkpoint-000062")
                self.assertRegex(whole.out, "20 steps in an epoch on the rows of the command")
                for i, stop in enumerate((7, 40, 62)):
                    self.run_ranks(ranks, "mlp", *arguments(names[1]), "--steps", stop, *(["--resume"] if i else []))
                self.run_ranks(ranks, "mlp", *arguments(names[1]), "--resume")
                for file in ("weights.safetensors", "state.safetensors"):
                    self.assertEqual(*((self.checkpoint(name) / file).read_bytes() for name in names), file)

    def test_a_command_that_fails_ends_all_ranks_and_is_no_end(self):
        failed = self.run_ranks(2, "mlp", *self.stream("sh rows.sh 300; exit {rank}", "output.dir=run"), status=2)
        self.assertIn("was to print rows, and has ended with status 1 after", failed.out + failed.err)
        killed = self.run_one("mlp", *self.stream("sh rows.sh 300; kill -9 $$", "output.dir=killed"), status=2)
        self.assertIn("was ended by signal 9", killed.err)
        empty = self.run_one("mlp", *self.stream("true", "output.dir="), status=2)
        self.assertIn("the stream of rank 0 has too few samples for one step of 8", empty.err)

    def test_an_endless_command_ends_with_the_run(self):
        self.write("endless.sh", f"echo $$ > process; while cat {SOURCE / 'models/iris.csv'} | tail -n +2; do :; done\n")
        done = self.run_one("mlp", *self.stream("head -n 1 " + str(SOURCE / "models/iris.csv") + "; sh endless.sh", "output.dir="), "--steps", "30")
        self.assertNotIn("ended early", done.out)
        # The process may still wait for its new parent to take note of its end.
        stat = support.pathlib.Path("/proc", (self.folder / "process").read_text().strip(), "stat")
        self.assertTrue(not stat.exists() or ") Z" in stat.read_text())

    def test_what_reads_samples_again_or_elsewhere_refuses_a_stream(self):
        arguments = self.stream("sh rows.sh 300", "output.dir=")
        for option in ("--check", "--find-lr"):
            self.assertIn(f"{option} reads the same samples again", self.run_one("mlp", *arguments, option, status=2).err)
        self.assertIn("because data.stream is given", self.run_one("mlp", *arguments, "--overfit", "8", status=2).err)
        serving = (*self.settings("distributed.strategy=async-server"), "--serve", "127.0.0.1:0")
        self.assertIn("with --serve the clients read the samples", self.run_one("mlp", *arguments, *serving, status=2).err)
        for strategy, reason in (("scatter-gather", "rank 0 alone reads a table"), ("async-server", "a rank does not read the samples")):
            failed = self.run_ranks(3, "mlp", *arguments, *self.settings(f"distributed.strategy={strategy}"), status=2)
            self.assertIn(reason, failed.out + failed.err)


if __name__ == "__main__":
    support.main()
