"""Tests sums of gradients by devices, which are simulated. A host has two devices, which its ranks use in
turn."""

import os
import unittest

import support
from support import BUILD, ProgramTest

SUMMED = "gradients cross by simulated NCCL, each rank on a device of its own"


@unittest.skipUnless(support.HAS_MPI, "built without MPI")
@unittest.skipUnless(support.DESCRIBES_GPUS, "this build simulates no GPU")
class Devices(ProgramTest):
    def setUp(self):
        super().setUp()
        os.environ["PLEXAURA_PLUGIN_PATH"] = str(BUILD / "tests/plugins")
        self.addCleanup(os.environ.pop, "PLEXAURA_PLUGIN_PATH", None)

    def train(self, ranks, *settings, program=BUILD / "models/mlp", backend="simulated_cuda", status=0, within=120, more=()):
        words = [*self.iris("training.epochs=2", "distributed.bucket_bytes=256", *settings), "--backend", backend, *more]
        return self.mpirun(ranks, [program, *words], status, within).text

    def test_two_ranks_end_in_the_bits_of_sums_by_hosts(self):
        for name, settings in (("plain", ()), ("clipped", ("training.optimizer.max_gradient_norm=0.5", "distributed.verify_every=4")), ("small", ("training.precision=bfloat16",))):
            with self.subTest(name):
                runs = {"auto": SUMMED, "device": SUMMED, "hierarchical": ""}
                for algorithm, line in runs.items():
                    self.assertIn(line, self.train(2, f"output.dir={name}/{algorithm}", f"distributed.algorithm={algorithm}", *settings))
                weights = {(self.checkpoint(f"{name}/{algorithm}") / "weights.safetensors").read_bytes() for algorithm in runs}
                self.assertEqual(len(weights), 1)

    def test_what_looks_at_a_step_waits_for_its_sums(self):
        self.assertIn(SUMMED, self.train(2, "training.epochs=1", more=("--profile", "profile.json")))
        self.assertIn(SUMMED, self.train(2, "training.watch=true", "output.dir=watched"))

    def test_where_ranks_share_a_device_hosts_sum(self):
        why = "ranks 0 and 2 share a device"
        self.assertIn(f"gradients cross through the memory of hosts, and not by simulated NCCL: {why}\n", self.train(3))
        said = self.train(3, "distributed.algorithm=device", status=2)
        self.assertEqual(support.without_mpirun(said), [f"distributed.algorithm is 'device', but {why}; take 'auto'"])

    def test_what_devices_do_not_sum_is_refused(self):
        self.assertIn("but the device of rank 0 has no library for that; take 'auto'", self.train(2, "distributed.algorithm=device", backend="cpu", status=2))
        for setting, why in (("strategy=local", "the strategy is local; choose allreduce, or auto"),
                             ("compression=bf16", "the compression is bf16; remove one of them"),
                             ("on_loss=drop", "on_loss is not end; remove one of them"),
                             ("overlap=on", "devices sum while they compute, whatever overlap says; remove one of them")):
            said = self.run_one("mlp", *self.iris("distributed.algorithm=device", f"distributed.{setting}"), status=2).err
            self.assertIn(f"distributed.algorithm is 'device', and {why}\n", said)

    def test_an_op_that_a_device_lacks_runs_on_the_host_of_each_rank_to_the_same_bits(self):
        lacks = "far:lacks=tanh+softmax_cross_entropy_grad+matmul"
        said = self.train(2, "output.dir=far", "distributed.overlap=on", "training.micro_batches=2", backend=lacks)
        for op in ("tanh", "softmax_cross_entropy_grad", "matmul"):
            self.assertEqual(said.count(f"op {op} runs on the host: the backend 'far' has no kernel for it\n"), 1)
        self.assertNotIn("on the host", self.train(2, "output.dir=portable", "training.micro_batches=2", backend="portable"))
        weights = [(self.checkpoint(folder) / "weights.safetensors").read_bytes() for folder in ("far", "portable")]
        self.assertEqual(weights[0], weights[1])
        said = support.without_mpirun(self.train(2, "training.strict=true", backend=lacks, status=2))
        self.assertEqual(len([line for line in said if "has no kernel" in line]), 1)
        self.assertRegex(said[-1], r"(tanh|matmul) %\d+ of .*: the backend 'far' has no kernel for '(tanh|matmul)' with these types; .* set strict to false")

    def test_a_rank_that_stops_ends_the_other_within_the_deadline(self):
        self.let_go_wrong("1:1:0:stop:step 18")
        said = self.train(2, "distributed.deadline_seconds=4", program=BUILD / "tests/programs/faulty_mlp", status="failure", within=60)
        self.assertIn("a sum over ranks did not end within 4 s of its begin: another rank is gone, or has stopped", said)

    def test_a_device_that_dies_ends_all_long_before_the_deadline(self):
        dies = ["bash", "-c", '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export PLEXAURA_SIMULATED_CUDA_DIES_IN=1000; exec "$@"', "-", BUILD / "models/mlp"]
        said = self.mpirun(2, [*dies, *self.iris("training.epochs=9"), "--backend", "simulated_cuda"], "failure", within=40).text
        self.assertEqual(said.count("CUDA: an illegal memory access was encountered"), 1)
        self.assertIn(SUMMED, said)

    def test_a_rank_that_dies_ends_the_other(self):
        self.let_go_wrong("1:1:0:kill:step 18")
        self.train(2, "distributed.deadline_seconds=4", program=BUILD / "tests/programs/faulty_mlp", status="failure", within=60)


if __name__ == "__main__":
    support.main()
