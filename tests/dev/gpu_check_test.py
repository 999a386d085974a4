#!/usr/bin/env python3
"""Tests dev/gpu_check without a GPU: a script replaces nvidia-smi, and the CPU replaces the GPU, with tiny
problem sizes.

usage: gpu_check_test.py ROOT BUILD
"""

import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

ROOT, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "dev/gpu_parts"))

import packing  # noqa: E402
import report  # noqa: E402
import speed  # noqa: E402
import testing  # noqa: E402
from machine import UserError  # noqa: E402
from sizes import FULL, TINY  # noqa: E402
from stage import Row, Stage  # noqa: E402
from tests_of_build import gpu_tests, moved  # noqa: E402

loader = importlib.machinery.SourceFileLoader("gpu_check", str(ROOT / "dev/gpu_check"))
gpu_check = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
sys.modules["gpu_check"] = gpu_check  # its dataclasses look for their module there
loader.exec_module(gpu_check)

NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *-lms*) echo 700; echo 4000; exec sleep 600 ;;
  *memory.used*) echo 500 ;;
  *) echo "NVIDIA H200, 580.1, 143771" ;;
esac
"""
WITHOUT_MODULES = "#!/bin/sh\nexec python3 -S -E \"$@\"\n"
DESCRIBES_GPUS = (BUILD / "core/plexaura_described/plexaura_cuda.so").exists()
# The search path without a compute-sanitizer that is installed here.
PATH = ":".join(folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "compute-sanitizer").exists())
# A Python that has PyTorch, or None.
TORCH_PYTHON = next((python for python in (os.environ.get("PLEXAURA_TORCH_PYTHON"), sys.executable) if python and subprocess.run(
    [python, "-c", "import torch, torchvision"], capture_output=True).returncode == 0), None)


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="gpu-check-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.out = self.folder / "out"
        self.script("bin/nvidia-smi", NVIDIA_SMI)

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def check(self, *arguments, status=0, path=None, stand_in=True):
        command = [ROOT / "dev/gpu_check", *(["--stand-in", "cpu"] if stand_in else []), *arguments]
        environment = {**os.environ, "PATH": f"{path or self.folder / 'bin'}:{PATH}", "CUDA_PATH": str(self.folder / "no_toolkit"),
                       "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(self.folder / "cache")}
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, timeout=600)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status != 2 else done.stderr

    def stage(self, name, *arguments, **options):
        return self.check("--build", BUILD, "--out", self.out, "--stage", name, *arguments, **options)

    def rows(self, stage):
        found = json.loads((self.out / f"{stage}.json").read_text(encoding="utf-8"))
        return {row["name"]: row for row in found["rows"]}

    def test_tests_are_run_and_runs_are_compared(self):
        said = self.stage("tests", "--python", self.script("bare_python", WITHOUT_MODULES))
        rows = self.rows("tests")
        for name in ("check.sizes", "iris", "digits", "resnet18 follows the CPU", "resnet18 again float32", "resnet18 again bfloat16"):
            self.assertEqual(rows[name]["result"], "passed", said)
        self.assertIn("2 losses", rows["resnet18 follows the CPU"]["detail"])
        self.assertIn("equal bit for bit", rows["resnet18 again bfloat16"]["detail"])
        self.assertEqual(rows["gradients beside PyTorch's"]["result"], "skipped")
        self.assertIn("lacks torch, torchvision, safetensors", rows["gradients beside PyTorch's"]["detail"])
        self.assertEqual((rows["compute-sanitizer"]["result"], rows["compute-sanitizer"]["detail"]), ("skipped", "this machine has none"))

    def test_a_loss_that_strays_is_told_beside_what_the_cpu_strays_from_itself(self):
        check = gpu_check.Check(machine=None, sizes=TINY, backend="cpu", build=BUILD, data=self.folder)
        subprocess.run([BUILD / "tools/draw_shapes", self.folder / "shapes", "--classes", "6", "--train", "2", "--val", "2", "--size", "32"],
                       check=True, stdout=subprocess.DEVNULL)
        stage = Stage("tests", 600, self.folder, dict(os.environ))
        with unittest.mock.patch.object(testing, "MOST_DIFFERENCE", -1):
            testing.follow_the_cpu(stage, check)
        self.assertEqual(stage.rows[0].result, "FAILED")
        self.assertRegex(stage.rows[0].detail, r"differ by 0.* the CPU with one thread differs from itself with all by \d")
        for other in (dataclasses.replace(check, backend="none_such"), dataclasses.replace(check, sizes=dataclasses.replace(TINY, net="none_such"))):
            testing.follow_the_cpu(stage, other)
            testing.run_again(stage, other, "float32")
        details = [row.detail for row in stage.rows if row.result == "FAILED"][1:]
        self.assertEqual(len(details), 4)
        self.assertIn("there is no backend 'none_such'", details[0])
        self.assertRegex(details[1], "the first run did not end well: .*none_such")
        self.assertRegex(details[2], "the run on the CPU did not end well: .*none_such")

    def test_compute_sanitizer_is_believed(self):
        """Tests a compute-sanitizer that reports no error, and then one that does."""
        tool = "#!/bin/sh\nwhile [ \"$1\" != 99 ]; do shift; done; shift\n"
        self.script("bin/compute-sanitizer", tool + "\"$@\" > /dev/null && echo '========= ERROR SUMMARY: 0 errors'\n")
        self.stage("tests")
        self.assertEqual(self.rows("tests")["compute-sanitizer memcheck digits"]["result"], "passed")
        self.script("bin/compute-sanitizer", tool + "echo '========= ERROR SUMMARY: 3 errors'; exit 99\n")
        self.stage("tests", status=1)
        for name in ("memcheck digits", "racecheck digits", "memcheck resnet18"):
            row = self.rows("tests")[f"compute-sanitizer {name}"]
            self.assertEqual((row["result"], row["detail"]), ("FAILED", "status 99: ========= ERROR SUMMARY: 3 errors"))

    def test_times_are_told_with_memory_and_roofline(self):
        said = self.stage("speed", status=0 if DESCRIBES_GPUS else 1)
        rows = self.rows("speed")
        figures = rows["resnet18 bfloat16 2"]["figures"]
        self.assertGreater(figures["ms"], 0)
        self.assertAlmostEqual(figures["images_per_second"], 2000 / figures["ms"], delta=0.01 * figures["images_per_second"])
        self.assertEqual(figures["driver_mb"], 3500)
        self.assertGreater(figures["planned_mb"], 0)
        self.assertTrue(rows["resnet18 float32 2 inference"]["figures"]["inference"])
        self.assertIn("| resnet18 bfloat16 2 | ", said)
        self.assertRegex(said, r"\n- resnet18 bfloat16 2 without branches: \d+\.\d+ times the \d+\.\d+ ms of the default\n")
        if DESCRIBES_GPUS:
            self.assertAlmostEqual(figures["share_of_roofline"], figures["roofline_ms"] / figures["ms"])

    def test_a_step_is_timed_with_branches_and_without(self):
        check = gpu_check.Check(machine=None, sizes=FULL, backend="cuda", build=BUILD, data=self.folder)
        backends = {case.name(): check.backend_for(case) for case in FULL.cases}
        self.assertEqual(backends["resnet50 bfloat16 256"], "cuda")
        self.assertEqual(backends["resnet50 bfloat16 256 without branches"], "cuda:branches=0")
        self.assertEqual(backends["resnet50 tf32 256"], "cuda:tf32=1")
        self.assertEqual(len(backends), len(FULL.cases))
        rows = [{"name": f"step {branches}", "figures": {"model": "step", "precision": "bfloat16", "batch": 1, "inference": False,
                                                         "branches": branches, "ms": ms}} for branches, ms in ((False, 5.0), (True, 4.0))]
        self.assertEqual(report.timed({"speed": {"rows": rows}}, "step", "bfloat16", 1)["ms"], 4)
        self.assertEqual(report.branches_lines({"speed": {"rows": rows}}), ["- step False: 1.250 times the 4.000 ms of the default"])
        self.assertEqual(report.branches_lines({"speed": {"rows": rows[:1]}}), [])

    def test_a_case_that_fails_is_told_and_the_others_stay(self):
        self.script("bin/nvidia-smi", NVIDIA_SMI.replace("H200", "unheard-of"))
        said = self.stage("speed", "--only", "mlp")
        self.assertIn("--device knows no NVIDIA unheard-of", said)
        self.assertNotIn("share_of_roofline", self.rows("speed")["mnist_mlp float32 4"]["figures"])
        # bench refuses this batch size.
        sizes = dataclasses.replace(TINY, cases=[dataclasses.replace(TINY.cases[0], batch=0), TINY.cases[0]])
        stage, machine = Stage("speed", 60, self.folder, dict(os.environ)), SimpleNamespace(described=lambda: None, gpu="some GPU")
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder / 'bin'}:{PATH}"):
            speed.run_speed(stage, SimpleNamespace(sizes=sizes, machine=machine, build=BUILD, backend_for=lambda _: "cpu"))
        self.assertEqual([row.result for row in stage.rows], ["skipped", "FAILED", "passed"])
        self.assertIn("training.batch_size", stage.rows[1].detail)

    def test_the_build_is_made_by_the_machine_or_not_at_all(self):
        """A script replaces cmake."""
        self.script("bin/cmake", "#!/bin/sh\necho \"$@\"\n")
        self.stage("build")
        self.assertEqual({name: row["result"] for name, row in self.rows("build").items()}, {"configure": "passed", "compile": "passed"})
        self.assertEqual((BUILD / "out-work/logs/build-compile.log").read_text(), "--build --preset gpu\n")
        self.script("bin/cmake", "#!/bin/sh\necho '-- No CUDA toolkit was found (nvcc), so this build has no plugin for GPUs: run this'\n")
        self.stage("build", status=1)
        self.assertIn("No CUDA toolkit was found", self.rows("build")["toolkit"]["detail"])
        self.script("bin/cmake", "#!/bin/sh\necho 'Could not find yaml-cpp'; exit 1\n")
        # runs all stages: none follows a build that failed
        said = self.check("--build", BUILD, "--out", self.out, status=1)
        self.assertIn("status 1: Could not find yaml-cpp", self.rows("build")["configure"]["detail"])
        self.assertIn("build elsewhere with --pack, and use --from here", said)
        self.assertFalse((self.out / "tests.json").exists())

    def test_rows_are_wanted_by_name(self):
        self.check("--build", BUILD, "--out", self.folder / "iris_alone", "--stage", "tests", "--only", "iris")
        self.assertFalse((BUILD / "iris_alone-work/data/shapes").exists())  # no wanted row needs the images
        self.stage("tests", "--only", "iris")
        self.assertEqual(list(self.rows("tests")), ["iris"])
        # a stage without a matching row is no failure
        self.stage("speed", "--stage", "tests", "--only", "iris")
        self.assertFalse((self.out / "speed.json").exists())

    def test_a_name_that_no_row_has_is_a_mistake(self):
        for stage, rows in (("tests", "iris, digits, check.sizes"), ("speed", "mnist_mlp float32 4"), ("peers", "mnist_mlp")):
            with self.subTest(stage):
                said = self.stage(stage, "--only", "resnet5O", status=2)
                self.assertIn(f"gpu_check: --only 'resnet5O' finds no row; the stages have {rows}", said)

    def test_a_stage_ends_in_time_and_names_what_it_did_not_reach(self):
        said = self.stage("tests", "--limit", 0.5, status=1)
        self.assertEqual(self.rows("tests")["iris"]["result"], "not run")
        self.assertIn("the time of the stage was over", said)

    @staticmethod
    def lives(process):
        try:
            return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
        except OSError:
            return False

    def test_what_takes_too_long_is_ended_with_all_that_it_started(self):
        stage = Stage("tests", 60, self.folder, dict(os.environ))
        marker = self.folder / "child"
        stage.row("slow", ["sh", "-c", f"sleep 600 & echo $! > {marker}; wait"], at_most=0.5)
        self.assertEqual(stage.rows[0].result, "FAILED")
        self.assertIn("took longer than it may", stage.rows[0].detail)
        end = time.monotonic() + 30
        while self.lives(int(marker.read_text())):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertFalse(stage.passed())

    @unittest.skipUnless(TORCH_PYTHON, "no PyTorch; name a Python that has it in PLEXAURA_TORCH_PYTHON")
    def test_pytorch_takes_turns(self):
        said = self.stage("peers", "--python", TORCH_PYTHON, status=1)
        row = self.rows("peers")["mnist_mlp"]
        programs = row["figures"]["programs"]
        for name in ("plexaura", "torch, float32", "torch, float32, compile"):
            self.assertGreater(programs[name]["median_s"], 0, row)
        # A CUDA graph fails on a CPU, and the failure is reported.
        self.assertIsNone(programs["torch, float32, graph"]["median_s"])
        self.assertIn("torch, float32, graph: ", row["detail"])
        self.assertIn("| mnist_mlp, 4 | torch, float32 |", said)
        self.assertRegex(said, r"MNIST MLP: 3 times as fast as PyTorch as written \| \d")

    @unittest.skipUnless(TORCH_PYTHON, "no PyTorch; name a Python that has it in PLEXAURA_TORCH_PYTHON")
    def test_every_way_of_pytorch_makes_steps(self):
        modes = [{"precision": precision, "channels_last": True, "way": "eager"} for precision in ("bfloat16", "float16", "tf32", "float32")]
        requests = [{"model": "mnist_cnn", "sample": [1, 28, 28], "classes": 10, "batch": 2, "device": "cpu", "mode": mode, "seconds": 0.01}
                    for mode in modes]
        done = subprocess.run([TORCH_PYTHON, ROOT / "dev/compare_pytorch", "--peer"], input="".join(json.dumps(request) + "\n" for request in requests),
                              capture_output=True, text=True, timeout=600)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([set(answer) for answer in answers], [{"median_s"}] * len(modes), done.stdout + done.stderr)

    @unittest.skipUnless(TORCH_PYTHON, "no PyTorch; name a Python that has it in PLEXAURA_TORCH_PYTHON")
    def test_pytorch_is_compared_on_the_cpu_without_a_limit(self):
        found = self.folder / "found.json"
        command = [TORCH_PYTHON, ROOT / "dev/compare_pytorch", "--build", BUILD, "--models", "mnist_mlp", "--batch", "4", "--rounds", "2",
                   "--seconds", "0.05", "--command", "floor=echo 3.5", "--command", "broken=exit 3", "--json", found]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # because of the broken program
        programs = json.loads(found.read_text(encoding="utf-8"))["programs"]
        for name in ("plexaura", "torch, as written", "torch, channels_last", "floor"):
            self.assertEqual(len(programs[name]["rounds_s"]), 2, name)
        self.assertEqual(programs["floor"]["median_s"], 0.0035)
        self.assertEqual(programs["broken"]["error"], "status 3: no output")

    def test_without_pytorch_the_peers_are_skipped(self):
        said = self.stage("peers", "--python", self.script("bare_python", WITHOUT_MODULES))
        self.assertIn("lacks torch, torchvision; name another Python with --python", said)

    def test_what_was_packed_runs_where_it_was_unpacked(self):
        archive = self.folder / "carried.tar.xz"
        said = self.check("--build", BUILD, "--pack", archive)
        self.assertIn("MiB", said)
        with tarfile.open(archive) as tar:
            names = tar.getnames()
        self.assertIn("build/models/mlp", names)
        self.assertTrue([name for name in names if name.startswith("lib/libyaml-cpp")])
        self.assertFalse([name for name in names if name.startswith(("lib/libc.", "lib/libcudnn", "lib/libcublas"))])
        folder = self.folder / "carried"
        with self.assertRaisesRegex(UserError, "was packed to test dev/gpu_check itself"):
            packing.unpack(archive, folder, [])
        manifest = packing.unpack(archive, folder, [], stand_in=True)
        self.assertEqual([test["name"] for test in manifest["tests"]], ["check.sizes"])
        self.assertEqual(len(manifest["cpu_losses"]), TINY.follow_steps)
        if DESCRIBES_GPUS:
            self.assertGreater(manifest["rooflines"]["h200"]["resnet18 bfloat16 2"]["roofline_s"], 0)
        self.assertEqual(sorted(self.folder.glob("carried*")), [folder, archive])
        done = subprocess.run([folder / "build/models/mlp", "--version"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        loaded = subprocess.run(["ldd", folder / "build/models/mlp.program"], capture_output=True, text=True,
                                env={**os.environ, "LD_LIBRARY_PATH": f"{folder}/lib:{folder}/build/core"}).stdout
        self.assertIn(f"{folder}/lib/libyaml-cpp", loaded)
        self.assertIn(f"{folder}/build/core/libplexaura_core.so", loaded)
        self.carried_library_is_missed(folder)

    def test_what_was_found_at_home_is_looked_up(self):
        check = gpu_check.Check(machine=SimpleNamespace(described=lambda: "h200", gpu="NVIDIA H200"), sizes=TINY, backend="cpu", build=BUILD,
                                data=self.folder, manifest={"rooflines": {"h200": {"a step": {"roofline_s": 0.5}}}, "cpu_losses": [1.0, 2.0]})
        stage = Stage("speed", 60, self.folder, dict(os.environ))
        self.assertEqual(speed.find_rooflines(stage, check, TINY.cases), {"a step": {"roofline_s": 0.5}})
        self.assertIn("of 1 steps, for h200, found before", stage.rows[0].detail)
        subprocess.run([BUILD / "tools/draw_shapes", self.folder / "shapes", "--classes", "6", "--train", "2", "--val", "2", "--size", "32"],
                       check=True, stdout=subprocess.DEVNULL)
        testing.follow_the_cpu(stage, check)
        self.assertIn("2 losses, 1.0000 to 2.0000, differ by", stage.rows[1].detail)
        self.assertFalse((self.folder / "cpu.log").exists())

    def test_results_are_few_files(self):
        self.stage("tests", "--stage", "speed", "--only", "iris|mnist_mlp")
        found = sorted(str(file.relative_to(self.out)) for file in self.out.rglob("*"))
        self.assertEqual(found, ["kernel_times.tgz", "logs.tgz", "results.json", "results.md", "speed.json", "tests.json"])
        with tarfile.open(self.out / "logs.tgz") as tar:
            self.assertIn("tests-iris.log", tar.getnames())
        with tarfile.open(self.out / "kernel_times.tgz") as tar:
            self.assertTrue([name for name in tar.getnames() if "kernel_times" in name])

    def test_an_archive_is_taken_by_itself_where_the_machine_cannot_build(self):
        archive = self.archive("gpu.tar.xz", {})
        options = SimpleNamespace(build=None, pack=None, report=None)
        with unittest.mock.patch.object(gpu_check, "ARCHIVE", archive):
            with unittest.mock.patch.dict(os.environ, PATH=str(self.folder)):
                self.assertEqual(gpu_check.carried_archive(options), archive)
                self.assertIsNone(gpu_check.carried_archive(SimpleNamespace(build=BUILD, pack=None, report=None)))
            self.assertIsNone(gpu_check.carried_archive(options))  # this machine can build
            archive.unlink()
            with unittest.mock.patch.dict(os.environ, PATH=str(self.folder)):
                self.assertIsNone(gpu_check.carried_archive(options))

    def test_an_archive_that_is_too_large_beside_the_tree(self):
        self.assertGreater(packing.bytes_of_tree(ROOT), 1 << 20)
        with unittest.mock.patch.object(packing, "MOST_BYTES", packing.bytes_of_tree(ROOT) + (1 << 20)):
            with self.assertRaisesRegex(UserError, r"MiB, and may have 1 beside the tree; build for one kind of GPU alone"):
                packing.pack(self.folder / "carried", BUILD, "commit", TINY, True)
        self.assertFalse((self.folder / "carried").exists())

    def test_compute_sanitizer_that_is_late_was_not_run(self):
        self.script("bin/compute-sanitizer", "#!/bin/sh\nexec sleep 600\n")
        check = gpu_check.Check(machine=None, sizes=TINY, backend="cpu", build=BUILD, data=self.folder)
        stage = Stage("tests", 4, self.folder, dict(os.environ))
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder / 'bin'}:{PATH}"):
            testing.run_sanitizer(stage, check)
        self.assertEqual({row.result for row in stage.rows}, {"not run"})

    def carried_library_is_missed(self, folder):
        lost = next((folder / "build/core").glob("libplexaura_core.so"))
        lost.unlink()
        # The loader would find the library in the build, which exists only on this machine.
        program = self.folder / "needs.so"
        subprocess.run(["g++", "-shared", "-o", self.folder / "libabsent.so", "-x", "c++", "/dev/null"], check=True)
        subprocess.run(["g++", "-shared", "-Wl,--no-as-needed", "-o", folder / "build" / program.name, "-x", "c++", "/dev/null", "-x", "none",
                        self.folder / "libabsent.so"], check=True, cwd=self.folder)
        (self.folder / "libabsent.so").unlink()
        with self.assertRaisesRegex(UserError, "needs .*libabsent.so.*, which this machine lacks"):
            packing.check_complete("carried.tar.xz", folder, f"{folder}/lib")

    def test_without_strip_nothing_is_packed(self):
        with unittest.mock.patch.dict(os.environ, PATH=str(self.folder)), self.assertRaisesRegex(UserError, "lacks strip.*; install binutils"):
            packing.pack(self.folder / "carried", BUILD, "commit", TINY, True)

    def archive(self, name, manifest):
        file = self.folder / "manifest.json"
        file.write_text(json.dumps({"glibc": [2, 0], "programs": [], **manifest}), encoding="utf-8")
        with tarfile.open(self.folder / name, "w") as tar:
            tar.add(file, file.name)
        file.unlink()
        return self.folder / name

    def test_only_what_was_unpacked_before_is_replaced(self):
        folder, broken = self.folder / "carried", self.folder / "broken"
        packing.unpack(self.archive("first", {"commit": "one"}), folder, [])
        broken.write_text("not an archive", encoding="utf-8")
        for archive in (broken, self.archive("newer", {"glibc": [9, 99]})):
            with self.assertRaises(UserError):
                packing.unpack(archive, folder, [])
            self.assertEqual(packing.read_manifest(folder)["commit"], "one")
        packing.unpack(self.archive("second", {"commit": "two"}), folder, [])
        self.assertEqual(packing.read_manifest(folder)["commit"], "two")
        (folder / "manifest.json").rename(folder / "thesis.tex")
        with self.assertRaisesRegex(UserError, "carried is in the way, and was not unpacked by dev/gpu_check --from"):
            packing.unpack(self.folder / "second", folder, [])
        self.assertEqual([file.name for file in folder.iterdir()], ["thesis.tex"])

    def test_an_archive_is_unpacked_once(self):
        options = SimpleNamespace(archive=self.archive("packed", {"commit": "one"}), stand_in=None)
        with unittest.mock.patch.object(gpu_check, "CARRIED", self.folder / "carried"):
            for word in ("first", "second"):
                check = SimpleNamespace(machine=SimpleNamespace(library_folders=lambda: []))
                gpu_check.take_along(options, check)
                self.assertEqual(check.manifest["commit"], "one")
                (self.folder / "carried" / word).touch()
        self.assertTrue((self.folder / "carried/first").exists())

    def test_an_archive_that_is_none_and_one_for_a_newer_system(self):
        broken = self.folder / "broken"
        broken.write_text("not an archive", encoding="utf-8")
        with self.assertRaisesRegex(UserError, "is not an archive of dev/gpu_check --pack"):
            packing.unpack(broken, self.folder / "carried", [])
        with self.assertRaisesRegex(UserError, "needs glibc 9.99, and this machine has"):
            packing.unpack(self.archive("newer", {"glibc": [9, 99]}), self.folder / "carried", [])

    def test_the_tree_and_the_build_stand_where_tests_look_for_them(self):
        place, carried = self.folder / "made/here/main", self.folder / "carried"
        (carried / "build").mkdir(parents=True)
        with packing.standing_in_for({"source": str(place), "build": str(self.folder / "made/build")}, carried):
            self.assertTrue((place / "dev/gpu_check").samefile(ROOT / "dev/gpu_check"))
            self.assertTrue((self.folder / "made/build").samefile(carried / "build"))
            with contextlib.ExitStack() as made:
                packing.stand_at(place, self.folder, made)  # another file is there already, and stays
            self.assertTrue(place.samefile(ROOT))
        self.assertFalse((self.folder / "made").exists())
        with packing.standing_in_for({"source": "/proc/none/main", "build": str(carried / "build")}, carried):
            pass
        self.assertTrue((carried / "build").is_dir())

    def test_tests_are_those_that_ctest_knows_and_move_with_the_build(self):
        found = gpu_tests(BUILD, r"check\.(sizes|docs)")
        self.assertEqual(sorted(test["name"] for test in found), ["check.docs", "check.sizes"])
        test = {"name": "one", "command": ["/old/build/tests/one", "--in=/old/build"], "variables": {}}
        manifest = {"build": "/old/build", "source": "/old"}
        self.assertEqual(moved(test, manifest, Path("/new"), ROOT)["command"], ["/new/tests/one", "--in=/old/build"])

    def test_bars_are_met_missed_or_not_measured(self):
        programs = {"plexaura, bfloat16": {"median_s": 1.0}, "torch, AMP bfloat16, channels_last": {"median_s": 1.31},
                    "torch, AMP bfloat16, channels_last, compile": {"median_s": 1.05}}
        counts = {"copies_per_step": 2.0, "recorded_copies_per_step": 0.0, "waits_per_step": 3.0}
        timed = {"model": "resnet50", "precision": "bfloat16", "batch": 256, "inference": False, "branches": True,
                 "share_of_roofline": 0.6, **counts}
        stages = {"peers": {"rows": [{"name": "resnet50", "figures": {"programs": programs}}]},
                  "speed": {"rows": [{"name": "resnet50 bfloat16 256", "figures": timed}]},
                  "tests": {"rows": [{"name": "core_tests.cuda", "result": "passed", "detail": ""},
                                     {"name": "cuda_tests", "result": "FAILED", "detail": "status 1"}]}}
        results = {bar.claim: bar.result() for bar in report.bars(stages)}
        expected = {"all cases of ops": "NOT met", "the loss of ResNet50": "not measured", "ResNet50, bfloat16: 1.3": "met",
                    "ResNet50, bfloat16: 1.1": "NOT met", "ResNet50, bfloat16: 60 %": "met", "ResNet50, TF32": "not measured",
                    "MNIST CNN": "not measured", "ResNet50, bfloat16: a step copies": "met"}
        for start, result in expected.items():
            self.assertEqual([found for claim, found in results.items() if claim.startswith(start)], [result], start)
        timed["recorded_copies_per_step"] = 1.0
        self.assertEqual([bar.result() for bar in report.bars(stages) if "a step copies" in bar.claim], ["NOT met"])

    def test_figures_of_another_commit_do_not_stay(self):
        stage = Stage("speed", 60, self.folder, {})
        for setting, name in (({"commit": "a"}, "one"), ({"commit": "a"}, "two"), ({"commit": "b"}, "three")):
            stage.rows = [Row(name, "passed")]
            report.save(self.folder, stage, setting)
        self.out = self.folder
        self.assertEqual(list(self.rows("speed")), ["three"])

    def test_what_a_user_can_mend(self):
        nowhere = self.folder / "nowhere"
        no_gpu = self.script("without/nvidia-smi", "#!/bin/sh\nexit 9\n").parent
        wrong = [
            (["--stage", "tests"], {"path": no_gpu}, "nvidia-smi finds no GPU on this machine; tools/test --preset cuda"),
            (["--stage", "tests", "--build", nowhere], {}, "has no dev/bench; run the stage build, or use --from"),
            (["--from", nowhere], {}, f"there is no {nowhere}; dev/gpu_check --pack FILE writes it"),
            (["--pack", nowhere, "--build", BUILD], {"stand_in": False}, "core/plexaura_cuda.so; build with: cmake --preset cuda"),
            (["--report", self.folder], {}, "has no results of a stage, such as speed.json"),
            (["--from", nowhere, "--build", BUILD], {}, "--from and --build exclude each other; leave one of them out"),
            (["--pack", nowhere, "--stage", "speed"], {}, "--pack and --stage exclude each other"),
            (["--pack", nowhere, "--from", nowhere], {}, "--pack and --from exclude each other"),
            (["--report", self.folder, "--only", "iris"], {}, "--report and --only exclude each other"),
            (["--report", self.folder, "--limit", "9"], {}, "--report and --limit exclude each other"),
            (["--only", "("], {}, "--only '(' is not a regular expression"),
            (["--stage", "all", "--stage", "other"], {}, "invalid choice: 'other'"),
        ]
        for arguments, options, expected in wrong:
            with self.subTest(expected):
                said = self.check(*arguments, status=2, **options)
                self.assertIn(expected, said)
                self.assertTrue(said.splitlines()[-1].startswith("gpu_check: "), said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
