#!/usr/bin/env python3
"""Tests how the tools report unknown arguments: one sentence and exit status 2, before they do anything.

usage: usage_test.py ROOT
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(sys.argv[1]).resolve()
TOOLS = {path.name: path for folder in ("tools", "dev") for path in (ROOT / folder).iterdir() if path.is_file() and path.read_bytes()[:2] == b"#!"}
# arguments that the tool checks first
TAKES_OTHER_ARGUMENTS = {"compare_ddp": ["--data", "."], "run": ["-n", "2"], "tcp_streams": ["127.0.0.1"]}
EMPTY_WORDS = {"run": ["-n", "2", ""], "quickstart": [""]}
SCALED = ["--predict", "examples/scaling/resnet50_gpu.json", "--links", "examples/scaling/hosts_of_8_gpus.json", "--ranks", "2"]


class UsageTest(unittest.TestCase):
    def ask(self, tool, *words, folder=ROOT, **options):
        return subprocess.run([TOOLS[tool], *words], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120,
                              **{"stdout": subprocess.PIPE, **options})

    def check(self, says, tool, *words, **options):
        done = self.ask(tool, *words, **options)
        with self.subTest(f"{tool} {words}"):
            self.assertEqual((done.returncode, done.stdout or ""), (2, ""), done.stderr)
            self.assertRegex(done.stderr, rf"\A{tool}: [^\n]*{says}[^\n]*\n\Z")

    def test_an_unknown_option(self):
        for tool in sorted(TOOLS.keys() - {"quickstart"}):  # quickstart passes options on
            self.check("", tool, *TAKES_OTHER_ARGUMENTS.get(tool, ()), "--nope")

    def test_an_empty_word(self):
        """An unset variable in a shell becomes an empty word."""
        for tool in sorted(TOOLS):
            self.check("", tool, *EMPTY_WORDS.get(tool, [""]))

    def test_a_program_that_is_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool, program in (("sweep", "bench"), ("compare_pytorch", "bench"), ("compare_pytorch_gradients", "dump_gradients"),
                                  ("compare_layers", "run_layers")):
                self.check(f"there is no '{folder}/dev/{program}'; build it first: cmake ", tool, "--build", folder)
            self.check(f"there is no '{folder}/models/convnet'; build it first: cmake ", "compare_ddp", "--build", folder, "--data", folder)
            self.check(f"'{folder}' has no README.md; ", "check_docs", folder)
            self.check(f"'{folder}/none' is not a folder; ", "check_arrows", f"{folder}/none")

    def test_mpirun_of_mpich(self):
        with tempfile.TemporaryDirectory() as folder:
            hydra = pathlib.Path(folder, "mpiexec.hydra")
            hydra.write_text("#!/bin/sh\n")
            hydra.chmod(0o755)
            pathlib.Path(folder, "mpirun").symlink_to(hydra)
            with unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                self.check("mpirun is that of MPICH, ", "run", "-n", "2", "true")

    def test_values_that_cannot_be(self):
        for words, says in ((["run", "-np", "2", "true"], r"argument -n: 'p' is not a number of ranks; write -n 2 \(-np is mpirun's word\)"),
                            (["run", "-n", "x", "true"], "'x' is not a number of ranks"),
                            (["test", "--preset"], "--preset needs a name; there are release"),
                            (["check_tidy", "--part", "9/8"], "--part 9/8: there are 8 parts"),
                            (["check_tidy", "--part"], "--part needs K/N"),
                            (["mutate", "--list", "--only", "0000000", "--room", "ops"], "there is no fault 0000000 in these rooms"),
                            (["mutate", "--list", "--count", "-3"], "--count, --per-source and --jobs must be 1 or more"),
                            (["sweep", "--seconds", "-1"], "--seconds must be from 0 to 3600"),
                            (["sweep", "--compile"], "--compile needs --against pytorch; add it"),
                            (["sweep", "--processor-time"], "--processor-time needs --against; without it nothing is timed"),
                            (["tcp_streams", "127.0.0.1", "--rounds", "0"], "--bytes, --rounds and --rate must be above 0")):
            self.check(says, *words)

    def test_an_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            for words in (["scaling", *SCALED], ["check_arrows"], ["mutate", "--list", "--room", "ops"], ["why", "--help"]):
                self.check("standard output.*No space left on device", *words, stdout=full)

    def test_help(self):
        for tool in ("check", "quickstart", "run", "runs", "scaling", "test", "weights", "why"):
            done = self.ask(tool, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), tool)
            self.assertIn(str(TOOLS[tool].relative_to(ROOT)), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
