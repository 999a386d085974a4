"""The language models, the nets over steps and the autoencoder of models/*.yaml in PyTorch, as users write them."""

from torch import nn

import torch

LIMITED = ("text_gpt", "text_lstm", "mnist_lstm", "mnist_vit")  # the gradients have a norm of at most 1


class Recurrent(nn.Module):
    """An LSTM over the steps of a sample [steps, features], or over its tokens; answers for each step, or for the last."""

    def __init__(self, features, outputs, tokens=0):
        super().__init__()
        self.embedding = nn.Embedding(tokens, features) if tokens else None
        self.lstm = nn.LSTM(features, 128, batch_first=True)
        self.head = nn.Linear(128, outputs)

    def forward(self, samples):
        if self.embedding is not None:
            return self.head(self.lstm(self.embedding(samples))[0])
        return self.head(self.lstm(samples.squeeze(1))[0][:, -1])


class Transformer(nn.Module):
    """A transformer with learned positions over tokens, in which each sees those before it, or over patches of an image."""

    def __init__(self, outputs, steps, depth, feedforward, dropout, tokens=0):
        super().__init__()
        self.embedding = nn.Embedding(tokens, 64) if tokens else nn.Conv2d(1, 64, 4, 4)
        self.positions = nn.Parameter(0.02 * torch.randn(1, steps, 64))
        layer = nn.TransformerEncoderLayer(64, 4, feedforward, dropout, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(64), enable_nested_tensor=False)
        self.head = nn.Linear(64, outputs)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(steps) if tokens else None)

    def forward(self, samples):
        values = self.embedding(samples)
        if self.mask is not None:
            return self.head(self.encoder(values + self.positions, self.mask, is_causal=True))
        return self.head(self.encoder(values.flatten(2).transpose(1, 2) + self.positions).mean(1))


class EncoderDecoder(nn.Module):
    """A transformer with encoder and decoder, for the sources and targets in samples [N, 2, L, width]."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(128, 4, 2, 2, 512, 0, batch_first=True)

    def forward(self, samples):
        source, target = samples.unbind(1)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True).flatten(1)


def autoencoder(_classes):
    layers = [nn.Flatten()]
    for units, more in ((784, 256), (256, 32), (32, 256)):
        layers += [nn.Linear(units, more), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, 784))


# The model for a number of classes or tokens, and the optimizer for its parameters.
MODELS = {
    "text_gpt": (lambda tokens: Transformer(tokens, 64, 2, 256, 0, tokens), lambda of, **more: torch.optim.AdamW(of, 0.003, weight_decay=0.01, **more)),
    "text_lstm": (lambda tokens: Recurrent(64, tokens, tokens), lambda of, **more: torch.optim.Adam(of, 0.004, **more)),
    "mnist_lstm": (lambda classes: Recurrent(28, classes), lambda of, **more: torch.optim.Adam(of, 0.002, **more)),
    "mnist_vit": (lambda classes: Transformer(classes, 49, 4, 128, 0.1), lambda of, **more: torch.optim.AdamW(of, 0.001, weight_decay=0.05, **more)),
    "encoder_decoder": (lambda _: EncoderDecoder(), lambda of, **more: torch.optim.Adam(of, 0.001, **more)),
    "mnist_autoencoder": (autoencoder, lambda of, **more: torch.optim.Adam(of, 0.001, **more)),
}


def random_batch(name, sample, classes, batch, device):
    """Returns samples, and what the loss compares the outputs with."""
    if name.startswith("text"):
        return torch.randint(classes, (2, batch, *sample), device=device).unbind()
    samples = torch.randn(batch, *sample, device=device)
    if name == "mnist_unet":
        return samples, samples
    if name == "encoder_decoder":
        return samples, torch.randn(batch, classes, device=device)
    return samples, samples.sigmoid().flatten(1) if name == "mnist_autoencoder" else torch.randint(classes, (batch,), device=device)


def loss_of(name, outputs, targets):
    if name == "mnist_autoencoder":
        return nn.functional.binary_cross_entropy_with_logits(outputs, targets)
    if name in ("mnist_unet", "encoder_decoder"):
        return nn.functional.mse_loss(outputs, targets)
    return nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
