"""How large the work of dev/gpu_check is: on a GPU, and where a CPU stands in for one to test the script itself."""

import dataclasses

PRECISIONS = {"bfloat16": "bfloat16", "tf32": "float32", "float16": "float16", "float32": "float32"}


@dataclasses.dataclass(frozen=True)
class Case:
    """What bench times."""
    model: str
    sample: str
    classes: int
    batch: int
    precision: str
    inference: bool = False
    branches: bool = True  # False: the kernels of a recorded step run one after the other, to show what two branches gain

    def name(self):
        remarks = [*(["inference"] if self.inference else []), *([] if self.branches else ["without branches"])]
        return " ".join([self.model, self.precision, str(self.batch), *remarks])

    def backend_options(self):
        """Of the backend cuda."""
        return [*(["tf32=1"] if self.precision == "tf32" else []), *([] if self.branches else ["branches=0"])]

    def settings(self):
        return ["--set", f"training.batch_size={self.batch}", "--set", f"training.precision={PRECISIONS[self.precision]}"]


def image_cases(depths, pixels, batches):
    """The most important ones first, for a stage may end before the last one."""
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
    tests: str | None  # a pattern of ctest's names; None: those of the GPU
    net: str           # of the runs that are compared
    pixels: int
    batch: int
    follow_steps: int
    rerun_steps: int
    cases: list
    seconds: float     # that bench and its peers time at least
    rounds: int        # with peers
    peers: dict        # model -> batch
    compression: int   # of the archive, by xz


FULL = Sizes(tests=None, net="resnet50", pixels=224, batch=16, follow_steps=8, rerun_steps=20,
             cases=digit_cases(128) + image_cases((50, 101, 152), 224, (256, 64)), seconds=3, rounds=3,
             peers={"mnist_cnn": 128, "mnist_mlp": 128, "resnet50": 256}, compression=6)
TINY = Sizes(tests=r"check\.sizes", net="resnet18", pixels=32, batch=4, follow_steps=2, rerun_steps=2,
             cases=digit_cases(4)[1:] + image_cases((18,), 32, (2,))[:3] + image_cases((18,), 32, (2,))[-1:], seconds=0.05, rounds=1,
             peers={"mnist_mlp": 4}, compression=0)
