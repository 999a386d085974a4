"""Calls of ops that are compared: the registry, and random operands and options."""

import dataclasses
import math
from collections.abc import Callable

import torch

# Numbers at which functions have kinks, bounds, poles, ties, overflow and loss of digits. float32 holds all of them.
EDGES = torch.tensor([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2, -2, 2.5, -2.5, 3, -3, 3.5, 6, -6, 20, -20, 50, -50, 88, -88, 100, -100, 700, -700,
                      0.984375, -0.984375, 1e-3, -1e-3, 1e-6, -1e-6, 1e-30, -1e-30, 1e10, -1e10, 1e30, -1e30, math.inf, -math.inf,
                      math.nan], dtype=torch.float32).tolist()


@dataclasses.dataclass
class Call:
    """A call of an op. `theirs` computes the same with PyTorch, from the same operands."""
    inputs: list
    theirs: Callable
    options: dict = dataclasses.field(default_factory=dict)
    elementwise: bool = False  # errors are relative to each element, and not to the largest one
    wrt: list | None = None  # numbers of the operands with gradients; by default of all that are floating
    differentiable: bool = True


@dataclasses.dataclass
class Op:
    name: str
    counterpart: str
    draw: Callable  # of a Draw; returns a Call
    edges: Callable  # returns Calls at the edges


OPS = {}


def op(name, counterpart, edges=lambda: []):
    """Registers a function that draws a call of the op."""
    def register(draw):
        OPS[name] = Op(name, counterpart, draw, edges)
        return draw
    return register


class Draw:
    """Draws operands and options. Floating values are float64, but float32 holds them."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def whole(self, low, high):
        """Returns low <= x <= high."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def flag(self):
        return self.whole(0, 1) == 1

    def one_of(self, values):
        values = list(values)
        return values[self.whole(0, len(values) - 1)]

    def shape(self, least_rank=0, most_rank=4, most=5, empty=True):
        """Returns extents, among which 1 and, if `empty`, 0 occur more often than others."""
        rank = self.whole(least_rank, most_rank)
        extents = [self.one_of([1, self.whole(1, most), self.whole(2, most)]) for _ in range(rank)]
        if empty and rank > 0 and self.whole(0, 9) == 0:
            extents[self.whole(0, rank - 1)] = 0
        return extents

    def axis(self, rank):
        return self.whole(-rank, rank - 1)

    def axes(self, rank):
        """Returns different axes, some negative; none stands for all."""
        chosen = [axis for axis in range(rank) if self.flag()]
        return [axis - rank if self.flag() else axis for axis in chosen]

    def normal(self, shape, scale=1.0):
        return (torch.randn(shape, generator=self.generator) * scale).double()

    def between(self, shape, low, high):
        return (torch.rand(shape, generator=self.generator) * (high - low) + low).double()

    def ties(self, shape, spread=2):
        """Returns whole numbers, many of which are equal."""
        return torch.randint(-spread, spread + 1, shape, generator=self.generator).double()

    def floats(self, shape):
        """Returns normal numbers, numbers with ties or, more rarely, numbers among which are NaN and infinity."""
        kind = self.whole(0, 9)
        if kind < 5:
            return self.normal(shape)
        if kind < 8:
            return self.ties(shape)
        if kind < 9:
            return self.normal(shape, 30)
        values = self.normal(shape)
        if values.numel() > 0:
            values.view(-1)[self.whole(0, values.numel() - 1)] = self.one_of([math.nan, math.inf, -math.inf])
        return values

    def integers(self, shape, low=-5, high=5, dtype=torch.int64):
        return torch.randint(low, high + 1, shape, generator=self.generator).to(dtype)

    def numbers(self, shape):
        """Returns floats or, more rarely, integers of any dtype."""
        if self.whole(0, 3) > 0:
            return self.floats(shape)
        dtype = self.one_of([torch.int64, torch.int32, torch.uint8])
        return self.integers(shape, 0 if dtype == torch.uint8 else -5, 5, dtype)

    def bools(self, shape):
        return self.integers(shape, 0, 1).bool()

    def narrower(self, shape):
        """Returns extents that broadcast to `shape`."""
        return [1 if self.whole(0, 2) == 0 else extent for extent in shape][self.whole(0, len(shape)) if self.flag() else 0:]

    def pair_of_shapes(self, **options):
        """Returns two shapes that broadcast to each other."""
        shape = self.shape(**options)
        first, second = self.narrower(shape), self.narrower(shape)
        return (shape, second) if self.flag() else (first, second)


def pairs(values):
    """Returns two tensors with all pairs of the values."""
    tensor = torch.tensor(values, dtype=torch.float64)
    first, second = torch.meshgrid(tensor, tensor, indexing="ij")
    return first.reshape(-1), second.reshape(-1)
