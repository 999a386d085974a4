"""Convolutions, pools, images, normalisations and attention, and their counterparts in PyTorch."""

import torch
import torch.nn.functional as F

from compare_ops_parts.calls import Call, op

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG_POOLS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
LP_POOLS = {1: F.lp_pool1d, 2: F.lp_pool2d, 3: F.lp_pool3d}
ADAPTIVE = {"avg": {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d},
            "max": {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}}


def sizes(random, axes, low, high):
    return [random.whole(low, high) for _ in range(axes)]


def image(random, axes, least=1, most=8):
    return [random.whole(0 if random.whole(0, 19) == 0 else 1, 3), random.whole(1, 4), *sizes(random, axes, least, most)]


def add_convolution(axes):
    @op(f"conv{axes}d", f"F.conv{axes}d")
    def draw(random):
        groups, kernel, dilation = random.whole(1, 3), sizes(random, axes, 1, 3), sizes(random, axes, 1, 2)
        options = {"stride": sizes(random, axes, 1, 3), "padding": sizes(random, axes, 0, 2), "dilation": dilation, "groups": groups}
        least = [max(1, d * (k - 1) + 1) for d, k in zip(dilation, kernel)]
        inputs, outputs = groups * random.whole(1, 3), groups * random.whole(1, 3)
        operands = [random.normal([random.whole(1, 3), inputs, *(n + random.whole(0, 4) for n in least)]),
                    random.normal([outputs, inputs // groups, *kernel])]
        if random.flag():
            operands.append(random.normal([outputs]))
        return Call(operands, lambda *operands: CONVOLUTIONS[axes](*operands, **options), options)

    @op(f"conv_transpose{axes}d", f"F.conv_transpose{axes}d")
    def draw_transposed(random):
        groups, stride = random.whole(1, 3), sizes(random, axes, 1, 3)
        kernel = sizes(random, axes, 2, 3)
        options = {"stride": stride, "padding": sizes(random, axes, 0, 1), "dilation": sizes(random, axes, 1, 2), "groups": groups,
                   "output_padding": [random.whole(0, s - 1) for s in stride]}
        inputs, outputs = groups * random.whole(1, 2), random.whole(1, 2)
        operands = [random.normal([random.whole(1, 2), inputs, *sizes(random, axes, 2, 4)]), random.normal([inputs, outputs, *kernel])]
        if random.flag():
            operands.append(random.normal([outputs * groups]))
        return Call(operands, lambda *operands: TRANSPOSED[axes](*operands, **options), options)


def pool_options(random, axes):
    kernel = sizes(random, axes, 1, 3)
    return {"kernel": kernel, "stride": sizes(random, axes, 1, 3), "padding": [random.whole(0, k // 2) for k in kernel],
            "ceil_mode": random.flag()}


def add_pools(axes):
    @op(f"max_pool{axes}d", f"F.max_pool{axes}d")
    def draw_max(random):
        options = pool_options(random, axes)
        return Call([random.floats(image(random, axes, 3))], lambda x: MAX_POOLS[axes](
            x, options["kernel"], options["stride"], options["padding"], ceil_mode=options["ceil_mode"]), options)

    @op(f"avg_pool{axes}d", f"F.avg_pool{axes}d")
    def draw_avg(random):
        options = {**pool_options(random, axes), "count_include_pad": random.flag()}
        return Call([random.floats(image(random, axes, 3))], lambda x: AVG_POOLS[axes](
            x, options["kernel"], options["stride"], options["padding"], ceil_mode=options["ceil_mode"],
            count_include_pad=options["count_include_pad"]), options)

    @op(f"lp_pool{axes}d", f"F.lp_pool{axes}d of |x|")
    def draw_lp(random):
        options = {**pool_options(random, axes), "p": random.one_of([1.0, 2.0, 3.0, 1.5])}
        del options["padding"]
        return Call([random.normal(image(random, axes, 3))], lambda x: LP_POOLS[axes](
            x.abs(), options["p"], options["kernel"] if axes > 1 else options["kernel"][0],
            options["stride"] if axes > 1 else options["stride"][0], ceil_mode=options["ceil_mode"]), options)

    for kind in ("avg", "max"):
        @op(f"adaptive_{kind}_pool{axes}d", f"F.adaptive_{kind}_pool{axes}d")
        def draw_adaptive(random, kind=kind):
            output = sizes(random, axes, 1, 4)
            return Call([random.floats(image(random, axes))], lambda x: ADAPTIVE[kind][axes](x, output), {"output": output})


for number in (1, 2, 3):
    add_convolution(number)
    add_pools(number)


@op("global_avg_pool", "torch.mean")
def draw_global_avg(random):
    return Call([random.floats(image(random, random.whole(1, 3)))], lambda x: x.mean(tuple(range(2, x.dim()))))


@op("global_max_pool", "torch.amax")
def draw_global_max(random):
    return Call([random.floats(image(random, random.whole(1, 3)))], lambda x: x.amax(tuple(range(2, x.dim()))))


MODES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}


@op("interpolate", "F.interpolate")
def draw_interpolate(random):
    mode = random.one_of(MODES)
    axes = random.one_of(MODES[mode])
    options = {"mode": mode}
    if not mode.startswith("nearest"):
        options["align_corners"] = random.flag()
    theirs = {**options}
    if random.flag():
        options["size"] = theirs["size"] = sizes(random, axes, 1, 9)
    else:
        options["scale"] = theirs["scale_factor"] = [random.one_of([1.0, 2.0, 1.5, 0.5, 2.25]) for _ in range(axes)]
    return Call([random.normal([2, 2, *sizes(random, axes, 2, 6)])], lambda x: F.interpolate(x, **theirs), options)


@op("pixel_shuffle", "F.pixel_shuffle")
def draw_pixel_shuffle(random):
    factor = random.whole(1, 3)
    return Call([random.floats([2, factor * factor * random.whole(1, 2), *sizes(random, 2, 0, 3)])], lambda x: F.pixel_shuffle(x, factor),
                {"factor": factor})


@op("pixel_unshuffle", "F.pixel_unshuffle")
def draw_pixel_unshuffle(random):
    factor = random.whole(1, 3)
    return Call([random.floats([2, 2, factor * random.whole(1, 3), factor * random.whole(1, 3)])], lambda x: F.pixel_unshuffle(x, factor),
                {"factor": factor})


def columns(random):
    return {"kernel": sizes(random, 2, 1, 3), "stride": sizes(random, 2, 1, 2), "padding": sizes(random, 2, 0, 2),
            "dilation": sizes(random, 2, 1, 2)}


def of_unfold(options):
    return {"kernel_size" if name == "kernel" else name: value for name, value in options.items()}


@op("im2col", "F.unfold")
def draw_im2col(random):
    options = columns(random)
    return Call([random.normal([random.whole(1, 2), 2, *sizes(random, 2, 5, 7)])], lambda x: F.unfold(x, **of_unfold(options)), options)


@op("col2im", "F.fold")
def draw_col2im(random):
    options, size = columns(random), sizes(random, 2, 5, 7)
    like = F.unfold(torch.zeros(2, 2, *size), **of_unfold(options))
    return Call([random.normal(list(like.shape))], lambda x: F.fold(x, size, **of_unfold(options)), {**options, "size": size})


@op("layer_norm", "F.layer_norm")
def draw_layer_norm(random):
    shape = random.shape(1, 4, empty=False)
    last = shape[random.whole(0, len(shape) - 1):]
    return Call([random.normal(shape), random.normal(last), random.normal(last)], lambda x, scale, shift: F.layer_norm(x, last, scale, shift))


@op("standardise", "F.layer_norm")
def draw_standardise(random):
    shape = random.shape(1, 4, empty=False)
    axes = random.whole(1, len(shape))
    return Call([random.normal(shape)], lambda x: F.layer_norm(x, shape[-axes:]), {"axes": axes})


@op("rms_norm", "F.rms_norm")
def draw_rms_norm(random):
    shape = random.shape(1, 4, empty=False)
    last = shape[random.whole(0, len(shape) - 1):]
    return Call([random.normal(shape), random.normal(last)], lambda x, scale: F.rms_norm(x, last, scale))


def channels(random, shape, count):
    return [random.normal([shape[1]]) for _ in range(count)]


@op("batch_norm", "F.batch_norm, training")
def draw_batch_norm(random):
    shape = [random.whole(2, 4), *random.shape(1, 3, empty=False)]

    def theirs(x, scale, shift):
        others = [axis for axis in range(x.dim()) if axis != 1]
        return F.batch_norm(x, None, None, scale, shift, True), x.mean(others), x.var(others, correction=0)
    return Call([random.normal(shape), *channels(random, shape, 2)], theirs)


@op("batch_norm_inference", "F.batch_norm")
def draw_batch_norm_inference(random):
    shape = [random.whole(1, 4), *random.shape(1, 3, empty=False)]
    return Call([random.normal(shape), *channels(random, shape, 3), random.between([shape[1]], 0.5, 2)],
                lambda x, scale, shift, mean, variance: (x - mean.view(-1, *[1] * (x.dim() - 2))) / torch.sqrt(variance + 1e-5).view(
                    -1, *[1] * (x.dim() - 2)) * scale.view(-1, *[1] * (x.dim() - 2)) + shift.view(-1, *[1] * (x.dim() - 2)))


@op("group_norm", "F.group_norm")
def draw_group_norm(random):
    groups = random.whole(1, 3)
    shape = [random.whole(1, 3), groups * random.whole(2, 3), *random.shape(0, 3, empty=False)]
    return Call([random.normal(shape), *channels(random, shape, 2)], lambda x, scale, shift: F.group_norm(x, groups, scale, shift),
                {"groups": groups})


@op("instance_norm", "F.instance_norm")
def draw_instance_norm(random):
    shape = [random.whole(1, 3), random.whole(1, 3), *sizes(random, random.whole(1, 3), 2, 4)]
    return Call([random.normal(shape), *channels(random, shape, 2)],
                lambda x, scale, shift: F.instance_norm(x, None, None, scale, shift, True))


@op("local_response_norm", "F.local_response_norm")
def draw_local_response_norm(random):
    options = {"alpha": random.one_of([1e-4, 0.5]), "beta": random.one_of([0.75, 1.5]), "k": random.one_of([1.0, 2.0])}
    size = random.whole(1, 5)
    return Call([random.normal([2, random.whole(1, 6), *sizes(random, random.whole(1, 3), 1, 4)])],
                lambda x: F.local_response_norm(x, size, **options), {**options, "size": size})


@op("softmax", "torch.softmax")
def draw_softmax(random):
    x = random.floats(random.shape(1))
    axis = random.axis(x.dim())
    return Call([x], lambda x: torch.softmax(x, axis), {"axis": axis})


@op("log_softmax", "torch.log_softmax")
def draw_log_softmax(random):
    x = random.floats(random.shape(1))
    axis = random.axis(x.dim())
    return Call([x], lambda x: torch.log_softmax(x, axis), {"axis": axis})


@op("scaled_dot_product_attention", "F.scaled_dot_product_attention")
def draw_attention(random):
    lines = random.shape(0, 2, empty=False)
    length, keys, width, values = (random.whole(1, 5) for _ in range(4))
    operands = [random.normal([*lines, length, width]), random.normal([*lines, keys, width]), random.normal([*lines, keys, values])]
    options = {}
    kind = random.whole(0, 3)
    if kind == 1:
        options["is_causal"] = True
    elif kind == 2:
        operands.append(random.normal([length, keys]))
    elif kind == 3:
        mask = random.bools([length, keys])
        mask[:, 0] = True
        operands.append(mask)
    if random.flag():
        options["scale"] = 0.5
    return Call(operands, lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask, **options), options)
