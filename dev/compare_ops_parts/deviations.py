"""Elements in which our ops differ from PyTorch's on purpose. The others are compared."""

import dataclasses
from collections.abc import Callable

import torch

MOST_IN_FLOAT64 = 1e-10
# Larger errors in float64 are allowed where PyTorch is less exact.
TOLERANCES = {"digamma": 1e-8, "polygamma": 1e-8, "hard_sigmoid": 1e-7, "cosine_embedding": 1e-7}


@dataclasses.dataclass
class Deviation:
    op: str
    what: str  # "value" or "gradient"
    where: Callable  # of the operands and the options; returns a mask of elements
    reason: str


def is_pole(x):
    return (x <= 0) & (x == torch.floor(x))


def is_infinite(x):
    return torch.isinf(x)


def is_near_zero_of_digamma(x):
    return (x > 1.4) & (x < 1.5) if x.dtype == torch.float32 else torch.zeros_like(x, dtype=torch.bool)


DEVIATIONS = [
    Deviation("sign", "value", torch.isnan, "NaN stays NaN; PyTorch gives 0"),
    Deviation("softsign", "gradient", is_infinite, "0 at infinity, its limit; PyTorch gives NaN"),
    Deviation("acosh", "gradient", lambda x: x <= -1, "NaN where the function has no value; PyTorch gives a number"),
    Deviation("clip", "gradient", lambda x, low, high: (x == low) | (x == high),
              "passes at the bounds, as in PyTorch before 2.15, which passes none"),
    Deviation("gelu", "value", lambda x, tanh: x < -2, "x / 2 (1 + erf(x / sqrt(2))) is as exact as its largest term; PyTorch uses erfc"),
    Deviation("hypot", "gradient", lambda a, b: (a == 0) & (b == 0), "0 at (0, 0); PyTorch gives NaN"),
    Deviation("pow", "gradient", lambda a, b: (a == 0) & (b < 0), "by the exponent 0 where the base is 0; PyTorch gives -infinity"),
    Deviation("pow", "gradient", lambda a, b: (a < 0) | is_infinite(a), "by the exponent 0 where the power is 0; PyTorch gives NaN"),
    Deviation("pow", "gradient", lambda a, b: is_infinite(torch.pow(a, b) * torch.log(a)),
              "infinite where the derivative is, even if the cotangent would make it finite"),
    Deviation("pow_number", "value", lambda x, exponent: torch.isneginf(x), "infinite or 0, as in C; PyTorch takes the square root"),
    Deviation("pow_number", "gradient", lambda x, exponent: torch.isneginf(x) | ((x == 0) & torch.signbit(x)),
              "as in C; PyTorch takes the square root"),
    Deviation("lgamma", "gradient", is_pole, "NaN or infinite at the poles; PyTorch gives a large number"),
    Deviation("lgamma", "gradient", is_infinite, "the limit"),
    Deviation("digamma", "gradient", is_pole, "infinite at the poles; PyTorch gives a large number"),
    Deviation("digamma", "value", is_near_zero_of_digamma, "in float32 as exact as the largest term"),
    Deviation("polygamma", "value", lambda x, order: is_near_zero_of_digamma(x) & (order == 0), "in float32 as exact as the largest term"),
    Deviation("polygamma", "value", lambda x, order: is_pole(x) | is_infinite(x), "infinite at the poles, 0 at infinity; PyTorch gives NaN"),
    Deviation("polygamma", "gradient", lambda x, order: is_pole(x) | is_infinite(x), "infinite at the poles, 0 at infinity; PyTorch gives NaN"),
    Deviation("sigmoid_cross_entropy", "value", lambda a, b: (a.abs() > 10) | is_infinite(b),
              "exact for large logits, and 0 or infinite for infinite ones; PyTorch loses digits, or gives NaN"),
    Deviation("layer_norm", "gradient", lambda x, *rest, **options: torch.tensor(bool(rest) and rest[0].numel() == 1),
              "0 over one element; PyTorch leaves a rounding error"),
    Deviation("interpolate", "gradient", lambda x, mode, size=(), scale=(), align_corners=False: torch.tensor(mode == "nearest" and scale != ()),
              "the derivative of the value; PyTorch's takes other pixels for a scale that does not divide"),
]
NAN_OPERAND = "elementwise ops: the gradient of an operand that is NaN; PyTorch's depends on the op"


def left_out(op, what, one):
    """Returns a mask of the elements of a result that are not compared, or None."""
    masks = [found.where(*one.inputs, **one.call.options) for found in DEVIATIONS if (found.op, found.what) == (op, what)]
    if what == "gradient" and one.call.elementwise:
        masks += [torch.isnan(value) for value in one.inputs if value.is_floating_point()]
    if not masks:
        return None
    joined = masks[0]
    for mask in masks[1:]:
        joined = joined | mask
    return joined


def tolerance(op):
    return TOLERANCES.get(op, MOST_IN_FLOAT64)


# Ops of docs/reference/ops.md that are not compared: PyTorch has no function with the same result, or draws other random numbers.
WITHOUT_COUNTERPART = ["mul_no_nan", "pow_log", "rotary", "fold", "moments", "normalise", "uniform", "normal", "dropout", "dropout1d",
                       "dropout2d", "dropout3d", "drop_path", "argcummax", "argcummin"]
