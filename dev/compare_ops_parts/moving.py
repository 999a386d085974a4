"""Ops that move and select elements, and their counterparts in PyTorch."""

import math

import torch
import torch.nn.functional as F

from compare_ops_parts.calls import Call, op


@op("reshape", "torch.reshape")
def draw_reshape(random):
    x = random.numbers(random.shape())
    shape = random.one_of([[x.numel()], [1, x.numel()], list(x.shape)[::-1], [*x.shape, 1]] + ([[-1]] if x.numel() else []))
    return Call([x], lambda x: x.reshape(shape), {"shape": shape})


@op("flatten", "torch.flatten")
def draw_flatten(random):
    return Call([random.numbers(random.shape(2, empty=False))], lambda x: torch.flatten(x, 1))


@op("broadcast_to", "torch.broadcast_to")
def draw_broadcast_to(random):
    shape = random.shape()
    return Call([random.numbers(random.narrower(shape))], lambda x: torch.broadcast_to(x, shape), {"shape": shape})


@op("permute", "torch.permute")
def draw_permute(random):
    x = random.numbers(random.shape(1))
    axes = torch.randperm(x.dim(), generator=random.generator).tolist()
    axes = [axis - x.dim() if random.flag() else axis for axis in axes]
    return Call([x], lambda x: x.permute(axes), {"axes": axes})


@op("squeeze", "torch.squeeze")
def draw_squeeze(random):
    x = random.numbers(random.shape(1))
    axes = random.axes(x.dim())
    return Call([x], lambda x: torch.squeeze(x, tuple(axes)) if axes else torch.squeeze(x), {"axes": axes})


@op("unsqueeze", "torch.unsqueeze")
def draw_unsqueeze(random):
    x = random.numbers(random.shape())
    axis = random.whole(-x.dim() - 1, x.dim())
    return Call([x], lambda x: torch.unsqueeze(x, axis), {"axis": axis})


@op("transpose", "torch.transpose")
def draw_transpose(random):
    x = random.numbers(random.shape(1))
    a, b = random.axis(x.dim()), random.axis(x.dim())
    return Call([x], lambda x: torch.transpose(x, a, b), {"a": a, "b": b})


@op("tile", "torch.tile")
def draw_tile(random):
    repeats = [random.whole(0 if random.whole(0, 5) == 0 else 1, 3) for _ in range(random.whole(1, 3))]
    return Call([random.numbers(random.shape(0, 3))], lambda x: torch.tile(x, repeats), {"repeats": repeats})


@op("expand_as", "Tensor.expand_as")
def draw_expand_as(random):
    shape = random.shape()
    return Call([random.floats(random.narrower(shape)), random.floats(shape)], lambda x, like: x.expand_as(like))


@op("slice", "x[start:stop:step]")
def draw_slice(random):
    x = random.numbers(random.shape(1))
    axis = random.axis(x.dim())
    options = {name: random.whole(-7, 7) for name in ("start", "stop") if random.flag()}
    step = random.whole(1, 3)

    def theirs(x):
        return x[(slice(None),) * (axis % x.dim()) + (slice(options.get("start"), options.get("stop"), step),)]
    return Call([x], theirs, {"axis": axis, **options, "step": step})


def parts(random, shape, axis, dtype_of):
    return [dtype_of([random.whole(0, 3) if place == axis % len(shape) else extent for place, extent in enumerate(shape)])
            for _ in range(random.whole(1, 3))]


@op("concat", "torch.cat")
def draw_concat(random):
    shape = random.shape(1)
    axis = random.axis(len(shape))
    return Call(parts(random, shape, axis, random.floats), lambda *parts: torch.cat(parts, axis), {"axis": axis})


@op("stack", "torch.stack")
def draw_stack(random):
    shape = random.shape()
    axis = random.whole(-len(shape) - 1, len(shape))
    return Call([random.floats(shape) for _ in range(random.whole(1, 3))], lambda *parts: torch.stack(parts, axis), {"axis": axis})


@op("split", "torch.split")
def draw_split(random):
    x, size = random.numbers(random.shape(1, empty=False)), random.whole(1, 4)
    axis = random.axis(x.dim())
    return Call([x], lambda x: torch.split(x, size, axis), {"size": size, "axis": axis})


@op("split_with_sizes", "torch.split_with_sizes")
def draw_split_with_sizes(random):
    x = random.numbers(random.shape(1))
    axis = random.axis(x.dim())
    first = random.whole(0, x.shape[axis])
    sizes = [first, x.shape[axis] - first]
    return Call([x], lambda x: torch.split_with_sizes(x, sizes, axis), {"sizes": sizes, "axis": axis})


@op("chunk", "torch.chunk")
def draw_chunk(random):
    x, count = random.numbers(random.shape(1)), random.whole(1, 5)
    axis = random.axis(x.dim())
    return Call([x], lambda x: torch.chunk(x, count, axis), {"count": count, "axis": axis})


def chosen(random, shape, extent):
    return random.integers(shape, 0, extent - 1)


@op("gather", "numpy.take")
def draw_gather(random):
    x = random.numbers(random.shape(1, 3, empty=False))
    axis, shape = random.axis(x.dim()), random.shape(0, 2)

    def theirs(x, indices):
        place = axis % x.dim()
        return torch.index_select(x, place, indices.reshape(-1)).reshape([*x.shape[:place], *shape, *x.shape[place + 1:]])
    return Call([x, chosen(random, shape, x.shape[axis])], theirs, {"axis": axis})


@op("embedding", "F.embedding")
def draw_embedding(random):
    rows = random.whole(1, 5)
    options = {"padding": random.whole(-rows, rows - 1)} if random.flag() else {}
    return Call([random.normal([rows, random.whole(1, 4)]), chosen(random, random.shape(), rows)],
                lambda weights, indices: F.embedding(indices, weights, options.get("padding")), options)


@op("take_along_axis", "torch.take_along_dim")
def draw_take_along_axis(random):
    x = random.numbers(random.shape(1, empty=False))
    axis = random.axis(x.dim())
    shape = [random.one_of([1, extent]) for extent in x.shape]
    shape[axis] = random.whole(0, 4)
    return Call([x, chosen(random, shape, x.shape[axis])], lambda x, indices: torch.take_along_dim(x, indices, axis), {"axis": axis})


@op("index_select", "torch.index_select")
def draw_index_select(random):
    x = random.numbers(random.shape(1, empty=False))
    axis = random.axis(x.dim())
    return Call([x, chosen(random, [random.whole(0, 5)], x.shape[axis])], lambda x, indices: torch.index_select(x, axis, indices), {"axis": axis})


def scattering(random, repeats):
    x = random.floats(random.shape(1, 3, empty=False))
    axis = random.axis(x.dim())
    order = torch.rand(x.shape, generator=random.generator).argsort(axis)
    indices = chosen(random, list(x.shape), x.shape[axis]) if repeats else order.narrow(axis, 0, random.whole(1, x.shape[axis])).contiguous()
    return x, indices, random.floats(list(indices.shape)), axis


@op("scatter", "torch.scatter, each index once")
def draw_scatter(random):
    x, indices, updates, axis = scattering(random, False)
    return Call([x, indices, updates], lambda x, indices, updates: torch.scatter(x, axis, indices, updates), {"axis": axis})


@op("scatter_add", "torch.scatter_add")
def draw_scatter_add(random):
    x, indices, updates, axis = scattering(random, True)
    return Call([x, indices, updates], lambda x, indices, updates: torch.scatter_add(x, axis, indices, updates), {"axis": axis})


@op("flip", "torch.flip")
def draw_flip(random):
    x = random.numbers(random.shape(1))
    axes = random.axes(x.dim())
    return Call([x], lambda x: torch.flip(x, axes or list(range(x.dim()))), {"axes": axes})


@op("roll", "torch.roll")
def draw_roll(random):
    x = random.numbers(random.shape(1))
    axes = random.axes(x.dim())
    shifts = [random.whole(-7, 7) for _ in axes] or [random.whole(-7, 7)]
    return Call([x], lambda x: torch.roll(x, shifts, axes), {"shifts": shifts, "axes": axes})


for name in ("triu", "tril"):
    @op(name, f"torch.{name}")
    def draw_triangle(random, name=name):
        diagonal = random.whole(-4, 4)
        return Call([random.numbers(random.shape(2))], lambda x: getattr(torch, name)(x, diagonal), {"diagonal": diagonal})


@op("diagonal", "torch.diagonal")
def draw_diagonal(random):
    x, offset = random.numbers(random.shape(2)), random.whole(-3, 3)
    rows, columns = torch.randperm(x.dim(), generator=random.generator).tolist()[:2]
    return Call([x], lambda x: torch.diagonal(x, offset, rows, columns), {"offset": offset, "row_axis": rows, "column_axis": columns})


@op("unfold", "Tensor.unfold")
def draw_unfold(random):
    x = random.numbers(random.shape(1, empty=False))
    axis = random.axis(x.dim())
    size, step = random.whole(1, x.shape[axis]), random.whole(1, 3)
    return Call([x], lambda x: x.unfold(axis, size, step), {"axis": axis, "size": size, "step": step})


@op("pad", "F.pad")
def draw_pad(random):
    mode = random.one_of(["constant", "reflect", "replicate", "circular"])
    axes = random.whole(1, 3)
    x = random.floats([2, 2, *(random.whole(2, 5) for _ in range(axes))])
    most = {"constant": 4, "reflect": 1, "replicate": 4, "circular": 2}[mode]
    widths = [[random.whole(0, most), random.whole(0, most)] for _ in range(axes)]
    flat = [width for pair in reversed(widths) for width in pair]
    value = random.one_of([0.0, 1.5, math.inf]) if mode == "constant" else 0.0
    ours = [number for axis, pair in enumerate(widths) for number in (axis - axes, *pair)]
    return Call([x], lambda x: F.pad(x, flat, mode, value if mode == "constant" else None), {"widths": ours, "mode": mode, "value": value})


@op("iota", "torch.arange")
def draw_iota(random):
    count = random.whole(0, 9)
    return Call([], lambda: torch.arange(count), {"count": count, "dtype": "int64"})


@op("eye", "torch.eye")
def draw_eye(random):
    rows, columns = random.whole(0, 4), random.whole(0, 4)
    return Call([], lambda: torch.eye(rows, columns, dtype=torch.float64), {"rows": rows, "columns": columns, "dtype": "float64"})
