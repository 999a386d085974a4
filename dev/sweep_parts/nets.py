"""Random nets: lists of layers as in YAML, with the shape of a sample and the size of a batch."""

import json
import random

MOST_OPERATIONS = 4e9  # in a forward pass, unless the smallest batch needs more
CLASSES = 10


class Net:
    """A random net. A family is a class that makes the sample, the optimizer and the layers in build().

    Family, seed and number determine the net: net 17 is the same in every sweep of this family and seed."""

    family = ""
    largest_batch = 8  # as a power of two

    def __init__(self, seed, number):
        self.random = random.Random(self.random_seed(seed, number))
        self.number = number
        self.batch = round(2 ** self.random.uniform(0, self.largest_batch))
        self.classes = CLASSES
        self.reads_tokens = False  # a language model: samples are numbers of tokens, of which there are `classes`
        self.sample, self.layers = [], []
        self.optimizer = None
        self.operations = 0  # of a forward pass, for each sample
        self.has_lone_batch_norm = False  # a batch norm over one pixel
        self.build()
        # PyTorch refuses to train a batch norm with one value per channel.
        least = 2 if self.has_lone_batch_norm else 1
        self.batch = max(least, min(self.batch, int(MOST_OPERATIONS / max(self.operations, 1))))

    def build(self):
        raise NotImplementedError

    def random_seed(self, seed, number):
        return f"{self.family} {seed} {number}"

    def chance(self, probability):
        return self.random.random() < probability

    def between(self, least, most):
        """Returns a whole number. Its logarithm is uniform, so that small sizes are as frequent as large ones."""
        return round(least * (most / least) ** self.random.random())

    def yaml(self):
        optimizer = {"name": self.optimizer, "learning_rate": 0.001, **({"momentum": 0.9} if self.optimizer == "sgd" else {})}
        model = {"name": "convnet", **({"task": "language_model"} if self.reads_tokens else {}), "layers": self.layers}
        return json.dumps({"model": model, "training": {"batch_size": self.batch, "epochs": 1, "optimizer": optimizer, "schedule": {"name": "constant"}}})

    def __str__(self):
        def text(layer):
            options = " ".join(str(v) if k in ("channels", "units") else f"{k[0]}{v}" for k, v in layer.items()
                               if k not in ("type", "layers", "shortcut"))
            inner = "(" + " ".join(map(text, layer["layers"])) + ")" if "layers" in layer else ""
            return f"{layer['type']}{inner}" + (f"[{options}]" if options else "")

        what = f"{'x'.join(map(str, self.sample))}" + (f" of {self.classes} tokens" if self.reads_tokens else "")
        return f"{self.family} #{self.number} batch {self.batch} of {what}, {self.optimizer}: " + " ".join(map(text, self.layers))


class ImageNet(Net):
    """A base for nets over images. `shape` is that of the values between the layers: channels, height and width."""

    def pool(self):
        kernel, stride, padding = self.random.choice([(2, 2, 0), (2, 2, 0), (3, 2, 1), (3, 1, 1), (3, 3, 0)])
        if min(self.shape[1:]) + 2 * padding < kernel:
            return []
        self.shape[1:] = [(n + 2 * padding - kernel) // stride + 1 for n in self.shape[1:]]
        return [{"type": self.random.choice(["max_pool", "max_pool", "avg_pool"]), "kernel": kernel, "stride": stride, "padding": padding}]


class Convolutional(ImageNet):
    """Convolutions of any kernel, stride, groups and padding, pools, norms and residual blocks; at most 96 channels and 48x48 pixels."""

    family = "convolutional"
    largest_batch = 7

    def random_seed(self, seed, number):
        return f"{seed} {number}"  # without the family, so that the nets of published figures can be made again

    def build(self):
        self.sample = [self.random.choice([1, 3, 3, self.channels()])] + [self.random.randint(16, 48)] * 2
        self.shape = list(self.sample)
        self.optimizer = self.random.choice(["sgd", "adam"])
        for _ in range(self.random.randint(1, 5)):
            self.layers += self.stage()
        self.layers += self.head()

    def channels(self):
        return round(2 ** self.random.uniform(1.585, 6.585))

    def conv(self, channels=None, kernel=None, stride=None):
        into, height, width = self.shape
        kernel = kernel or self.random.choice([1, 3, 3, 3, 5, 7])
        layer = {"type": "conv", "channels": channels or self.channels(), "kernel": kernel, "padding": kernel // 2}
        layer["stride"] = stride or self.random.choice([1, 1, 1, 2])
        if channels is None and self.chance(0.2):
            layer["groups"] = self.random.choice([g for g in range(1, into + 1) if into % g == 0])
            layer["channels"] = layer["groups"] * self.random.randint(1, max(1, 96 // layer["groups"]))
        if self.chance(0.15):
            layer["padding"] = self.random.randint(0, kernel - 1)
        if stride is None and self.chance(0.15):
            layer["dilation"] = 2
        if self.chance(0.3):
            layer["bias"] = False
        reach = layer.get("dilation", 1) * (kernel - 1) + 1
        if min(height, width) + 2 * layer["padding"] < reach:
            layer.update(kernel=1, padding=0)
            reach = 1
        self.shape = [layer["channels"]] + [(n + 2 * layer["padding"] - reach) // layer["stride"] + 1 for n in (height, width)]
        per_output = into // layer.get("groups", 1) * layer["kernel"] ** 2
        self.operations += 2 * per_output * self.shape[0] * self.shape[1] * self.shape[2]
        return layer

    def activation(self):
        return {"type": self.random.choice(["relu"] * 6 + ["tanh", "sigmoid"])}

    def residual(self):
        before = list(self.shape)
        stride = self.random.choice([1, 1, 2])
        channels = before[0] if stride == 1 and self.chance(0.7) else self.channels()
        body = [self.conv(channels, 3, stride), {"type": "batch_norm"}, {"type": "relu"}, self.conv(channels, 3, 1), {"type": "batch_norm"}]
        for layer in body:
            if layer["type"] == "conv":
                layer["padding"] = 1
        self.shape = [channels] + [(n - 1) // stride + 1 for n in before[1:]]
        self.has_lone_batch_norm |= self.shape[1:] == [1, 1]
        block = {"type": "residual", "layers": body}
        if channels != before[0] or stride != 1:
            block["shortcut"] = [{"type": "conv", "channels": channels, "kernel": 1, "stride": stride}, {"type": "batch_norm"}]
        return block

    def stage(self):
        if self.layers and self.chance(0.2):
            return [self.residual()]
        layers = [self.conv()]
        if self.chance(0.5):
            layers.append({"type": "batch_norm"})
            self.has_lone_batch_norm |= self.shape[1:] == [1, 1]
        layers.append(self.activation())
        if self.chance(0.1):
            layers.append({"type": "dropout", "p": 0.2})
        if self.chance(0.5):
            layers += self.pool()
        return layers

    def head(self):
        channels, height, width = self.shape
        layers = [{"type": "global_avg_pool"}] if self.chance(0.5) or channels * height * width > 20000 else [{"type": "flatten"}]
        if self.chance(0.1):
            layers.append({"type": "standardise"})
        if self.chance(0.4):
            layers.append({"type": "linear", "units": self.random.randint(10, 500)})
            if self.chance(0.2):
                layers.append({"type": "batch_norm"})
                self.has_lone_batch_norm = True
            layers.append(self.activation())
        if self.chance(0.3):
            layers.append({"type": "dropout", "p": 0.5})
        return layers + [{"type": "linear", "units": CLASSES}]
