"""Tests standard streams that are full, closed or left by their reader, and names with commands of terminals.
"""

import json
import subprocess

import support
from support import ProgramTest


class Streams(ProgramTest):
    def shell(self, redirections, program, *arguments):
        """Runs a program with redirections of the shell. Returns its status and what reached the open pipes.
        """
        command = ["bash", "-c", f'exec "$@" {redirections}', "-", *self.command(program, *arguments)]
        return subprocess.run(command, cwd=self.folder, env=support.environment(), capture_output=True, text=True, timeout=60)

    def test_an_error_that_nobody_can_read(self):
        for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-"):
            self.assertEqual(self.shell(redirection, "mlp", "nope.yaml").returncode, 2, redirection)
        graph = ["bash", "-c", 'exec "$@" 2>&-', "-", support.BUILD / "tools/graph", "nope.yaml"]
        self.assertEqual(subprocess.run(graph, cwd=self.folder, timeout=60).returncode, 2)

    def test_help_that_cannot_be_written(self):
        for redirection, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            for option in ("--help", "--version"):
                done = self.shell(redirection, "mlp", option)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, rf"\Acannot write to the standard output: {reason}; [^\n]*\n\Z")

    def test_results_that_cannot_be_written(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        for options in (["--predict", support.SOURCE / "models/iris.csv"], ["--evaluate"], ["--dry-run"]):
            done = self.shell(">/dev/full", "mlp", *self.iris("output.dir=run"), *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertRegex(done.stderr, r"\Acannot write to the standard output: No space left on device; ")

    def test_a_run_whose_output_is_full_or_closed_goes_on(self):
        for number, redirection in enumerate((">/dev/full", ">&-", ">&- 2>&-", "<&- >&- 2>&-")):
            log = f"log{number}"
            done = self.shell(redirection, "mlp", *self.iris("training.epochs=2", f"output.dir=run{number}"), "--log", log)
            self.assertEqual(done.returncode, 0, done.stderr)
            lost = "the output of the run could not be written completely: No space left on device; --log FILE keeps its figures\n"
            self.assertEqual(done.stderr, lost if redirection == ">/dev/full" else "")
            self.assertEqual(len(self.log(log)), 32)  # only lines of the log: no stream writes into it
            self.assertEqual(self.checkpoint(f"run{number}").name, "checkpoint-000030")

    def test_a_run_whose_reader_leaves_goes_on(self):
        command = self.command("mlp", *self.iris("training.epochs=300", "output.dir=run"), "--log", "log")
        done = subprocess.run(["bash", "-c", '"$@" | head -1; exit ${PIPESTATUS[0]}', "-", *command], cwd=self.folder,
                              env=support.environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr, len(done.stdout.splitlines())), (0, "", 1))
        self.assertEqual(self.checkpoint("run").name, "checkpoint-004500")
        self.assertEqual(len(self.log("log")), 300 * 16)


class Names(ProgramTest):
    """Whatever a name contains, it is printed on one line without commands of terminals."""

    NAME = "\x1b]0;hello\x07\nred\x1b[31m"
    SHOWN = r"\x1b]0;hello\x07\x0ared\x1b[31m"

    def test_in_an_error(self):
        error = self.run_one("mlp", f"{self.NAME}.yaml", status=2).err
        self.assertEqual(error, f"cannot read '{self.SHOWN}.yaml': No such file or directory; check the path and its permissions\n")

    def test_in_what_a_run_says(self):
        said = self.run_one("mlp", *self.iris("training.epochs=1"), "--set", f"output.dir={json.dumps(self.NAME)}").out
        self.assertNotIn("\x1b", said)
        self.assertRegex(said, rf"(?m)^  checkpoint +{support.re.escape(self.SHOWN)}$")

    def test_in_a_damaged_file(self):
        """The library that parses the header quotes it in its error."""
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        path = self.checkpoint("run") / "weights.safetensors"
        for damage in (b"\xe6c1.bias", b"\x1bc1.bias"):
            path.write_bytes(path.read_bytes().replace(b"fc1.bias", damage, 1))
            done = subprocess.run(self.command("mlp", *self.iris("output.dir=run"), "--evaluate", "--weights", path), cwd=self.folder, env=support.environment(), capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rb"\A'[ -~]+the header is not valid JSON [ -~]+\n\Z")
            path.write_bytes(path.read_bytes().replace(damage, b"fc1.bias", 1))

    def test_a_zero_ends_no_name(self):
        error = self.run_one("mlp", *self.iris(r'output.dir="run\0of mine"'), status=2).err
        self.assertRegex(error, r"output.dir=.*: the text contains the character 0, which no name and no path can contain; remove it\n\Z")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    support.main()
