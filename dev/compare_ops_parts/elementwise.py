"""Elementwise functions, and their counterparts in PyTorch."""

import torch
import torch.nn.functional as F

from compare_ops_parts.calls import EDGES, Call, Draw, op, pairs

UNARY = {
    "neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "square": torch.square,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softplus": lambda x: F.softplus(x, threshold=1e9),
    "erf": torch.erf, "cube": lambda x: torch.pow(x, 3), "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "exp2": torch.exp2,
    "expm1": torch.expm1, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sign": torch.sign, "ceil": torch.ceil,
    "floor": torch.floor, "round": torch.round, "trunc": torch.trunc, "stop_gradient": torch.detach, "log_sigmoid": F.logsigmoid,
    "softsign": F.softsign, "silu": F.silu, "mish": F.mish, "selu": F.selu, "relu6": F.relu6, "hard_sigmoid": F.hardsigmoid,
    "hard_swish": F.hardswish, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    "erfc": torch.erfc, "erfinv": torch.erfinv, "lgamma": torch.lgamma, "digamma": torch.digamma,
    "logical_not": torch.logical_not, "is_nan": torch.isnan, "is_finite": torch.isfinite,
}
# The interval from which operands are drawn, for functions that are not defined everywhere.
INTERVALS = {"log": (1e-3, 10), "sqrt": (1e-3, 10), "rsqrt": (1e-3, 10), "log2": (1e-3, 10), "log10": (1e-3, 10), "log1p": (-0.99, 10),
             "asin": (-0.99, 0.99), "acos": (-0.99, 0.99), "acosh": (1.01, 10), "atanh": (-0.99, 0.99), "erfinv": (-0.99, 0.99)}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": lambda a, b: torch.div(a, b) if a.is_floating_point() else
    torch.div(a, b, rounding_mode="trunc"), "floor_div": torch.floor_divide, "mod": torch.remainder, "pow": torch.pow,
    "maximum": torch.maximum, "minimum": torch.minimum, "hypot": torch.hypot, "atan2": torch.atan2,
    "sigmoid_cross_entropy": lambda a, b: F.binary_cross_entropy_with_logits(*torch.broadcast_tensors(a, b), reduction="none"),
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
    "left_shift": torch.bitwise_left_shift, "right_shift": torch.bitwise_right_shift,
}
ANY_NUMBERS = {"add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}
DIVISIONS = {"div", "floor_div", "mod"}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}


def edge_values():
    return torch.tensor(EDGES, dtype=torch.float64)


def add_unary(name, theirs):
    low, high = INTERVALS.get(name, (-8, 8))

    @op(name, getattr(theirs, "__name__", name).replace("<lambda>", name), lambda: [Call([edge_values()], theirs, elementwise=True)])
    def draw(random):
        return Call([random.between(random.shape(), low, high)], theirs, elementwise=True)


def add_binary(name, theirs):
    def edges():
        if name in BITS:
            return []
        values = [value for value in EDGES if abs(value) < 1e5 or value != value or abs(value) > 1e29]
        return [Call(list(pairs(values)), theirs, elementwise=True)]

    @op(name, getattr(theirs, "__name__", name).replace("<lambda>", name), edges)
    def draw(random):
        first, second = random.pair_of_shapes()
        if name in BITS or (name in DIVISIONS | ANY_NUMBERS and random.whole(0, 2) == 0):
            dtype = random.one_of([torch.int64, torch.int32, torch.uint8])
            low = 0 if dtype == torch.uint8 else -9
            b = random.integers(second, 0 if "shift" in name else low, 7, dtype)
            if name in DIVISIONS:
                b = torch.where(b == 0, torch.ones_like(b), b)
            return Call([random.integers(first, low, 9, dtype), b], theirs, elementwise=True)
        a, b = (random.ties(shape) if random.flag() else random.normal(shape, 3) for shape in (first, second))
        return Call([a.abs() if name == "pow" and random.flag() else a, b], theirs, elementwise=True)


for name, function in UNARY.items():
    add_unary(name, function)
for name, function in BINARY.items():
    add_binary(name, function)


def with_options(name, counterpart, draw_options, theirs, values=edge_values):
    """Registers a function of one value with options: `theirs` takes the value and them."""
    def call(x, options):
        return Call([x], lambda x: theirs(x, **options), options, elementwise=True)

    def edges():
        return [call(values(), draw_options(Draw(seed))) for seed in range(6)]

    @op(name, counterpart, edges)
    def draw(random):
        return call(random.normal(random.shape(), 3), draw_options(random))


with_options("gelu", "F.gelu", lambda r: {"tanh": r.flag()}, lambda x, tanh: F.gelu(x, approximate="tanh" if tanh else "none"))
with_options("leaky_relu", "F.leaky_relu", lambda r: {"slope": r.one_of([0.01, 0.0, 0.25, 1.5, -0.5])}, lambda x, slope: F.leaky_relu(x, slope))
with_options("clip", "torch.clamp", lambda r: r.one_of([{"low": -1.0, "high": 1.0}, {"low": 0.5, "high": 2.5}, {"low": -2.0, "high": -2.0}]),
             lambda x, low, high: torch.clamp(x, low, high))
with_options("hard_tanh", "F.hardtanh", lambda r: r.one_of([{"low": -1.0, "high": 1.0}, {"low": -0.5, "high": 3.0}]),
             lambda x, low, high: F.hardtanh(x, low, high))
with_options("elu", "F.elu", lambda r: {"alpha": r.one_of([1.0, 0.5, 2.0])}, lambda x, alpha: F.elu(x, alpha))
with_options("celu", "F.celu", lambda r: {"alpha": r.one_of([1.0, 0.5, 2.0])}, lambda x, alpha: F.celu(x, alpha))
with_options("polygamma", "torch.polygamma", lambda r: {"order": r.whole(0, 4)}, lambda x, order: torch.polygamma(order, x))
with_options("pow_number", "torch.pow", lambda r: {"exponent": r.one_of([0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 1.5, 4.0])},
             lambda x, exponent: torch.pow(x, exponent))


@op("cast", "Tensor.to")
def draw_cast(random):
    targets = {"float32": torch.float32, "float64": torch.float64, "int64": torch.int64, "int32": torch.int32, "bool": torch.bool,
               "bfloat16": torch.bfloat16, "float16": torch.float16}
    name = random.one_of(targets)
    x = random.one_of([lambda s: random.normal(s, 100), random.integers, random.bools])(random.shape())
    return Call([x], lambda x: x.to(targets[name]), {"dtype": name}, elementwise=True, differentiable=name.startswith("float"))


@op("bitwise_not", "torch.bitwise_not")
def draw_bitwise_not(random):
    return Call([random.integers(random.shape(), 0, 9, random.one_of([torch.int64, torch.int32, torch.uint8]))], torch.bitwise_not)


@op("prelu", "F.prelu", lambda: [Call([edge_values(), torch.tensor([0.25], dtype=torch.float64)], F.prelu)])
def draw_prelu(random):
    shape = random.shape(2, 4, empty=False)
    return Call([random.floats(shape), random.normal([random.one_of([1, shape[1]])])], F.prelu)


@op("weighted_sum", "wa * a + wb * b")
def draw_weighted_sum(random):
    first, second = random.pair_of_shapes()
    wa, wb = random.one_of([0.0, 0.5, 2.0]), random.one_of([1.0, -1.5])
    return Call([random.floats(first), random.floats(second)], lambda a, b: wa * a + wb * b, {"a": wa, "b": wb})


def where_edges():
    nan, one = torch.tensor([float("nan"), 1.0], dtype=torch.float64), torch.tensor([1.0, float("inf")], dtype=torch.float64)
    return [Call([torch.tensor([True, False]), nan, one], torch.where), Call([torch.tensor([False, True]), nan, one], torch.where)]


@op("where", "torch.where", where_edges)
def draw_where(random):
    first, second = random.pair_of_shapes()
    return Call([random.bools(random.narrower(first)), random.floats(first), random.floats(second)], torch.where)


@op("masked_fill", "Tensor.masked_fill")
def draw_masked_fill(random):
    shape, value = random.shape(), random.one_of([0.0, -1.5, float("-inf")])
    return Call([random.floats(shape), random.bools(random.narrower(shape))], lambda x, mask: x.masked_fill(mask, value), {"value": value})


@op("normalise_image", "torchvision.transforms.functional.normalize")
def draw_normalise_image(random):
    mean, deviation = [0.5, 0.25, 0.75], [0.5, 0.25, 2.0]
    spread = [torch.tensor(values, dtype=torch.float64).view(3, 1, 1) for values in (mean, deviation)]
    x = random.integers([random.whole(1, 3), 3, random.whole(1, 5), random.whole(1, 5)], 0, 255, torch.uint8)
    return Call([x], lambda x: (x.double() / 255 - spread[0]) / spread[1], {"mean": mean, "deviation": deviation, "dtype": "float64"},
                differentiable=False)
