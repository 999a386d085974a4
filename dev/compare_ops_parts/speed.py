"""Times calls of ops with 10^5 elements or more, with Plexaura and PyTorch in turns."""

import pathlib
import statistics
import subprocess
import time

import torch

from compare_ops_parts import comparing, elementwise, losses, moving, reductions, windows  # noqa: F401
from compare_ops_parts.calls import OPS, Call, Draw

ELEMENTS = 1 << 18
SECONDS = 0.01  # of one turn of one program
FUNCTIONS = sorted({*elementwise.UNARY, "gelu", "leaky_relu", "clip", "hard_tanh", "elu", "celu", "pow_number"} - {"stop_gradient"})
PAIRS = sorted(set(elementwise.BINARY) - elementwise.BITS)
REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "logsumexp": torch.logsumexp, "var": torch.var,
              "std_dev": torch.std, "norm": lambda x, axes: torch.linalg.vector_norm(x, 2, axes)}
ROW_FUNCTIONS = {"softmax": torch.softmax, "log_softmax": torch.log_softmax, "cumsum": torch.cumsum, "cumprod": torch.cumprod,
                 "argmax": torch.argmax, "argmin": torch.argmin, "cummax": torch.cummax, "sort": torch.sort, "argsort": torch.argsort}


def positive(shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)) * 0.9 + 0.05


def call_of_function(name):
    x = positive([ELEMENTS]) + (1.5 if name == "acosh" else 0)
    if name in elementwise.UNARY:
        return Call([x], elementwise.UNARY[name])
    drawn = OPS[name].draw(Draw(3))
    return Call([x], drawn.theirs, drawn.options)


def add_calls(calls):
    for name in FUNCTIONS:
        calls[name] = call_of_function(name)
    for name in PAIRS:
        calls[name] = Call([positive([ELEMENTS]), positive([ELEMENTS]).flip(0)], elementwise.BINARY[name])
    for name in ("add", "mul", "maximum"):
        calls[f"{name} of a column"] = Call([positive([512, 512]), positive([512, 1])], elementwise.BINARY[name])
        calls[f"{name} of a row"] = Call([positive([512, 512]), positive([512])], elementwise.BINARY[name])
    for name, theirs in REDUCTIONS.items():
        for axis, label in ((0, "columns"), (1, "rows")):
            calls[f"{name} of {label}"] = Call([positive([512, 512])], lambda x, theirs=theirs, axis=axis: theirs(x, (axis,)), {"axes": [axis]})
    for name, theirs in ROW_FUNCTIONS.items():
        for axis, label in ((0, "columns"), (1, "rows")):
            calls[f"{name} of {label}"] = Call([positive([512, 512])], lambda x, theirs=theirs, axis=axis: theirs(x, dim=axis), {"axis": axis})


def add_moving(calls):
    x, square = positive([ELEMENTS]), positive([512, 512])
    indices = torch.randint(0, 512, (512,), generator=torch.Generator().manual_seed(2))
    per_element = torch.randint(0, 512, (512, 512), generator=torch.Generator().manual_seed(2))
    mask = square > 0.5
    calls.update({
        "where": Call([mask, square, square.flip(0)], torch.where),
        "masked_fill": Call([square, mask], lambda x, mask: x.masked_fill(mask, 0.0), {"value": 0.0}),
        "cast to float64": Call([x], lambda x: x.double(), {"dtype": "float64"}),
        "cast to int64": Call([x], lambda x: x.long(), {"dtype": "int64"}),
        "permute": Call([square], lambda x: x.permute(1, 0).contiguous(), {"axes": [1, 0]}),
        "permute of 3 axes": Call([positive([64, 64, 64])], lambda x: x.permute(2, 0, 1).contiguous(), {"axes": [2, 0, 1]}),
        "broadcast_to": Call([positive([512, 1])], lambda x: x.broadcast_to(512, 512).contiguous(), {"shape": [512, 512]}),
        "slice": Call([square], lambda x: x[:, 1:500:2].contiguous(), {"axis": 1, "start": 1, "stop": 500, "step": 2}),
        "concat": Call([square, square], lambda a, b: torch.cat([a, b], 1), {"axis": 1}),
        "flip": Call([square], lambda x: torch.flip(x, [1]), {"axes": [1]}),
        "roll": Call([square], lambda x: torch.roll(x, [5], [1]), {"shifts": [5], "axes": [1]}),
        "tile": Call([square], lambda x: torch.tile(x, [2, 2]), {"repeats": [2, 2]}),
        "triu": Call([square], torch.triu),
        "pad": Call([positive([4, 16, 64, 64])], lambda x: torch.nn.functional.pad(x, [1, 1, 1, 1]),
                    {"widths": [2, 1, 1, 3, 1, 1], "mode": "constant"}),
        "gather of rows": Call([square, indices], lambda x, i: torch.index_select(x, 0, i), {"axis": 0}),
        "gather of columns": Call([square, indices], lambda x, i: torch.index_select(x, 1, i), {"axis": 1}),
        "take_along_axis": Call([square, per_element], lambda x, i: torch.take_along_dim(x, i, 1), {"axis": 1}),
        "scatter": Call([square, per_element, square], lambda x, i, y: torch.scatter(x, 1, i, y), {"axis": 1}),
        "scatter_add": Call([square, per_element, square], lambda x, i, y: torch.scatter_add(x, 1, i, y), {"axis": 1}),
        "unfold": Call([square], lambda x: x.unfold(1, 3, 1).contiguous(), {"axis": 1, "size": 3, "step": 1}),
        "one_hot": Call([per_element[:, :4].contiguous()], lambda i: torch.nn.functional.one_hot(i, 512).float(),
                        {"classes": 512, "dtype": "float32"}),
    })


def add_layers(calls):
    F, image, line = torch.nn.functional, positive([8, 16, 48, 48]), positive([512, 512])
    volume, scale, shift = positive([2, 16, 16, 24, 24]), positive([16]), positive([16])
    calls.update({
        "matmul": Call([line, line], torch.matmul),
        "conv2d": Call([image, positive([16, 16, 3, 3])], lambda x, w: F.conv2d(x, w, padding=1), {"padding": [1, 1]}),
        "conv1d": Call([positive([8, 32, 1024]), positive([32, 32, 3])], lambda x, w: F.conv1d(x, w, padding=1), {"padding": [1]}),
        "conv_transpose2d": Call([image, positive([16, 16, 3, 3])], F.conv_transpose2d),
        "conv3d": Call([volume, positive([16, 16, 3, 3, 3])], lambda x, w: F.conv3d(x, w, padding=1), {"padding": [1, 1, 1]}),
        "conv_transpose3d": Call([volume, positive([16, 16, 3, 3, 3])], F.conv_transpose3d),
        "max_pool2d": Call([image], lambda x: F.max_pool2d(x, 2), {"kernel": [2, 2]}),
        "avg_pool2d": Call([image], lambda x: F.avg_pool2d(x, 2), {"kernel": [2, 2], "count_include_pad": True}),
        "max_pool1d": Call([positive([16, 32, 1024])], lambda x: F.max_pool1d(x, 2), {"kernel": [2]}),
        "max_pool3d": Call([positive([4, 8, 16, 32, 32])], lambda x: F.max_pool3d(x, 2), {"kernel": [2, 2, 2]}),
        "avg_pool3d": Call([positive([4, 8, 16, 32, 32])], lambda x: F.avg_pool3d(x, 2), {"kernel": [2, 2, 2], "count_include_pad": True}),
        "adaptive_avg_pool2d": Call([image], lambda x: F.adaptive_avg_pool2d(x, 7), {"output": [7, 7]}),
        "layer_norm": Call([line, positive([512]), positive([512])], lambda x, a, b: F.layer_norm(x, [512], a, b)),
        "rms_norm": Call([line, positive([512])], lambda x, a: F.rms_norm(x, [512], a)),
        "batch_norm": Call([image, scale, shift], lambda x, a, b: F.batch_norm(x, None, None, a, b, True)),
        "group_norm": Call([image, scale, shift], lambda x, a, b: F.group_norm(x, 4, a, b), {"groups": 4}),
        "softmax_cross_entropy": Call([line, torch.arange(512)], F.cross_entropy),
        "mse": Call([line, line.flip(0)], F.mse_loss),
        "l1": Call([line, line.flip(0)], F.l1_loss),
        "smooth_l1": Call([line, line.flip(0)], F.smooth_l1_loss),
        "interpolate": Call([image], lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), {"scale": [2.0, 2.0], "mode": "bilinear"}),
        "embedding": Call([line, torch.arange(512)], lambda w, i: F.embedding(i, w)),
        "scaled_dot_product_attention": Call([positive([8, 256, 64])] * 3, F.scaled_dot_product_attention),
    })


CALLS = {}
add_calls(CALLS)
add_moving(CALLS)
add_layers(CALLS)


def theirs_once(one):
    """Returns a function that computes PyTorch's value and gradients."""
    leaves = [value.clone().requires_grad_(place in one.wrt) for place, value in enumerate(one.inputs)]
    reached = list(one.cotangents) if one.wrt else []

    def run():
        found = one.call.theirs(*leaves)
        outputs = list(found) if isinstance(found, (tuple, list)) else [found]
        if reached:
            torch.autograd.grad([outputs[place] for place in reached], [leaves[place] for place in one.wrt],
                                [one.cotangents[place] for place in reached], allow_unused=True)
    return run


def seconds_of(run, runs):
    start = time.process_time()
    for _ in range(runs):
        run()
    return (time.process_time() - start) / runs


def measure(program, backend, folder, names, rounds, precision):
    """Yields for each call its name and the medians of the processor's seconds of one run, ours and theirs."""
    torch.set_num_threads(1)
    path = pathlib.Path(folder) / "calls.safetensors"
    for name in names:
        one = comparing.prepare("0", CALLS[name], precision, 0)
        if one.error:
            print(f"{name}: PyTorch refuses: {one.error}")
            continue
        comparing.write_calls(path, name.split()[0], [one])
        times = turns(program, backend, path, theirs_once(one), rounds)
        if times is None:
            print(f"{name}: cannot be timed")
        else:
            yield name, *times


def turns(program, backend, path, theirs, rounds):
    with subprocess.Popen([program, path, "--times", "--backend", backend], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        def ours(runs):
            process.stdin.write(f"0 {runs}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            return float(line) if line else None

        if ours(2) is None:
            return None
        runs = [max(1, min(1000, int(SECONDS / max(seconds, 1e-6)))) for seconds in (ours(2), min(seconds_of(theirs, 2), seconds_of(theirs, 2)))]
        found = [(ours(runs[0]), seconds_of(theirs, runs[1])) for _ in range(rounds)]
        process.stdin.close()
    return statistics.median(one for one, _ in found), statistics.median(other for _, other in found)
