"""The families of random nets besides the convolutional one: perceptrons, residual nets, transformers, decoders and recurrent nets."""

from sweep_parts.nets import Convolutional, ImageNet, Net

ACTIVATIONS = ["relu", "relu", "relu", "tanh", "sigmoid", "gelu", "silu", "elu", "leaky_relu"]


class Perceptron(Net):
    """One to five hidden stages and a last linear layer, of up to 1,024 units, with norms, dropout and residual blocks.

    A stage is a linear layer, or two of which the second is in a residual block."""

    family = "perceptron"

    def build(self):
        self.sample = self.random.choice([[self.between(4, 1024)], [self.random.choice([1, 3])] + [self.random.randint(8, 32)] * 2])
        self.layers = [{"type": "flatten"}] if len(self.sample) > 1 else []
        self.optimizer = self.random.choice(["sgd", "adam"])
        self.classes = self.between(2, 1000)
        width = 1
        for extent in self.sample:
            width *= extent
        for _ in range(self.random.randint(1, 5)):
            units = self.between(8, 1024)
            self.layers += self.hidden(width, units)
            if self.chance(0.2):
                self.layers.append({"type": "residual", "layers": self.hidden(units, units)})
            width = units
        self.layers.append(self.linear(width, self.classes))

    def linear(self, width, units):
        self.operations += 2 * width * units
        return {"type": "linear", "units": units, **({"bias": False} if self.chance(0.2) else {})}

    def hidden(self, width, units):
        layers = [self.linear(width, units)]
        norm = self.random.choice([None, None, None, "batch_norm", "layer_norm"])
        self.has_lone_batch_norm |= norm == "batch_norm"
        layers += [{"type": norm}] if norm else []
        layers.append({"type": self.random.choice(ACTIVATIONS)})
        return layers + ([{"type": "dropout", "p": 0.2}] if self.chance(0.2) else [])


class Residual(ImageNet):
    """Residual nets of basic, bottleneck and inverted blocks, of 1 to 512 channels and 8 to 96 pixels."""

    family = "residual"

    def build(self):
        pixels = self.between(8, 96)
        self.sample = [self.random.choice([1, 3, 3, self.between(1, 64)]), pixels, pixels]
        self.shape = list(self.sample)
        self.optimizer = self.random.choice(["sgd", "adam"])
        self.norm = self.random.choice(["batch_norm"] * 5 + ["group_norm"])
        self.act = self.random.choice(["relu", "relu", "relu", "silu", "gelu"])
        block = self.random.choice([self.basic, self.basic, self.bottleneck, self.inverted])
        channels = self.between(1, 128)
        self.layers = [*self.normed(channels, self.random.choice([3, 7]), self.random.choice([1, 2])), {"type": self.act}]
        if self.chance(0.3):
            self.layers += self.pool()
        for stage in range(self.random.randint(1, 4)):
            channels = min(512, channels * 2) if stage else channels
            for i in range(self.random.randint(1, 2)):
                self.layers.append(self.block(block, channels, 2 if stage and i == 0 else 1))
        self.layers += [{"type": "global_avg_pool"}, {"type": "linear", "units": self.classes}]

    def normed(self, channels, kernel, stride=1, groups=1):
        into, height, width = self.shape
        self.shape = [channels] + [(n + 2 * (kernel // 2) - kernel) // stride + 1 for n in (height, width)]
        self.operations += 2 * into // groups * kernel ** 2 * channels * self.shape[1] * self.shape[2]
        conv = {"type": "conv", "channels": channels, "kernel": kernel, "stride": stride, "padding": kernel // 2, "groups": groups, "bias": False}
        if self.norm == "batch_norm":
            self.has_lone_batch_norm |= self.shape[1:] == [1, 1]
            return [conv, {"type": "batch_norm"}]
        return [conv, {"type": "group_norm", "groups": max(g for g in (1, 2, 4, 8) if channels % g == 0)}]

    def block(self, kind, channels, stride):
        before = list(self.shape)
        block = {"type": "residual", "layers": kind(channels, stride), "activation": "none" if kind == self.inverted else self.act}
        after, self.shape = self.shape, before
        if [channels, stride] != [before[0], 1]:
            block["shortcut"] = self.normed(channels, 1, stride)
        self.shape = after
        return block

    def basic(self, channels, stride):
        return [*self.normed(channels, 3, stride), {"type": self.act}, *self.normed(channels, 3)]

    def bottleneck(self, channels, stride):
        narrow = max(1, channels // 4)
        return [*self.normed(narrow, 1), {"type": self.act}, *self.normed(narrow, 3, stride), {"type": self.act}, *self.normed(channels, 1)]

    def inverted(self, channels, stride):
        wide = min(512, self.shape[0] * self.random.choice([2, 4, 6]))
        return [*self.normed(wide, 1), {"type": self.act}, *self.normed(wide, self.random.choice([3, 5]), stride, wide), {"type": self.act},
                *self.normed(channels, 1)]


class Sequence(Net):
    """A base for nets over the steps of a sequence. A net starts with tokens(), patches() or rows()."""

    def tokens(self, most_steps, most_width):
        """Each token of a text becomes a row of a table. The net predicts a token at each step."""
        self.reads_tokens = True
        self.classes = self.between(20, 5000)
        self.steps, self.width = self.between(4, most_steps), self.draw_width(most_width)
        self.sample = [self.steps]
        self.layers = [{"type": "embedding", "units": self.width, "deviation": 0.02}]

    def patches(self, most_width):
        """Each patch of an image becomes a step."""
        patch, side = self.random.choice([4, 7, 8]), self.random.randint(2, 12)
        self.steps, self.width = side * side, self.draw_width(most_width)
        self.sample = [self.random.choice([1, 3]), side * patch, side * patch]
        self.operations += 2 * self.sample[0] * patch ** 2 * self.width * self.steps
        self.layers = [{"type": "conv", "channels": self.width, "kernel": patch, "stride": patch}, {"type": "tokens"}]

    def rows(self, most_steps, most_width):
        """A sample is a sequence of features."""
        self.steps, self.width = self.between(2, most_steps), self.draw_width(most_width)
        self.sample = [self.steps, self.width]

    def draw_width(self, most):
        return self.between(4, most)

    def head(self):
        """Adds the last layers. A text gets an output at each step, any other sample one in all."""
        if not self.reads_tokens:
            self.layers.append({"type": self.random.choice(["mean_of_steps", "last_step"])})
        self.operations += 2 * self.width * self.classes * (self.steps if self.reads_tokens else 1)
        self.layers.append({"type": "linear"})


class Transformer(Sequence):
    """Encoders over the patches of images or steps with features, of up to 512 features and 256 steps."""

    family = "transformer"
    causal = False

    def build(self):
        self.heads = self.random.choice([1, 2, 4, 8])
        self.optimizer = self.random.choice(["adam", "adamw"])
        self.add_first_layers()
        if self.chance(0.8):
            self.layers.append({"type": "positions"})
        depth, feedforward = self.random.randint(1, 4), self.width * self.random.randint(1, 4)
        per_step = 8 * self.width ** 2 + 4 * self.width * feedforward + 4 * self.steps * self.width
        self.operations += depth * self.steps * per_step
        self.layers.append({"type": "transformer_encoder", "heads": self.heads, "depth": depth, "feedforward": feedforward,
                            "dropout": self.random.choice([0, 0.1]), "activation": self.random.choice(["relu", "gelu"]),
                            "norm_first": self.chance(0.6), "causal": self.causal})
        self.head()

    def add_first_layers(self):
        if self.chance(0.6):
            self.patches(512)
            return
        self.rows(256, 512)
        self.operations += 2 * self.steps * self.width ** 2
        self.layers.append({"type": "linear", "units": self.width})

    def draw_width(self, most):
        return self.heads * self.between(4, most // self.heads)


class Decoder(Transformer):
    """Causal transformers over tokens, as a GPT is."""

    family = "decoder"
    causal = True

    def add_first_layers(self):
        self.tokens(256, 512)


class Recurrent(Sequence):
    """One to three layers of tanh, LSTM or GRU cells over tokens or features, of up to 512 units and 128 steps."""

    family = "recurrent"

    def build(self):
        self.optimizer = self.random.choice(["sgd", "adam"])
        if self.chance(0.4):
            self.tokens(128, 256)
        else:
            self.rows(128, 256)
        kind, gates = self.random.choice([("lstm", 4), ("lstm", 4), ("gru", 3), ("rnn", 1)])
        units, depth = self.between(8, 512), self.random.choice([1, 1, 2, 3])
        self.operations += 2 * self.steps * gates * units * (self.width + units + (depth - 1) * 2 * units)
        dropout = {"dropout": 0.2} if depth > 1 and self.chance(0.4) else {}
        self.layers.append({"type": kind, "units": units, "depth": depth, **dropout})
        self.width = units
        self.head()


FAMILIES = {family.family: family for family in (Convolutional, Perceptron, Residual, Transformer, Decoder, Recurrent)}
