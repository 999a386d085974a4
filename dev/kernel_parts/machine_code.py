"""Reads the machine code of the plugin's kernels: the registers and memory of each kernel, and the instructions of the innermost loop that
moves the most bytes."""

import dataclasses
import re
import subprocess

THREADS = 256  # threads of a block: backends/cuda/kernels/block.h

# The compute capability whose machine code is read, and the limits of its multiprocessors.
ARCHITECTURE = "sm_90"
REGISTERS = 65536
MOST_THREADS = 2048
SHARED = 228 * 1024
SHARED_OF_SYSTEM = 1024  # bytes that each block needs besides its own


@dataclasses.dataclass
class Loop:
    """The loop of a kernel that moves the most bytes of the device's memory in one round."""

    instructions: list
    loads: dict   # number of loads by their width in bits
    stores: dict

    def moved(self, width=0):
        """Returns the bytes of one round, of all loads and stores or only of those of so many bits."""
        return sum(bits // 8 * count for moves in (self.loads, self.stores) for bits, count in moves.items()
                   if width in (0, bits))


@dataclasses.dataclass
class Kernel:
    name: str
    registers: int
    stack: int
    shared: int
    instructions: list  # pairs of address and text

    def count(self, pattern):
        return sum(1 for _, text in self.instructions if re.match(pattern, text))

    @property
    def occupancy(self):
        """The part of the threads of a multiprocessor that can run at once."""
        of_a_block = -(-self.registers // 8) * 8 * THREADS
        blocks = min(REGISTERS // of_a_block, MOST_THREADS // THREADS,
                     SHARED // (self.shared + SHARED_OF_SYSTEM))
        return blocks * THREADS / MOST_THREADS

    def loop(self, width=0):
        """Returns the innermost loop that moves the most bytes, or all of the kernel if it has no such loop. With a
        width only loads and stores of so many bits count."""
        loops = []
        for address, text in self.instructions:
            jump = re.match(r"BRA.*?(0x[0-9a-f]+)$", text)
            if jump and int(jump[1], 16) < address:
                loops.append((int(jump[1], 16), address))
        moving = [loop for loop in loops if self.loop_of(*loop).moved(width)]
        inner = [loop for loop in moving
                 if not any(other != loop and other[0] >= loop[0] and other[1] <= loop[1] for other in moving)]
        found = [self.loop_of(*loop) for loop in inner]
        return max(found, key=lambda loop: loop.moved(width)) if found else self.loop_of(0, 1 << 62)

    def loop_of(self, begin, end):
        inside = [text for address, text in self.instructions if begin <= address <= end and not text.startswith("NOP")]
        return Loop(inside, widths_of(inside, "LDG"), widths_of(inside, "STG"))


def widths_of(instructions, name):
    """Returns how many of the loads or stores have which width in bits."""
    widths = {}
    for text in instructions:
        if text.split(".")[0].split()[0] != name:
            continue
        modifiers = text.split()[0].split(".")
        width = next((size for size, word in ((128, "128"), (64, "64"), (16, "U16"), (16, "S16"), (8, "U8"), (8, "S8"))
                      if word in modifiers), 32)
        widths[width] = widths.get(width, 0) + 1
    return widths


def short_name(name):
    """Returns the demangled name of a kernel without what all have in common."""
    name = re.sub(r"^void plexaura::cuda::run_kernel<(.*)>\(.*\)$", r"\1", name)
    return re.sub(r"plexaura::(cuda::)?|\(anonymous namespace\)::|(?<=>) (?=>)", "", name).strip()


def output_of(*command, text=None):
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def read_kernels(cuobjdump, path):
    """Returns the kernels of an object file. Throws ValueError if it cannot read the output of cuobjdump."""
    kernels, resources = [], {}
    for line in output_of(cuobjdump, "-arch", ARCHITECTURE, "-res-usage", path).splitlines():
        if function := re.match(r" Function (\S+):", line):
            current = function[1]
        elif numbers := re.match(r"\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line):
            registers, stack, shared, local = map(int, numbers.groups())
            resources[current] = (registers, stack + local, shared)
    for line in output_of(cuobjdump, "-arch", ARCHITECTURE, "-sass", path).splitlines():
        if function := re.match(r"\s*Function : (\S+)", line):
            if function[1] not in resources:
                raise ValueError(f"{path}: cuobjdump -res-usage printed nothing about the kernel {function[1]}")
            kernels.append(Kernel(function[1], *resources.pop(function[1]), []))
        elif code := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ +)?(\S.*?)\s*;", line):
            kernels[-1].instructions.append((int(code[1], 16), code[2]))
    if resources or not kernels:
        raise ValueError(f"{path}: cuobjdump -sass printed no code of {', '.join(resources) or 'any kernel'} for {ARCHITECTURE}")
    for kernel in kernels:
        if kernel.count("EXIT") == 0:
            raise ValueError(f"{path}: the machine code of {kernel.name} has {len(kernel.instructions)} instructions and "
                             "no EXIT, so this script does not know how cuobjdump prints them")
    names = output_of("c++filt", text="\n".join(kernel.name for kernel in kernels)).splitlines()
    if len(names) != len(kernels):
        raise ValueError(f"{path}: c++filt printed {len(names)} names for {len(kernels)} kernels")
    for kernel, name in zip(kernels, names, strict=True):
        kernel.name = short_name(name)
    return kernels
