"""A bit flips in the weights or the optimizer's state of a rank. The run must find it within
distributed.verify_every steps, name it, and repair it.

PLEXAURA_FAULT_SEEDS=20 flipped.py BUILD_FOLDER    100 bits with three ranks, instead of 10; and 20 runs of
two ranks, instead of 2
"""

import random
import re

import support
from support import BUILD, FAULT_SEEDS, ProgramTest

INTERVAL = 10  # steps between two comparisons
STEPS_OF_EPOCH = 15  # there is also a comparison after each epoch
ELEMENTS = {"fc1.weight": 120, "fc1.bias": 30, "fc2.weight": 600, "fc2.bias": 20, "fc3.weight": 60, "fc3.bias": 3}
# A bit of float32 that makes a weight so large that the next loss is no number, which ends the run.
TOP_OF_EXPONENT = 30


class Flip:
    """A flip in some rank, before some step of an interval."""

    def __init__(self, seed, ranks, interval):
        source = random.Random(seed)
        self.rank, self.step = source.randrange(ranks), INTERVAL * interval + source.randrange(INTERVAL) + 1
        self.tensor, self.state = source.choice(list(ELEMENTS)), source.choice((-1, 0))
        self.bit = source.choice([bit for bit in range(32) if bit != TOP_OF_EXPONENT])
        self.place = 32 * source.randrange(ELEMENTS[self.tensor]) + self.bit

    def __str__(self):
        return f"rank {self.rank} before step {self.step}, bit {self.place} of {self.label()}"

    def fault(self):
        return f"{self.rank}:1:0:flip {self.tensor} {self.state} {self.place}:step {self.step}"

    def label(self):
        return self.tensor if self.state < 0 else f"state {self.state} of the optimizer for {self.tensor}"

    def last_step(self):
        """Returns the last step by which the flip has to be found."""
        return min(-(-self.step // every) * every for every in (INTERVAL, STEPS_OF_EPOCH))


class Flipped(ProgramTest):
    def run_flipped(self, ranks, flips, epochs, status=0, output="run", steps=(), more=()):
        self.let_go_wrong(*(flip.fault() for flip in flips))
        settings = self.iris(f"training.epochs={epochs}", f"distributed.verify_every={INTERVAL}", f"output.dir={output}", *more)
        return self.mpirun(ranks, [BUILD / "tests/programs/faulty_mlp", *settings, *steps], status).text

    def leaves_no_trace(self, flips, flip, epochs):
        """Returns true if the run ends like one without this flip, whose change was too small for the sums of
        the next updates."""
        for output, each in (("with", flips), ("without", [other for other in flips if other is not flip])):
            self.run_flipped(3, each, epochs, output=output, steps=("--steps", flip.last_step(), "--replace"))
        return all((self.checkpoint("with") / name).read_bytes() == (self.checkpoint("without") / name).read_bytes() for name in ("weights.safetensors", "state.safetensors"))

    def test_three_ranks_mend_them(self):
        flips = [Flip(f"three {i}", 3, i) for i in range(5 * FAULT_SEEDS)]
        epochs = -(-len(flips) * INTERVAL // STEPS_OF_EPOCH)
        said = self.run_flipped(3, flips, epochs)
        found = [(int(step), int(rank), label) for step, rank, label in
                 re.findall(r"^after step (\d+) rank (\d) held other bits than the rest in (.*), and has taken theirs: ", said, re.MULTILINE)]
        gone = []
        for flip in flips:
            with self.case("flipped bit", str(flip)):
                if (flip.last_step(), flip.rank, flip.label()) not in found:
                    self.assertTrue(self.leaves_no_trace(flips, flip, epochs))
                    gone.append(flip)
        self.assertLessEqual(len(gone), len(flips) // 10)
        self.assertEqual({(step, rank) for step, rank, _ in found}, {(flip.last_step(), flip.rank) for flip in flips if flip not in gone})

    def test_a_rank_behind_a_server_is_named_as_its_job_numbers_it(self):
        flip = Flip("server", 3, 0)
        flip.rank, flip.tensor, flip.state, flip.place = 2, "fc2.weight", -1, 22
        said = self.run_flipped(4, [flip], 1, more=("distributed.strategy=send-recv",))
        self.assertIn(f"after step {flip.last_step()} rank 2 held other bits than the rest in fc2.weight, and has taken theirs: ", said)

    def test_two_ranks_end(self):
        for seed in range(FAULT_SEEDS):
            flip = Flip(f"two {seed}", 2, seed % 4)
            with self.case("flipped of two", str(flip)):
                said = self.run_flipped(2, [flip], epochs=4, status=1, steps=("--replace",))
                self.assertRegex(said, rf"(?m)^after step {flip.last_step()} the 2 ranks hold different bits in .*, and no majority shows which are right")


if __name__ == "__main__":
    support.main()
