"""The random nets as ordinary PyTorch code."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, body, shortcut, activation):
        super().__init__()
        self.body, self.shortcut, self.activation = nn.Sequential(*body), nn.Sequential(*shortcut), activation

    def forward(self, inputs):
        return self.activation(self.body(inputs) + self.shortcut(inputs))


class Standardise(nn.Module):
    def forward(self, inputs):
        return nn.functional.layer_norm(inputs, inputs.shape[-1:])


class Tokens(nn.Module):
    def forward(self, inputs):
        return inputs.flatten(2).transpose(1, 2)


class Positions(nn.Module):
    def __init__(self, steps, width):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(1, steps, width))

    def forward(self, inputs):
        return inputs + self.weight


class Encoder(nn.Module):
    def __init__(self, layer, steps, width):
        super().__init__()
        one = nn.TransformerEncoderLayer(width, layer["heads"], layer["feedforward"], layer["dropout"], layer["activation"], batch_first=True,
                                         norm_first=layer["norm_first"])
        norm = nn.LayerNorm(width) if layer["norm_first"] else None
        self.encoder = nn.TransformerEncoder(one, layer["depth"], norm, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(steps) if layer["causal"] else None)

    def forward(self, inputs):
        return self.encoder(inputs, self.mask, is_causal=self.mask is not None)


class Recurrent(nn.Module):
    """A recurrent layer whose output is the hidden state after each step."""

    def __init__(self, layer, features):
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[layer["type"]]
        self.layers = kind(features, layer["units"], layer["depth"], batch_first=True, dropout=layer.get("dropout", 0))

    def forward(self, inputs):
        return self.layers(inputs)[0]


class LastStep(nn.Module):
    def forward(self, inputs):
        return inputs[:, -1]


class MeanOfSteps(nn.Module):
    def forward(self, inputs):
        return inputs.mean(1)


ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "silu": nn.SiLU, "elu": nn.ELU, "leaky_relu": nn.LeakyReLU,
               "none": nn.Identity}


def make_module(layer, x, classes):
    """Returns the module of a layer for inputs like x."""
    kind, width = layer["type"], x.shape[-1]
    window = {"kernel_size": layer.get("kernel"), "stride": layer.get("stride"), "padding": layer.get("padding")}
    if kind in ACTIVATIONS:
        return ACTIVATIONS[kind]()
    if kind == "conv":
        return nn.Conv2d(x.shape[1], layer["channels"], layer["kernel"], layer.get("stride", 1), layer.get("padding", 0),
                         layer.get("dilation", 1), layer.get("groups", 1), layer.get("bias", True))
    if kind == "linear":
        return nn.Linear(width, layer.get("units", classes), layer.get("bias", True))
    if kind == "batch_norm":
        return nn.BatchNorm2d(x.shape[1]) if x.dim() == 4 else nn.BatchNorm1d(x.shape[1])
    if kind in ("lstm", "gru", "rnn"):
        return Recurrent(layer, width)
    if kind == "residual":
        body, shortcut = (make_modules(layer.get(part, []), x, classes)[0] for part in ("layers", "shortcut"))
        return Residual(body, shortcut, ACTIVATIONS[layer.get("activation", "relu")]())
    return {"max_pool": lambda: nn.MaxPool2d(**window), "avg_pool": lambda: nn.AvgPool2d(**window),
            "global_avg_pool": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), "flatten": nn.Flatten,
            "dropout": lambda: nn.Dropout(layer["p"]), "standardise": Standardise, "layer_norm": lambda: nn.LayerNorm(width),
            "group_norm": lambda: nn.GroupNorm(layer["groups"], x.shape[1]), "embedding": lambda: nn.Embedding(classes, layer["units"]),
            "positions": lambda: Positions(*x.shape[1:]), "transformer_encoder": lambda: Encoder(layer, *x.shape[1:]), "tokens": Tokens,
            "last_step": LastStep, "mean_of_steps": MeanOfSteps}[kind]()


def make_modules(layers, x, classes):
    """Returns the modules of a list of layers, and their output for x."""
    modules = []
    with torch.no_grad():
        for layer in layers:
            modules.append(make_module(layer, x, classes))
            x = modules[-1](x)
    return modules, x


def make_model(net):
    x = torch.zeros(2, *net.sample, dtype=torch.int64 if net.reads_tokens else torch.float32)
    return nn.Sequential(*make_modules(net.layers, x, net.classes)[0])


def make_batch(net):
    """Returns samples, and the numbers of classes or tokens that are the targets."""
    if net.reads_tokens:
        return torch.randint(net.classes, (2, net.batch, *net.sample)).unbind()
    return torch.randn(net.batch, *net.sample), torch.randint(net.classes, (net.batch,))


def make_optimizer(net, parameters):
    if net.optimizer == "sgd":
        return torch.optim.SGD(parameters, 0.001, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[net.optimizer](parameters, 0.001)
