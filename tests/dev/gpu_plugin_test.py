#!/usr/bin/env python3
"""Tests dev/gpu_check with a plugin that does not open: another one is compiled, or PyTorch is timed alone.
Scripts replace nvcc, g++ and nvidia-smi, and a backend that does not exist replaces the plugin that does
not open.

usage: gpu_plugin_test.py ROOT BUILD
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

ROOT, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "dev/gpu_parts"))

import plugin  # noqa: E402
from stage import Done, Stage  # noqa: E402

loader = importlib.machinery.SourceFileLoader("rehearse", str(ROOT / "dev/gpu_parts/rehearse"))
rehearse = importlib.util.module_from_spec(importlib.util.spec_from_loader("rehearse", loader))
loader.exec_module(rehearse)

NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *compute_cap*) echo 9.0 ;;
  *) echo "NVIDIA H100, 580.1, 81559" ;;
esac
"""
# Records the arguments of a call, and makes the output file.
COMPILER = """#!/bin/sh
echo "$0" "$@" >> "$CALLS"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then echo made > "$2"; fi
  shift
done
"""
SAYS_NO = "the backend 'cuda' cannot be opened: libcublasLt.so.13 is missing"


class PluginTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="gpu-plugin-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.carried, self.calls = self.folder / "carried", self.folder / "calls"
        for name in ("carried/build/core", "carried/sdk", "carried/lib", "bin", "toolkit/bin", "toolkit/lib64", "logs", "data"):
            (self.folder / name).mkdir(parents=True)
        (self.carried / "build/core/plexaura_cuda.so").write_text("carried")
        (self.folder / "toolkit/lib64/libcudart_static.a").touch()
        for name, text in (("bin/nvidia-smi", NVIDIA_SMI), ("toolkit/bin/nvcc", COMPILER), ("bin/g++", COMPILER)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "CUDA_PATH": str(self.folder / "toolkit"), "CALLS": str(self.calls)}
        patched = unittest.mock.patch.dict(os.environ, environment)
        patched.start()
        self.addCleanup(patched.stop)
        self.check = SimpleNamespace(machine=SimpleNamespace(library_folders=lambda: []), data=self.folder / "data", backend="cuda",
                                     program=lambda *_, **__: ["false"])
        self.stage = Stage("plugin", 60, self.folder / "logs", dict(os.environ))

    def settle(self, *answers, carried=True):
        """`answers` are the outputs of the program each time it tries to open the plugin; "" means that it
        opens."""
        with unittest.mock.patch.object(plugin, "why_closed", side_effect=answers):
            return plugin.settle(self.check, self.stage, self.carried if carried else None)

    def test_one_that_opens_stays(self):
        self.assertEqual(self.settle(""), plugin.Plugin(True, "as carried"))
        self.assertEqual(self.settle("", carried=False), plugin.Plugin(True, "as built here"))
        self.assertFalse(self.calls.exists())

    def test_without_a_gpu_nothing_is_compiled(self):
        found = self.settle("the backend 'cuda' needs NVIDIA's driver, and this machine has none")
        self.assertTrue(found.opens)
        self.assertIn("as carried, and the backend 'cuda' needs NVIDIA's driver", found.text)
        self.assertFalse(self.calls.exists())

    def test_another_one_is_compiled_from_the_sources(self):
        found = self.settle(SAYS_NO, "")
        self.assertTrue(found.opens)
        self.assertEqual(found.text, f"compiled on this machine, since the one that was carried does not open ({SAYS_NO})")
        self.assertEqual((self.carried / "build/core/plexaura_cuda.so").read_text(), "made\n")
        calls = self.calls.read_text().splitlines()
        kernels = [call for call in calls if "/nvcc " in call]
        self.assertEqual(len(kernels), len(list((ROOT / "backends/cuda/kernels").glob("*.cu"))))
        self.assertTrue(all("-arch=sm_90" in call for call in kernels))
        self.assertEqual(sorted(call.split("-c ")[1].split()[0].rsplit("/")[-1] for call in kernels if "--fmad=true" in call),
                         ["conv2d.cu", "matmul.cu"])
        compiled = [call.split("-c ")[1].split()[0] for call in calls if "-c " in call]
        # the machine has no libraries of NVIDIA
        self.assertIn(str(ROOT / "backends/cuda/vendor/no_libraries.cpp"), compiled)
        self.assertNotIn(str(ROOT / "backends/cuda/vendor/cudnn.cpp"), compiled)

    def test_the_sources_are_those_of_the_build(self):
        """Tests that all sources of the plugin in the build are compiled, except NCCL's."""
        cmake = (ROOT / "backends/cuda/CMakeLists.txt").read_text(encoding="utf-8")
        self.assertIn("plexaura_sources(sources . engine kernels offers plugin regions runtime)", cmake)
        self.assertIn('name MATCHES "^(conv2d|matmul)$"', cmake)
        names = {str(source.relative_to(ROOT / "backends/cuda")) for source in plugin.sources_of(self.carried / "sdk", True)}
        for name in ("cuda_backend.cpp", "kernels/kernels.cpp", "plugin/cuda_plugin.cpp", "runtime/cuda_runtime.cpp", "vendor/nvidia_libraries.cpp",
                     "vendor/cublaslt.cpp", "vendor/cudnn.cpp", "vendor/cudnn_descriptor.cpp", "vendor/no_nccl.cpp", "kernels/chains.cu"):
            self.assertIn(name, names)

    def test_where_none_can_be_compiled_the_results_say_so(self):
        (self.folder / "bin/g++").write_text("#!/bin/sh\necho wrong; exit 1\n")
        found = self.settle(SAYS_NO)
        self.assertFalse(found.opens)
        self.assertRegex(found.text, r"PyTorch is timed alone: .*libcublasLt.so.13 is missing.* sources do not compile, .*: wrong")
        (self.folder / "toolkit/bin/nvcc").unlink()
        with unittest.mock.patch.object(plugin, "compiler", return_value=None):
            self.assertIn("this machine has no nvcc", self.settle(SAYS_NO).text)
        self.assertEqual(self.settle(SAYS_NO, carried=False).text, f"none that opens: {SAYS_NO}")

    def test_without_a_plugin_that_opens_only_what_needs_none_is_run(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        done = subprocess.run([ROOT / "dev/gpu_check", "--stand-in", "none_such", "--build", BUILD, "--out", self.folder / "out", "--stage", "tests",
                               "--stage", "speed", "--stage", "probe"], capture_output=True, text=True, env=environment, timeout=600)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for name in ("tests", "speed"):
            rows = json.loads((self.folder / f"out/{name}.json").read_text())["rows"]
            self.assertEqual([row["name"] for row in rows], ["plugin"])
            self.assertIn("there is no backend 'none_such'", rows[0]["detail"])
        self.assertIn("The plugin: none that opens: ", (self.folder / "out/results.md").read_text())

    def test_a_program_that_cannot_open_it_says_why(self):
        self.stage.run = lambda *_, **__: Done(2, "a line\nmlp: no plugin\n", False, 0)
        self.assertEqual(plugin.why_closed(self.check, self.stage), "mlp: no plugin")
        self.stage.run = lambda *_, **__: Done(0, "trained\n", False, 0)
        self.assertEqual(plugin.why_closed(self.check, self.stage), "")

    def test_a_program_of_tests_that_fails_tells_its_first_error(self):
        output = "a.cpp:3: ERROR: no GPU\nb.cpp:4: ERROR: none\n[doctest] test cases:  5 | 3 passed | 2 failed\n[doctest] Status: FAILURE!\n"
        self.assertEqual(Done(1, output, False, 0).why(), "[doctest] test cases: 5 | 3 passed | 2 failed; a.cpp:3: ERROR: no GPU")
        self.assertEqual(Done(1, "one\ntwo\n", False, 0).why(), "two")

    def test_the_rehearsal_follows_the_page(self):
        commands = rehearse.plan()
        self.assertEqual(len(commands), 4)
        for command in commands:
            self.assertRegex(command, r"^dev/gpu_check --out \$OUT/\w+ --stage ")

    def test_the_rehearsal_finds_what_must_not_come_back(self):
        out = self.folder / "out"
        (out / "a/deep/deeper").mkdir(parents=True)
        rows = [{"name": "iris", "result": "FAILED", "detail": "status 2: the backend 'cuda' needs NVIDIA's driver"},
                {"name": "digits", "result": "FAILED", "detail": "status 1: there is no libfoo"}]
        (out / "a/results.json").write_text(json.dumps({"stages": {"tests": {"rows": rows}}}))
        (out / "a/deep/deeper/log").touch()
        faults, found = rehearse.faults_of(out)
        self.assertEqual(len(found), 2)
        self.assertEqual(faults, ["a/deep/deeper/log lies too deep", "digits: FAILED, status 1: there is no libfoo"])
        for number in range(8):
            (out / f"{number}").touch()
        with unittest.mock.patch.object(rehearse, "MOST_BYTES", -1):
            faults, _ = rehearse.faults_of(out)
        self.assertIn("10 files came back, and 8 may", faults)
        self.assertIn("7 has 0 MiB", faults)
        self.assertIn("no results came back", rehearse.faults_of(self.folder / "logs")[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
