"""The rooms of the project: their sources, and the tests that should notice faults there."""

import dataclasses
import fnmatch
import pathlib


@dataclasses.dataclass
class Room:
    name: str
    sources: list  # patterns of paths
    tests: list    # patterns of ctest names; a program of doctest cases runs file by file
    targets: list  # targets that these tests need

    def holds(self, path):
        return any(fnmatch.fnmatch(path, pattern) for pattern in self.sources)

    def runs(self, test):
        return any(fnmatch.fnmatch(test, pattern) for pattern in self.tests)


ENGINE = ["core_tests", "core_tests.portable", "ops_tests", "ops_tests.portable"]
DEVICES = ["core_tests.far", "core_tests.far_lazy", "ops_tests.far_lazy", "contract_tests_far",
           "contract_tests_far_lazy"]
KERNELS = ["backends_tests", *ENGINE]
KERNEL_TARGETS = ["backends_tests", "core_tests", "ops_tests"]

# A source belongs to the first room that contains it. Headers of kernels contain their loops; other headers
# mostly declare.
ROOMS = [
    Room("functors", ["core/ops/functors.h", "core/ops/philox.h"], KERNELS, KERNEL_TARGETS),
    Room("ops", ["core/ops/*.cpp"], KERNELS, KERNEL_TARGETS),
    Room("autodiff", ["core/autodiff/*.cpp"], KERNELS, KERNEL_TARGETS),
    Room("host", ["core/loops/*", "core/host/*", "backends/regions/*"], KERNELS, KERNEL_TARGETS),
    Room("fast", ["backends/cpu/fast/*"], KERNELS, KERNEL_TARGETS),
    Room("onednn", ["backends/cpu/onednn/*"], KERNELS, KERNEL_TARGETS),
    Room("described", ["backends/cuda/described/[!c]*.cpp", "app/described_step.cpp"],
         ["backends_tests", "described_tests"], ["backends_tests", "described_tests"]),
    # Leaves out calls of NVIDIA's libraries, the runtime, and code that only a compiler for GPUs sees.
    Room("cuda", ["backends/cuda/[!rv]*.cpp", "backends/cuda/kernels/*.cu", "backends/cuda/kernels/[ejs]*.h",
                  "backends/cuda/kernels/batch_norm.h", "backends/cuda/kernels/by_channel.h",
                  "backends/cuda/kernels/channel*.h"],
         ["backends_tests", "core_tests.simulated_cuda*", "ops_tests.simulated_cuda", "contract_tests_simulated_cuda*"], [*KERNEL_TARGETS, "contract_tests"]),
    Room("testing", ["testing/*.cpp"], KERNELS, KERNEL_TARGETS),
    Room("planner", ["core/compile/*.cpp", "core/vm/*.cpp", "core/step/*.cpp", "core/params/placement.cpp"],
         [*KERNELS, "contract_tests_cpu", *DEVICES], [*KERNEL_TARGETS, "contract_tests"]),
    Room("training", ["training/*.cpp"], ["training_tests", "contract_tests_cpu"], ["training_tests", "contract_tests"]),
    Room("distributed", ["distributed/*.cpp"],
         ["distributed_tests", "strategies_tests", "distributed.[!t]*", "distributed.threads.[23]", "distributed.too_*", "distributed.throws*"],
         ["distributed_tests", "strategies_tests", "distributed_ranks"]),
]


def room_of(path):
    return next((room for room in ROOMS if room.holds(path)), None)


def is_named_after(test, source):
    """Returns true if the file of this test is named after the source or its folder: `pool_test.cpp` tests
    `pool.cpp` and `pool/pool_loops.cpp`."""
    path = pathlib.PurePosixPath(source)
    tested = pathlib.PurePosixPath(test.split()[-1]).name.removesuffix("_test.cpp")
    return tested in (path.stem, path.parent.name, path.parent.name.removesuffix("s"))
