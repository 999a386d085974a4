"""Reductions, cumulative ops, orders, products and linear algebra, and their counterparts in PyTorch."""

import math

import torch

from compare_ops_parts.calls import Call, op


def reducing(random, x, theirs, **options):
    """Returns a call of a reduction over some axes: `theirs` takes x, dim and keepdim."""
    axes, keepdims = random.axes(x.dim()), random.flag()
    dim = tuple(axes) if axes else tuple(range(x.dim()))
    return Call([x], lambda x: theirs(x, dim, keepdims), {"axes": axes, "keepdims": keepdims, **options})


def kept(x, value, dim, keepdims):
    """Returns the reduced value, of a function which reduces one axis after the other."""
    return value if keepdims else value.reshape([extent for axis, extent in enumerate(x.shape) if axis not in
                                                 {one % x.dim() for one in dim}])


def product(x, dim, keepdims):
    value = x
    for axis in dim:
        value = torch.prod(value, axis, True, dtype=x.dtype)
    return kept(x, value, dim, keepdims)


@op("sum", "torch.sum")
def draw_sum(random):
    return reducing(random, random.numbers(random.shape()), lambda x, dim, keep: torch.sum(x, dim, keep, dtype=x.dtype))


@op("mean", "torch.mean")
def draw_mean(random):
    return reducing(random, random.floats(random.shape()), torch.mean)


@op("max", "torch.amax")
def draw_max(random):
    return reducing(random, random.numbers(random.shape(empty=False)), torch.amax)


@op("min", "torch.amin")
def draw_min(random):
    return reducing(random, random.numbers(random.shape(empty=False)), torch.amin)


@op("prod", "torch.prod")
def draw_prod(random):
    x = random.numbers(random.shape(most_rank=3))
    return reducing(random, torch.nan_to_num(x, nan=0.0, posinf=2.0, neginf=-2.0), product)


@op("logsumexp", "torch.logsumexp")
def draw_logsumexp(random):
    return reducing(random, random.floats(random.shape()), torch.logsumexp)


@op("any", "torch.any")
def draw_any(random):
    return reducing(random, random.one_of([random.bools, random.ties])(random.shape(1)), torch.any)


@op("all", "torch.all")
def draw_all(random):
    return reducing(random, random.one_of([random.bools, random.ties])(random.shape(1)), torch.all)


def varying(random, theirs):
    """Returns a call of a variance over axes that have more elements than the correction."""
    x, correction = random.normal(random.shape(empty=False)), random.whole(0, 1)
    call = reducing(random, x, lambda x, dim, keep: theirs(x, dim, correction=correction, keepdim=keep), correction=correction)
    axes = call.options["axes"] or range(x.dim())
    if math.prod(x.shape[axis] for axis in axes) > correction:
        return call
    return varying(random, theirs)


@op("var", "torch.var")
def draw_var(random):
    return varying(random, torch.var)


@op("std_dev", "torch.std")
def draw_std(random):
    return varying(random, torch.std)


@op("norm", "torch.linalg.vector_norm")
def draw_norm(random):
    p = random.one_of([2.0, 1.0, 3.0, 0.5, 1.5, 0.0, math.inf, -math.inf, -1.0, -2.0])
    x = random.ties(random.shape(1, empty=False)) if random.flag() and p > 0 else random.normal(random.shape(1, empty=False))
    return reducing(random, x, lambda x, dim, keep: torch.linalg.vector_norm(x, p, dim, keep), p=p)


@op("sum_to", "Tensor.sum_to_size")
def draw_sum_to(random):
    shape = random.shape()
    target = random.narrower(shape)
    return Call([random.floats(shape)], lambda x: x.sum_to_size(target), {"shape": target})


def along(random, x, theirs, **options):
    axis = random.axis(x.dim())
    return Call([x], lambda x: theirs(x, axis), {"axis": axis, **options})


@op("argmax", "torch.argmax")
def draw_argmax(random):
    keep = random.flag()
    return along(random, random.numbers(random.shape(1, empty=False)), lambda x, axis: torch.argmax(x, axis, keep), keepdims=keep)


@op("argmin", "torch.argmin")
def draw_argmin(random):
    keep = random.flag()
    return along(random, random.numbers(random.shape(1, empty=False)), lambda x, axis: torch.argmin(x, axis, keep), keepdims=keep)


@op("cumsum", "torch.cumsum")
def draw_cumsum(random):
    return along(random, random.numbers(random.shape(1)), lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype))


@op("cumprod", "torch.cumprod")
def draw_cumprod(random):
    return along(random, random.numbers(random.shape(1)), lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype))


@op("cummax", "torch.cummax")
def draw_cummax(random):
    return along(random, random.numbers(random.shape(1, empty=False)), torch.cummax)


@op("cummin", "torch.cummin")
def draw_cummin(random):
    return along(random, random.numbers(random.shape(1, empty=False)), torch.cummin)


def recurrence(a, b, axis):
    rows = []
    for left, right in zip(a.unbind(axis), b.unbind(axis)):
        rows.append(left * rows[-1] + right if rows else right)
    return torch.stack(rows, axis) if rows else b.clone()


@op("linear_recurrence", "a loop")
def draw_recurrence(random):
    shape = random.shape(1, empty=False)
    axis = random.axis(len(shape))
    return Call([random.normal(shape), random.normal(shape)], lambda a, b: recurrence(a, b, axis), {"axis": axis})


@op("sort", "torch.sort, stable")
def draw_sort(random):
    descending = random.flag()
    return along(random, random.numbers(random.shape(1)), lambda x, axis: tuple(torch.sort(x, dim=axis, descending=descending, stable=True)),
                 descending=descending)


@op("argsort", "torch.argsort, stable")
def draw_argsort(random):
    descending = random.flag()
    return along(random, random.numbers(random.shape(1)), lambda x, axis: torch.argsort(x, dim=axis, descending=descending, stable=True),
                 descending=descending)


def unless_tied(random, x, theirs, options):
    """Returns a call of an op that selects elements of x, or of numbers with ties. Of the latter only the values are compared: PyTorch
    does not determine which of equal elements it selects."""
    if random.flag():
        return Call([x], theirs, options)
    return Call([random.ties(list(x.shape))], lambda x: theirs(x)[0], options, differentiable=False)


@op("topk", "torch.topk")
def draw_topk(random):
    x = random.normal(random.shape(1, empty=False))
    axis, smallest = random.axis(x.dim()), random.flag()
    k = random.whole(0, x.shape[axis])
    return unless_tied(random, x, lambda x: tuple(torch.topk(x, k, axis, not smallest)), {"k": k, "axis": axis, "smallest": smallest})


@op("kthvalue", "torch.kthvalue")
def draw_kthvalue(random):
    x = random.normal(random.shape(1, empty=False))
    axis, keep = random.axis(x.dim()), random.flag()
    k = random.whole(1, x.shape[axis])
    return unless_tied(random, x, lambda x: tuple(torch.kthvalue(x, k, axis, keep)), {"k": k, "axis": axis, "keepdims": keep})


@op("median", "torch.median")
def draw_median(random):
    x, keep = random.normal(random.shape(1, empty=False)), random.flag()
    if random.whole(0, 3) == 0:
        return Call([x], torch.median)
    axis = random.axis(x.dim())
    return unless_tied(random, x, lambda x: tuple(torch.median(x, axis, keep)), {"axis": axis, "keepdims": keep})


@op("quantile", "torch.quantile")
def draw_quantile(random):
    q, kind, keep = random.one_of([0.0, 0.25, 0.5, 0.7, 1.0]), random.one_of(["linear", "lower", "higher", "midpoint", "nearest"]), random.flag()
    x = random.normal(random.shape(1, empty=False))
    return along(random, x, lambda x, axis: torch.quantile(x, q, axis, keep, interpolation=kind), q=q, interpolation=kind, keepdims=keep)


@op("searchsorted", "torch.searchsorted")
def draw_searchsorted(random):
    lines = random.shape(0, 2)
    ordered = torch.sort(random.ties([*lines, random.whole(1, 6)])).values
    right = random.flag()
    return Call([ordered, random.ties([*lines, random.whole(1, 6)], 3)], lambda a, b: torch.searchsorted(a, b, right=right), {"right": right},
                differentiable=False)


@op("matmul", "torch.matmul")
def draw_matmul(random):
    first, second = random.pair_of_shapes(most_rank=2)
    m, k, n = (random.whole(0, 6) for _ in range(3))
    ta, tb = random.flag(), random.flag()
    return Call([random.normal([*first, *((k, m) if ta else (m, k))]), random.normal([*second, *((n, k) if tb else (k, n))])],
                lambda a, b: torch.matmul(a.mT if ta else a, b.mT if tb else b), {"transpose_a": ta, "transpose_b": tb})


@op("dot", "torch.dot")
def draw_dot(random):
    n = random.whole(0, 9)
    return Call([random.normal([n]), random.normal([n])], torch.dot)


@op("outer", "torch.outer")
def draw_outer(random):
    return Call([random.normal([random.whole(0, 5)]), random.normal([random.whole(0, 5)])], torch.outer)


EQUATIONS = {"ij,jk->ik": "ij jk", "bik,bkj->bij": "bik bkj", "ij->ji": "ij", "ii->i": "ii", "ii": "ii", "ij->": "ij", "i,j->ij": "i j",
             "...ij,...jk->...ik": "bij bjk", "ijk,kl,lm->ijm": "ijk kl lm", "ij,ij->i": "ij ij", "abc,acd->bd": "abc acd", "ba,ca": "ba ca"}


@op("einsum", "torch.einsum")
def draw_einsum(random):
    equation = random.one_of(EQUATIONS)
    extents = {letter: random.whole(0 if random.whole(0, 5) == 0 else 1, 4) for letter in "abcdijklm"}
    operands = [random.normal([extents[letter] for letter in letters]) for letters in EQUATIONS[equation].split()]
    return Call(operands, lambda *operands: torch.einsum(equation, *operands), {"equation": equation})


@op("tensordot", "torch.tensordot")
def draw_tensordot(random):
    a, b, c, d = (random.whole(1, 4) for _ in range(4))
    axes_a, axes_b = random.one_of([([1, 2], [0, 1]), ([-1], [1]), ([], []), ([2, 1], [1, 0])])
    return Call([random.normal([a, b, c]), random.normal([b, c, d])], lambda x, y: torch.tensordot(x, y, (axes_a, axes_b)),
                {"axes_a": axes_a, "axes_b": axes_b})


def matrices(random, lines, n, sign=None):
    """Returns matrices that are far from singular. With the sign 1 their determinants are positive."""
    return random.between([*lines, n, n], -0.25, 0.25) + torch.eye(n).double() * 2 * (sign or random.one_of([1, -1]))


@op("solve", "torch.linalg.solve")
def draw_solve(random):
    first, second = random.pair_of_shapes(most_rank=2)
    n = random.whole(0, 5)
    return Call([matrices(random, first, n), random.normal([*second, n, random.whole(1, 4)])], torch.linalg.solve)


@op("inverse", "torch.linalg.inv")
def draw_inverse(random):
    return Call([matrices(random, random.shape(0, 2), random.whole(0, 5))], torch.linalg.inv)


@op("det", "torch.linalg.det")
def draw_det(random):
    return Call([matrices(random, random.shape(0, 2), random.whole(0, 5))], torch.linalg.det)


@op("logdet", "torch.logdet")
def draw_logdet(random):
    return Call([matrices(random, random.shape(0, 2), random.whole(1, 5), 1)], torch.logdet)


@op("cholesky", "torch.linalg.cholesky of the symmetric part")
def draw_cholesky(random):
    a = matrices(random, random.shape(0, 2), random.whole(0, 5))
    return Call([(a @ a.mT).float().double()], lambda a: torch.linalg.cholesky((a + a.mT) / 2))


@op("triangular_solve", "torch.linalg.solve_triangular")
def draw_triangular_solve(random):
    first, second = random.pair_of_shapes(most_rank=2)
    n = random.whole(0, 5)
    upper, transposed, unit = random.flag(), random.flag(), random.flag()

    def theirs(a, b):
        triangle = torch.triu(a) if upper else torch.tril(a)
        return torch.linalg.solve_triangular(triangle.mT if transposed else triangle, b, upper=upper != transposed, unitriangular=unit)
    return Call([matrices(random, first, n), random.normal([*second, n, random.whole(1, 4)])], theirs,
                {"upper": upper, "transpose": transposed, "unit_diagonal": unit})
