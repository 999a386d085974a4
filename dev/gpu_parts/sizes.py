"""Defines the problem sizes of dev/gpu_check: for a GPU, and for a CPU as a stand-in when the script itself
is tested."""

import dataclasses

PRECISIONS = {"bfloat16": "bfloat16", "tf32": "float32", "float16": "float16", "float32": "float32"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One measurement of bench."""
    model: str
    sample: str
    classes: int
    batch: int
    precision: str
    inference: bool = False
    # False: the kernels of a recorded step run one after another, to show how much two branches gain.
    branches: bool = True

    def name(self):
        remarks = [*(["inference"] if self.inference else []), *([] if self.branches else ["without branches"])]
        return " ".join([self.model, self.precision, str(self.batch), *remarks])

    def backend_options(self):
        """Returns the options of the backend cuda."""
        return [*(["tf32=1"] if self.precision == "tf32" else []), *([] if self.branches else ["branches=0"])]

    def settings(self):
        return ["--set", f"training.batch_size={self.batch}", "--set", f"training.precision={PRECISIONS[self.precision]}"]


def image_cases(depths, pixels, batches):
    """Returns the cases, the most important first, because a stage may end before the last one."""
    cases = []
    for inference in (False, True):
        for depth in depths if not inference else depths[:1]:
            for batch in batches:
                found = [Case(f"resnet{depth}", f"3,{pixels},{pixels}", 1000, batch, precision, inference) for precision in PRECISIONS]
                if depth == depths[0] and not inference:
                    found.insert(1, dataclasses.replace(found[0], branches=False))
                cases += found
    return cases


def digit_cases(batch):
    return [Case(model, "1,28,28", 10, batch, "float32") for model in ("mnist_cnn", "mnist_mlp")]


@dataclasses.dataclass(frozen=True)
class Sizes:
    tests: str | None  # a pattern for names of tests in ctest; None: the tests that need a GPU
    net: str           # the model of the runs that are compared
    pixels: int
    batch: int
    follow_steps: int
    rerun_steps: int
    cases: list
    seconds: float     # minimum duration of a measurement by bench and its peers
    rounds: int        # of comparisons with peers
    peers: dict        # model -> batch
    compression: int   # level of xz for the archive


FULL = Sizes(tests=None, net="resnet50", pixels=224, batch=16, follow_steps=8, rerun_steps=20,
             cases=digit_cases(128) + image_cases((50, 101, 152), 224, (256, 64)), seconds=3, rounds=3,
             peers={"mnist_cnn": 128, "mnist_mlp": 128, "resnet50": 256}, compression=6)
TINY = Sizes(tests=r"check\.sizes", net="resnet18", pixels=32, batch=4, follow_steps=2, rerun_steps=2,
             cases=digit_cases(4)[1:] + image_cases((18,), 32, (2,))[:3] + image_cases((18,), 32, (2,))[-1:], seconds=0.05, rounds=1,
             peers={"mnist_mlp": 4}, compression=0)
