"""Computes calls with Plexaura and with PyTorch, and compares values and gradients."""

import dataclasses
import math
import pathlib
import subprocess

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tool import Mistake

from compare_ops_parts.calls import Draw
from compare_ops_parts.deviations import left_out, tolerance

MOST_RATIO = 8  # of our error in float32 to PyTorch's, or to the rounding of one number if that is larger
PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
SMALLEST = {"float64": 1e-300, "float32": 1e-30}
# An error of a gradient is divided by the gradient, but by no number below these, since gradients are sums of terms that may cancel, times
# cotangents around 1.
SMALLEST_GRADIENT = {"float64": 1e-3, "float32": 1}


@dataclasses.dataclass
class Finding:
    """A result of one call that differs."""
    op: str
    precision: str
    what: str  # "value 0" or "gradient 1"
    detail: str


@dataclasses.dataclass
class Row:
    """The line of an op in the table."""
    op: str
    counterpart: str
    cases: int = 0
    value: float = 0.0  # largest error in float64
    gradient: float = 0.0
    ratio: float = 0.0  # largest ratio of our error in float32 to PyTorch's
    on_purpose: int = 0  # elements that are left out, because they differ on purpose
    findings: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Prepared:
    """A call in one precision, with PyTorch's results."""
    name: str
    precision: str
    call: object
    inputs: list
    outputs: list
    cotangents: dict
    wrt: list
    gradients: dict
    error: str = ""


def text_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(one) for one in value)
    return str(value)


def computed(call, inputs, wrt, cotangents):
    """Returns PyTorch's outputs and gradients."""
    leaves = [value.clone().requires_grad_(place in wrt) if value.is_floating_point() else value for place, value in enumerate(inputs)]
    found = call.theirs(*leaves)
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    gradients = {place: torch.zeros_like(inputs[place]) for place in wrt}
    reached = [place for place in cotangents if outputs[place].requires_grad]
    if reached:
        found = torch.autograd.grad([outputs[place] for place in reached], [leaves[place] for place in wrt],
                                    [cotangents[place].to(outputs[place].dtype) for place in reached], allow_unused=True)
        gradients.update({place: value for place, value in zip(wrt, found) if value is not None})
    return [value.detach() for value in outputs], gradients


def prepare(name, call, precision, seed):
    """Returns the call with float64 or float32 operands, and PyTorch's results of that precision."""
    dtype = PRECISIONS[precision]
    inputs = [value.to(dtype) if value.is_floating_point() else value for value in call.inputs]
    wrt = call.wrt if call.wrt is not None else [place for place, value in enumerate(inputs) if value.is_floating_point()]
    wrt = wrt if call.differentiable else []
    try:
        plain = call.theirs(*inputs)
    except (RuntimeError, ValueError, IndexError) as error:
        return Prepared(name, precision, call, inputs, [], {}, [], {}, str(error).splitlines()[0])
    plain = list(plain) if isinstance(plain, (tuple, list)) else [plain]
    random = Draw(seed)
    cotangents = {place: random.normal(list(value.shape)).to(value.dtype) for place, value in enumerate(plain) if value.is_floating_point() and wrt}
    wrt = wrt if cotangents else []
    try:
        outputs, gradients = computed(call, inputs, wrt, cotangents)
    except RuntimeError:  # PyTorch has no gradient
        wrt, cotangents = [], {}
        outputs, gradients = computed(call, inputs, wrt, cotangents)
    return Prepared(name, precision, call, inputs, outputs, cotangents, wrt, gradients)


def write_calls(path, op, prepared):
    tensors, texts = {}, {}
    for one in prepared:
        options = {**one.call.options, **({"wrt": one.wrt} if one.wrt else {})}
        words = [f"{name}={text_of(value)}" for name, value in options.items() if not (isinstance(value, (list, tuple)) and not value)]
        texts[one.name] = " ".join([op, *words])
        tensors.update({f"{one.name}.input.{place}": value.contiguous().clone() for place, value in enumerate(one.inputs)})
        tensors.update({f"{one.name}.cotangent.{place}": value.contiguous().clone() for place, value in one.cotangents.items()})
    save_file(tensors, path, texts)


def ours(program, backend, folder, op, prepared):
    """Returns our tensors and errors by name."""
    calls, result = pathlib.Path(folder) / "calls.safetensors", pathlib.Path(folder) / "results.safetensors"
    write_calls(calls, op, prepared)
    result.unlink(missing_ok=True)
    done = subprocess.run([program, calls, result, "--backend", backend], capture_output=True, text=True)
    if done.returncode < 0:
        return {}, {one.name: f"the program ended with signal {-done.returncode}" for one in prepared}
    if done.returncode != 0:
        raise Mistake(f"{program.name} failed: {done.stderr.strip()}")
    with safe_open(result, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})


def error_of(found, wanted, scales):
    """Returns the largest error, or a text if the values differ in kind: type, shape, NaN or infinity."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype} {list(found.shape)} and not {wanted.dtype} {list(wanted.shape)}"
    if not found.is_floating_point():
        return 0.0 if torch.equal(found, wanted) else f"{found.flatten()[:8].tolist()} and not {wanted.flatten()[:8].tolist()}"
    found, wanted = found.double().flatten(), wanted.double().flatten()
    odd = ~(torch.isfinite(found) & torch.isfinite(wanted))
    wrong = odd & ~((found == wanted) | (torch.isnan(found) & torch.isnan(wanted)))
    if wrong.any():
        places = wrong.nonzero().flatten()[:6].tolist()
        return f"at {places}: {found[wrong][:6].tolist()} and not {wanted[wrong][:6].tolist()}"
    found, wanted = found[~odd], wanted[~odd]
    if found.numel() == 0:
        return 0.0
    return float(((found - wanted).abs() / scales(wanted)).max())


def scales_of(one, what):
    """Returns the function that gives the numbers by which errors are measured: each element, or the largest one."""
    if what.startswith("gradient"):
        return lambda wanted: (wanted.abs() if one.call.elementwise else wanted.abs().max()).clamp(min=SMALLEST_GRADIENT[one.precision])
    if one.call.elementwise:
        return lambda wanted: wanted.abs().clamp(min=SMALLEST[one.precision])
    return lambda wanted: wanted.abs().max().clamp(min=1e-6)


def tensors_of(one):
    yield from ((f"value {place}", f"output.{place}", value) for place, value in enumerate(one.outputs))
    yield from ((f"gradient {place}", f"gradient.{place}", value) for place, value in one.gradients.items())


def found_of(row, one, what, key, theirs, found):
    """Returns our tensor, with their elements where both differ on purpose. A gradient that we do not give is 0."""
    value = found.get(f"{one.name}.{key}", torch.zeros_like(theirs) if what.startswith("gradient") else torch.empty(0, dtype=torch.bool))
    mask = left_out(row.op, what.split()[0], one)
    if mask is None or not mask.any() or value.shape != theirs.shape:
        return value, None
    is_wider = mask.numel() > value.numel() or mask.dim() > value.dim()
    mask = mask.long().sum_to_size(value.shape) > 0 if is_wider else mask.broadcast_to(value.shape)
    row.on_purpose += int(mask.sum())
    return torch.where(mask, theirs, value), mask


def judge_float64(row, one, found):
    for what, key, wanted in tensors_of(one):
        value, _ = found_of(row, one, what, key, wanted, found)
        error = error_of(value, wanted, scales_of(one, what))
        if isinstance(error, str) or error > tolerance(row.op):
            row.findings.append(Finding(row.op, one.precision, what, f"{describe(one)}: {worst(error, value, wanted, one)}"))
        elif what.startswith("value"):
            row.value = max(row.value, error)
        else:
            row.gradient = max(row.gradient, error)


def judge_float32(row, one, found):
    """Our errors in float32 are compared with PyTorch's, both measured by PyTorch's results in float64."""
    exact = prepare(one.name, one.call, "float64", 0)
    outputs, gradients = computed(one.call, exact.inputs, one.wrt, one.cotangents)
    wanted = {f"output.{place}": value for place, value in enumerate(outputs)}
    wanted.update({f"gradient.{place}": value for place, value in gradients.items()})
    for what, key, theirs in tensors_of(one):
        value, mask = found_of(row, one, what, key, theirs, found)
        measure = wanted[key].to(theirs.dtype)
        if mask is not None:
            measure = torch.where(mask, theirs, measure)
        our_error, their_error = (error_of(either, measure, scales_of(one, what)) for either in (value, theirs))
        if isinstance(our_error, str):
            if isinstance(error_of(value, theirs, scales_of(one, what)), str):
                row.findings.append(Finding(row.op, one.precision, what, f"{describe(one)}: {our_error}"))
            continue
        ratio = our_error / max(their_error if not isinstance(their_error, str) else 0.0, 1.2e-7)
        if ratio > MOST_RATIO:
            detail = f"{describe(one)}: {ratio:.1f} times their error; {worst(our_error, value, measure, one)}"
            row.findings.append(Finding(row.op, one.precision, what, detail))
        else:
            row.ratio = max(row.ratio, ratio)


def worst(error, value, wanted, one):
    if isinstance(error, str):
        return error
    value, wanted = value.double().flatten(), wanted.double().flatten()
    difference = (value - wanted).abs() / (wanted.abs().clamp(min=SMALLEST[one.precision]) if one.call.elementwise else 1)
    place = int(torch.nan_to_num(difference, nan=-1.0, posinf=math.inf).argmax())
    operands = [operand.flatten()[place].item() for operand in one.inputs if operand.numel() == value.numel()]
    return f"error {error:.1e}: {value[place]:.9g} and not {wanted[place]:.9g}, operands {operands}"


def describe(one):
    shapes = " ".join(f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}" for value in one.inputs)
    options = " ".join(f"{name}={text_of(value)}" for name, value in one.call.options.items())
    return f"{shapes} {options}".strip()


def compare(program, backend, folder, entry, cases, seed):
    """Returns the row of an op."""
    row = Row(entry.name, entry.counterpart)
    calls = entry.edges() + [entry.draw(Draw(seed * 100003 + number * 31 + len(entry.name))) for number in range(cases)]
    prepared = []
    for number, call in enumerate(calls):
        floating = any(value.is_floating_point() for value in call.inputs)
        prepared += [prepare(f"{number}_{precision}", call, precision, seed + number) for precision in (PRECISIONS if floating else ["float64"])]
    tensors, errors = ours(program, backend, folder, entry.name, prepared)
    row.cases = len(calls)
    for one in prepared:
        refused = errors.get(one.name)
        if refused and one.error:
            continue
        if refused or one.error:
            text = f"ours refuses: {refused}" if refused else f"theirs refuses: {one.error}"
            row.findings.append(Finding(row.op, one.precision, "refusal", f"{describe(one)}: {text}"))
        elif one.precision == "float64":
            judge_float64(row, one, tensors)
        else:
            judge_float32(row, one, tensors)
    return row
