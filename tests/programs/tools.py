"""Tests the tools beside the programs: each does its work, and reports mistakes in one sentence."""

import json
import os
import re
import socket
import subprocess
import sys
import unittest
import unittest.mock

import support
from support import BUILD, HAS_ONEDNN, SOURCE, ProgramTest


class Tools(ProgramTest):
    def tool(self, name, *arguments, status=0):
        folder = "tools" if (BUILD / "tools" / name).exists() else "dev"
        done = subprocess.run([BUILD / folder / name, *map(str, arguments)], cwd=self.folder, env=support.environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_draw_shapes_draws_the_same_images_again(self):
        for folder in ("one", "two"):
            said = self.tool("draw_shapes", folder, "--classes", 2, "--train", 3, "--val", 1, "--size", 16)
            self.assertIn("2 classes, 3 images each to train on and 1 to validate on", said)
        images = {path.relative_to(self.folder / "one"): path.read_bytes() for path in (self.folder / "one").rglob("*.jpg")}
        self.assertEqual(len(images), 8)
        self.assertEqual(len(set(images.values())), 8)
        for name, image in images.items():
            self.assertEqual((self.folder / "two" / name).read_bytes(), image)

    def test_graph_shows_a_model(self):
        sample = [SOURCE / "models/iris.yaml", "--sample", 4, "--classes", 3]
        self.assertIn("matmul", self.tool("graph", *sample))
        self.assertIn("relu", self.tool("graph", "--set", "model.activation=relu", *sample))
        self.assertTrue(self.tool("graph", *sample, "--format", "dot").startswith("digraph"))
        self.assertGreater(len(self.tool("graph", *sample, "--mode", "training")), len(self.tool("graph", *sample)))

    def test_a_reader_that_goes_away(self):
        """The text is longer than a pipe can hold. The graphviz here reads nothing."""
        deep = [BUILD / "tools/graph", SOURCE / "models/resnet152.yaml", "--sample", "3,64,64", "--classes", "3", "--mode", "training"]
        script = self.write("dot", "#!/bin/sh\nexit 1\n")
        script.chmod(0o755)
        hidden = dict(support.environment(), PATH=f"{self.folder}:/usr/bin:/bin")
        for command, wanted in (('"$@" | true; exit ${PIPESTATUS[0]}', "cannot write to the standard output: Broken pipe"),
                                ('exec "$@" --format svg', "graphviz could not draw it; is it installed")):
            done = subprocess.run(["bash", "-c", command, "-", *map(str, deep)], env=hidden, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, f"\\Agraph: {wanted}.*\n\\Z")

    def test_bench_trains_on_one_batch(self):
        said = json.loads(self.tool("bench", "--set", "training.batch_size=8", SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28",
                                    "--classes", 10, "--seconds", 0.1))
        self.assertEqual(said["parameters"], 690_590)
        self.assertEqual(said["batch"], 8)
        self.assertGreaterEqual(said["steps"], 5)
        self.assertTrue(0 < said["min_s"] <= said["median_s"])
        self.assertAlmostEqual(said["images_per_second"], 8 / said["median_s"], delta=0.01 * said["images_per_second"])

    def test_bench_knows_an_encoder_and_decoder(self):
        """The model of bench has as many parameters as torch.nn.Transformer(8, 4, 2, 2, 512)."""
        said = json.loads(self.tool("bench", SOURCE / "dev/compare_parts/encoder_decoder.yaml", "--sample", "2,4,8", "--classes", 32, "--seconds", 0.1))
        self.assertEqual(said["parameters"], 36_768)
        self.assertLess(said["loss"][1], said["loss"][0])

    @unittest.skipUnless(support.DESCRIBES_GPUS, "this build describes no GPU")
    def test_bench_tells_the_roofline_of_the_dry_run(self):
        config, *_ = self.cnn()
        device = ["--backend", "cuda", "--device", "h200"]
        said = json.loads(self.tool("bench", config, "--sample", "1,10,10", "--classes", 3, *device))
        self.assertEqual((said["graph_launches"], said["batch"]), (1, 10))
        dry = self.run_one("convnet", config, "--dry-run", *device).out
        roofline, calls = re.search(r"roofline +(\S+) ms", dry)[1], re.search(r"(\d+) .* in all", dry)[1]
        self.assertEqual(f"{said['roofline_s'] * 1000:.4g}", roofline)
        self.assertEqual(said["calls"], int(calls))

    def test_bench_on_a_device_launches_a_step_before_it_reads_the_last_loss(self):
        """The steps are the same, as the losses of the first and the last one show."""
        environment = dict(support.environment(), PLEXAURA_PLUGIN_PATH=str(BUILD / "tests/plugins"))
        model = [BUILD / "dev/bench", SOURCE / "models/mnist_mlp.yaml", "--sample", "1,28,28", "--classes", "10", "--bytes", "--seconds", "1e-9",
                 "--set", "training.batch_size=4"]
        losses = []
        for backend in ("portable", "far"):
            done = subprocess.run([*map(str, model), "--backend", backend], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses.append(json.loads(done.stdout)["loss"])
        self.assertEqual(losses[0], losses[1])

    @unittest.skipUnless(support.DESCRIBES_GPUS, "this build simulates no GPU")
    def test_bench_tells_what_a_step_moves_where_the_backend_counts_it(self):
        environment = dict(support.environment(), PLEXAURA_PLUGIN_PATH=str(BUILD / "tests/plugins"), OMP_NUM_THREADS="1")
        command = [BUILD / "dev/bench", SOURCE / "models/mnist_mlp.yaml", "--sample", "1,28,28", "--classes", "10", "--seconds", "0.1",
                   "--set", "training.batch_size=4", "--backend", "simulated_cuda"]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual([said[name] for name in ("copies_per_step", "recorded_copies_per_step", "waits_per_step")], [2, 0, 3])

    def test_bench_of_a_described_device_refuses_options_of_what_runs(self):
        command = [SOURCE / "models/iris.yaml", "--sample", 4, "--device", "h100"]
        for option in (["--inference"], ["--trainer"], ["--plan"], ["--no-kernels"], ["--seconds", 1]):
            said = self.tool("bench", *command, *option, status=2)
            self.assertIn(said, [f"bench: {one} excludes {other}; see --help\n" for one, other in (("--device", option[0]), (option[0], "--device"))])

    def test_bench_says_which_kernels_a_model_gets(self):
        model = [SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28", "--classes", 10, "--plan"]
        said = json.loads(self.tool("bench", *model, "--backend", "portable"))
        self.assertAlmostEqual(said["portable_share"], 1)
        self.assertIn("conv2d_weight_grad", said["portable"])
        inference = json.loads(self.tool("bench", *model, "--inference"))
        self.assertLess(inference["kernels"], said["kernels"])

    @unittest.skipUnless(HAS_ONEDNN, "without oneDNN the portable kernels do the convolutions")
    def test_paced_kernels_take_their_time(self):
        """A slow rank takes longer by the factor, and others do not."""
        model = [SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28", "--classes", 10, "--set", "training.tuning=off"]
        environment = dict(support.environment(), PLEXAURA_PLUGIN_PATH=str(BUILD / "tools"), OMPI_COMM_WORLD_RANK="3")

        def seconds(options, status=0):
            command = [BUILD / "dev/bench", *map(str, model), "--seconds", "0.1", "--backend", f"paced:{options}"]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, status, done.stderr)
            return json.loads(done.stdout)["min_s"] if status == 0 else done.stderr

        expected = json.loads(self.tool("bench", *model, "--plan"))["expected_s"]
        # This factor makes steps of 0.1 s or more on any machine, because bench compiles more programs than
        # one step has.
        times = 0.2 / expected
        slow = seconds(f"times={times},slow=4,slow_rank=3")
        self.assertGreater(slow, 0.2)
        self.assertGreater(slow, 2 * seconds(f"times={times}"))
        self.assertGreater(slow, 2 * seconds(f"times={times},slow=4,slow_rank=2"))
        self.assertGreater(seconds(f"times={4 * times},computes=0"), 0.2)
        for options, wanted in (("time=3", "the backend 'paced' has no option 'time'; it has: computes, slow, slow_rank, times"),
                                ("times=-1", "the option 'times' of the backend 'paced' is '-1'; it must be a number, 0 or more"),
                                ("times=1x", "the option 'times' of the backend 'paced' is '1x'; it must be a number, 0 or more"),
                                ("slow=3", "the options 'slow' and 'slow_rank' of the backend 'paced' need each other; give both")):
            self.assertEqual(seconds(options, status=2), f"bench: {wanted}\n")

    @unittest.skipUnless(HAS_ONEDNN, "without oneDNN the portable kernels do the convolutions")
    def test_no_random_net_gets_slow_kernels(self):
        others = ["perceptron", "residual", "transformer", "decoder", "recurrent"]
        for mode in ([], ["--inference"]):
            for nets, words in ((30, ["--count", "30"]), (20, ["--count", "4", "--family", *others])):
                done = subprocess.run([sys.executable, SOURCE / "dev/sweep", "--build", BUILD, *words, *mode], cwd=self.folder,
                                      env=support.environment(), capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(f"{nets} nets", done.stdout)

    def check_kernels(self, model, sample, classes, *settings):
        for mode in ([], ["--inference"]):
            options = [word for setting in settings for word in ("--set", setting)]
            plan = json.loads(self.tool("bench", model, "--sample", sample, "--classes", classes, "--plan", *options, *mode))
            with self.subTest(model=str(model), settings=settings, mode=mode):
                self.assertEqual(plan["reference"], [])
                self.assertLess(plan["portable_share"], 0.01, plan["portable"])

    @unittest.skipUnless(HAS_ONEDNN, "without oneDNN the portable kernels do the convolutions")
    def test_no_shipped_model_gets_slow_kernels(self):
        """These models have losses and outputs that the random nets lack. Deeper ResNets only repeat the layers
        of these two. VGG16 has no layers that the others lack, and half a gigabyte of weights."""
        samples = {"iris": (4, 3), "mnist_mlp": ("1,28,28", 10), "mnist_full_batch": ("1,28,28", 10), "mnist_cnn": ("1,28,28", 10),
                   "mnist_lstm": ("1,28,28", 10), "mnist_vit": ("1,28,28", 10), "mnist_autoencoder": ("1,28,28", 10), "throws": (3, 3), "weather": (4, 3), "text_gpt": (64, 110), "text_lstm": (64, 110),
                   "photos_mlp": ("3,150,150", 5), "resnet18": ("3,96,96", 5), "resnet50": ("3,96,96", 5), "mobilenet_v2": ("3,64,64", 5),
                   "convnext_tiny": ("3,64,64", 5), "mnist_unet": ("1,28,28", 10)}
        shipped = {path.stem for path in (SOURCE / "models").glob("*.yaml")}
        self.assertEqual(shipped - {"resnet34", "resnet101", "resnet152", "vgg16"}, set(samples))
        for name, sample in samples.items():
            self.check_kernels(SOURCE / f"models/{name}.yaml", *sample)
        for name in ("iris", "mnist_mlp", "mnist_cnn"):
            for loss in ("squared_error", "binary_cross_entropy"):
                self.check_kernels(SOURCE / f"models/{name}.yaml", *samples[name], f"model.loss={loss}")
        self.check_kernels(SOURCE / "models/mnist_mlp.yaml", *samples["mnist_mlp"], "model.loss=squared_error", "model.outputs=sigmoid",
                           "model.activation=sigmoid")
        pool = "{type: avg_pool, kernel: 3, stride: 2, padding: 1, count_include_pad: false}"
        layers = f"[{{type: conv, channels: 12, kernel: 3}}, {pool}, {{type: flatten}}, {{type: linear, units: 10}}]"
        self.check_kernels(SOURCE / "models/mnist_cnn.yaml", *samples["mnist_cnn"], f"model.layers={layers}")

    def test_a_plan_is_made_by_estimates_alone(self):
        """Times that an earlier run has measured do not change a plan, even if they include kernels without an estimate."""
        model = [SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28", "--classes", 10, "--set", "training.batch_size=8"]
        before = self.tool("bench", *model, "--plan")
        with unittest.mock.patch.dict(os.environ, PLEXAURA_TUNING="cached"):
            self.tool("bench", *model, "--seconds", 0.01)
            self.assertEqual(self.tool("bench", *model, "--plan"), before)

    def test_replay_step_sleeps_and_exchanges(self):
        """Rank 0 takes three times as long, so no step is shorter than its sleep."""
        plan = ["--forward", 0.01, "--backward", 0.02, "--update", 0.005, "--slow", "0:3", "--steps", 3]
        for more in ([], ["--overlap"], ["--strategy", "reduce-broadcast"], ["--algorithm", "tree"]):
            said = self.mpirun(2, [BUILD / "dev/replay_step", *plan, "--bucket", "400000@0.01", "--bucket", "40000@0.02", *more]).out
            found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
            self.assertEqual((found["ranks"], found["hosts"], len(found["seconds"])), (2, 1, 3))
            self.assertGreaterEqual(min(found["seconds"]), 0.1049)

    def test_replay_step_varies_what_it_computes(self):
        """The random factors are the same in each run. In at least one of eight steps of two ranks, a rank
        takes twice the median time."""
        plan = ["--forward", 0.01, "--backward", 0.02, "--update", 0.005, "--bucket", "4000@0.01", "--spread", 2, "--steps", 8]
        said = self.mpirun(2, [BUILD / "dev/replay_step", *plan]).out
        found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        self.assertGreaterEqual(max(found["seconds"]), 0.07)

    def test_tcp_streams_between_two_hosts(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [SOURCE / "dev/tcp_streams", "--bytes", 400_000, "--rounds", 3, "--port", port, "127.0.0.1", "127.0.0.2"]
        self.assertRegex(self.mpirun(2, command).out, r"2 hosts, 400,000 bytes: [\d.]+ ms, [\d.]+ MB/s from each host, [\d.]+% of the line\n")
        alone = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual((alone.returncode, alone.stderr.splitlines()[-1]),
                         (2, "tcp_streams: 2 hosts need a process each; start it with mpirun -n 2"))

    def test_a_comparison_that_compares_nothing(self):
        for option, value in (("--ranks", "1"), ("--rounds", "0")):
            done = subprocess.run([sys.executable, SOURCE / "dev/compare_ddp", "--data", self.folder, option, value], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (2, "compare_ddp: --ranks must be 2 or more, and --rounds 1 or more\n"))

    def test_what_is_wrong(self):
        model = SOURCE / "models/iris.yaml"
        replays = [
            (["replay_step"], "--bucket is required"),
            (["replay_step", "--bucket", "4000@0.1"], "--bucket: '4000@0.1' must be BYTES@SECONDS, not after the end of the backward pass"),
            (["replay_step", "--bucket", "4000"], "--bucket: '4000' must be BYTES@SECONDS"),
            (["replay_step", "--bucket", "4000@0", "--slow", "1"], "--slow: '1' must be RANK:FACTOR"),
            (["replay_step", "--bucket", "4000@0", "--steps", "0"], "--steps: '0' must be a whole number from 1"),
            (["replay_step", "--bucket", "4000@0", "--spread", "-1"], "--spread: '-1' must be a number from 0 to 2"),
            (["replay_step", "--bucket", "4000@0", "--forward", "1e9"], "--forward: '1e9' must be a number from 0 to 3600"),
            (["replay_step", "--bucket", "4000@0", "--slow", "1:2"], "--slow: there is no rank 1; the last is 0"),
            (["replay_step", "--bucket", "4000@0", "--slow", "0:2", "--slow", "0:3"], "--slow: rank 0 has two factors; give it one"),
            (["replay_step", "--bucket", "4000@0", "--strategy", "reduce-broadcast", "--algorithm", "tree"], "--algorithm is for the strategy allreduce; leave it out"),
        ] if support.HAS_MPI else []
        wrong = [
            (["draw_shapes"], "DIR is required"),
            (["draw_shapes", "here", "--size", 3], "--size: '3' must be a whole number from 8 to 4096"),
            (["draw_shapes", "here", "--classes", "2.5"], "'2.5' must be a whole number from 2 to"),
            (["draw_shapes", "/proc/here"], "the folder cannot be made"),
            (["bench", model, "--sample", "4,x"], "--sample: 'x' must be a whole number from 1 to"),
            (["bench", model, "--sample", 4, "--seconds", 0], "--seconds: '0' must be a number above 0"),
            (["bench", "none.yaml", "--sample", 4], "none.yaml"),
            (["bench", model, "--sample", 4, "--classes", 3, "--set", "training.batch_siz=8"], "unknown key 'batch_siz' in training; did you mean 'batch_size'?"),
            (["bench", model, "--sample", 4, "--classes", 3, "--device", "h200"], "the backend 'cpu' cannot describe a device that is not there"),
            (["graph", model, "--sample", 4], "--sample and --classes need each other"),
            (["graph", model, "--sample", 4, "--classes", 3, "--set", "model.actvation=relu"], "unknown key 'actvation' in model; did you mean 'activation'?"),
            (["graph", model, "--sample", 4, "--classes", 3, "--set", "trainng.seed=1"], "unknown key 'trainng' at the top; did you mean 'training'?"),
            (["graph", model, "--set", f"data.path={SOURCE / 'models/iris.csv'}", "--set", "data.sed=1"], "unknown key 'sed' in data"),
            *replays,
            (["dump_gradients", model, "w", "b", "r", "--precision", "half"], "--precision"),
        ]
        for command, expected in wrong:
            said = self.tool(*command, status=2)
            self.assertIn(expected, said)
            self.assertEqual(len(said.splitlines()), 1, said)
            self.assertTrue(said.startswith(command[0] + ": "), said)


if __name__ == "__main__":
    support.main()
