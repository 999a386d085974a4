"""Losses, and their counterparts in PyTorch."""

import torch
import torch.nn.functional as F

from compare_ops_parts.calls import Call, op


def reduction(random):
    return random.one_of(["mean", "sum", "none"])


def pair_loss(name, counterpart, theirs, targets=lambda random, shape: random.ties(shape), values=lambda random, shape: random.ties(shape)
              if random.flag() else random.normal(shape, 2), options=lambda random: {}):
    """Registers a loss of predictions and targets of one shape; `theirs` also takes the reduction and the options."""
    @op(name, counterpart)
    def draw(random):
        shape, kind, chosen = random.shape(1, 3, empty=False), reduction(random), options(random)
        return Call([values(random, shape), targets(random, shape)], lambda x, y: theirs(x, y, kind, **chosen), {"reduction": kind, **chosen})


def of_samples(losses, kind):
    """Reduces losses [N, ...] as the losses that add up the outputs of a sample."""
    samples = losses.reshape(losses.shape[0], -1).sum(1)
    return samples if kind == "none" else getattr(samples, kind)()


def probabilities(random, shape):
    return torch.where(random.bools(shape), random.between(shape, 0.05, 0.95), random.integers(shape, 0, 1).double()).float().double()


def signs(random, shape):
    return random.integers(shape, 0, 1).double() * 2 - 1


pair_loss("l1", "F.l1_loss", lambda x, y, kind: F.l1_loss(x, y, reduction=kind))
pair_loss("mse", "F.mse_loss", lambda x, y, kind: F.mse_loss(x, y, reduction=kind))
pair_loss("smooth_l1", "F.smooth_l1_loss", lambda x, y, kind, beta: F.smooth_l1_loss(x, y, reduction=kind, beta=beta),
          options=lambda random: {"beta": random.one_of([1.0, 0.5, 2.0])})
pair_loss("huber", "F.huber_loss", lambda x, y, kind, delta: F.huber_loss(x, y, reduction=kind, delta=delta),
          options=lambda random: {"delta": random.one_of([1.0, 0.5, 2.0])})
pair_loss("binary_cross_entropy", "F.binary_cross_entropy", lambda x, y, kind: F.binary_cross_entropy(x, y, reduction=kind), probabilities,
          lambda random, shape: random.between(shape, 0.01, 0.99))
pair_loss("kl_div", "F.kl_div", lambda x, y, kind: F.kl_div(x, y, reduction=kind), probabilities)
pair_loss("poisson_nll", "F.poisson_nll_loss", lambda x, y, kind: F.poisson_nll_loss(x, y, reduction=kind),
          lambda random, shape: random.integers(shape, 0, 4).double())
pair_loss("hinge", "clamp(1 - t x, 0)", lambda x, y, kind: F.relu(1 - x * y) if kind == "none" else getattr(F.relu(1 - x * y), kind)(), signs)
pair_loss("squared_error", "F.mse_loss, summed over outputs", lambda x, y, kind: of_samples(F.mse_loss(x, y, reduction="none"), kind))


@op("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits")
def draw_bce_with_logits(random):
    shape, kind = random.shape(1, 3, empty=False), reduction(random)
    operands = [random.normal(shape, random.one_of([1, 30])), probabilities(random, shape)]
    if random.flag():
        operands.append(random.between([shape[-1]], 0.5, 2))
    return Call(operands, lambda x, y, weight=None: of_samples(F.binary_cross_entropy_with_logits(x, y, pos_weight=weight, reduction="none"), kind),
                {"reduction": kind}, wrt=[0, 1])


@op("gaussian_nll", "F.gaussian_nll_loss")
def draw_gaussian_nll(random):
    shape, kind = random.shape(1, 3, empty=False), reduction(random)
    return Call([random.normal(shape), random.normal(shape), random.between(shape, 0.1, 2)],
                lambda x, y, variance: F.gaussian_nll_loss(x, y, variance, reduction=kind), {"reduction": kind})


@op("margin_ranking", "F.margin_ranking_loss")
def draw_margin_ranking(random):
    shape, kind, margin = random.shape(1, 3, empty=False), reduction(random), random.one_of([0.0, 1.0])
    return Call([random.ties(shape), random.ties(shape), signs(random, shape)],
                lambda a, b, y: F.margin_ranking_loss(a, b, y, margin, reduction=kind), {"reduction": kind, "margin": margin}, wrt=[0, 1])


@op("triplet_margin", "F.triplet_margin_loss")
def draw_triplet_margin(random):
    shape, kind = random.shape(1, 2, empty=False), reduction(random)
    options = {"margin": random.one_of([1.0, 0.5]), "p": random.one_of([2.0, 1.0, 3.0]), "swap": random.flag()}
    return Call([random.normal(shape) for _ in range(3)], lambda a, b, c: F.triplet_margin_loss(a, b, c, reduction=kind, **options),
                {"reduction": kind, **options})


@op("cosine_embedding", "F.cosine_embedding_loss")
def draw_cosine_embedding(random):
    samples, kind, margin = random.whole(1, 4), reduction(random), random.one_of([0.0, 0.25])
    shape = [samples, random.whole(2, 5)]
    return Call([random.normal(shape), random.normal(shape), signs(random, [samples])],
                lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin, reduction=kind), {"reduction": kind, "margin": margin}, wrt=[0, 1])


@op("cosine_similarity", "F.cosine_similarity")
def draw_cosine_similarity(random):
    first, second = random.pair_of_shapes(least_rank=1, empty=False)
    rank = max(len(first), len(second), 1)
    first, second = [1] * (rank - len(first)) + first, [1] * (rank - len(second)) + second
    axis = random.axis(rank)
    a, b = random.normal(first), random.normal(second)
    if random.whole(0, 3) == 0:
        b = b * 0
    return Call([a, b], lambda a, b: F.cosine_similarity(a, b, axis), {"axis": axis})


def class_options(random, classes):
    options = {"reduction": reduction(random)}
    if random.flag():
        options["ignore"] = random.one_of([-1, random.whole(0, classes - 1)])
    return options


def labels_for(random, samples, classes, options):
    labels = random.integers([samples], 0, classes - 1)
    if "ignore" in options and random.flag() and samples:
        labels[0] = options["ignore"]
    return labels


def of_labelled(losses, labels, options):
    if options["reduction"] == "none":
        return losses
    counted = (labels != options["ignore"]).sum() if "ignore" in options else losses.numel()
    total = losses.sum()
    return total if options["reduction"] == "sum" else total / max(int(counted), 1)


@op("softmax_cross_entropy", "F.cross_entropy; means are over samples")
def draw_cross_entropy(random):
    samples, classes = random.whole(1, 5), random.whole(1, 5)
    options = class_options(random, classes)
    options["label_smoothing"] = random.one_of([0.0, 0.0, 0.25])
    operands = [random.normal([samples, classes], random.one_of([1, 30])), labels_for(random, samples, classes, options)]
    if random.flag():
        operands.append(random.between([classes], 0.5, 2))
    return Call(operands, lambda x, labels, weight=None: of_labelled(
        F.cross_entropy(x, labels, weight, reduction="none", ignore_index=options.get("ignore", -100), label_smoothing=options["label_smoothing"]),
        labels, options), options, wrt=[0])


@op("nll", "F.nll_loss; means are over samples")
def draw_nll(random):
    samples, classes = random.whole(1, 5), random.whole(1, 5)
    options = class_options(random, classes)
    operands = [random.normal([samples, classes]), labels_for(random, samples, classes, options)]
    if random.flag():
        operands.append(random.between([classes], 0.5, 2))
    return Call(operands, lambda x, labels, weight=None: of_labelled(
        F.nll_loss(x, labels, weight, reduction="none", ignore_index=options.get("ignore", -100)), labels, options), options, wrt=[0])


@op("one_hot", "F.one_hot")
def draw_one_hot(random):
    classes = random.whole(1, 5)
    return Call([random.integers(random.shape(), 0, classes - 1)], lambda labels: F.one_hot(labels, classes).double(),
                {"classes": classes, "dtype": "float64"})


@op("top_k_correct", "torch.topk, without ties")
def draw_top_k_correct(random):
    samples, classes = random.whole(1, 5), random.whole(1, 5)
    k = random.whole(1, classes)
    return Call([random.normal([samples, classes]), random.integers([samples], 0, classes - 1)],
                lambda x, labels: (torch.topk(x, k, 1).indices == labels[:, None]).any(1).sum().to(x.dtype), {"k": k}, differentiable=False)
