"""The networks of models/*.yaml in PyTorch."""


def torch_model(name, classes, device="cpu", capturable=False):
    """Returns the model and the optimizer of models/NAME.yaml. With `capturable` a CUDA graph can record the
    optimizer's step."""
    import torch

    if name.startswith("resnet"):
        import torchvision
        model = getattr(torchvision.models, name)(num_classes=classes, zero_init_residual=True).to(device)
        return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    recorded = {"capturable": True} if capturable else {}
    if name in ("vgg16", "mobilenet_v2", "convnext_tiny"):
        import torchvision
        model = getattr(torchvision.models, name)(num_classes=classes).to(device)
        if name == "convnext_tiny":
            return model, torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.05, **recorded)
        rate, decay = (0.002, 5e-4) if name == "vgg16" else (0.01, 4e-5)
        return model, torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=decay)
    if name == "mnist_unet":
        model = unet(channels=1, width=16, depth=2).to(device)
        return model, torch.optim.Adam(model.parameters(), 0.001, **recorded)
    if name in sequence_models().MODELS:
        make_model, make_optimizer = sequence_models().MODELS[name]
        model = make_model(classes).to(device)
        return model, make_optimizer(model.parameters(), **recorded)
    model = {"mnist_cnn": mnist_cnn, "mnist_mlp": mnist_mlp}[name](classes).to(device)
    return model, torch.optim.Adam(model.parameters(), 0.002 if name == "mnist_cnn" else 0.001, **recorded)


def sequence_models():
    import sequence_models  # imports torch, which the script that asks for help does not need
    return sequence_models


def mnist_cnn(classes):
    from torch import nn
    layers, channels = [], 1
    for width in (32, 128, 256):
        layers += [nn.Conv2d(channels, width, 3), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, 1000), nn.ReLU(), nn.Linear(1000, 100), nn.ReLU(),
                         nn.Linear(100, classes))


def mnist_mlp(classes):
    from torch import nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, classes))


def unet(channels, width, depth):
    """Returns a U-Net with the structure and names of milesial/Pytorch-UNet with bilinear=False."""
    import torch
    from torch import nn

    def convolutions(into, out):
        layers = []
        for before in (into, out):
            layers += [nn.Conv2d(before, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        return nn.ModuleDict({"double_conv": nn.Sequential(*layers)})

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inc = convolutions(channels, width)
            for i in range(depth):
                halved = nn.ModuleList([nn.MaxPool2d(2), convolutions(width << i, width << i + 1)])
                self.add_module(f"down{i + 1}", nn.ModuleDict({"maxpool_conv": halved}))
            for i in range(depth):
                out = width << depth - 1 - i
                doubled = nn.ModuleDict({"up": nn.ConvTranspose2d(2 * out, out, 2, stride=2), "conv": convolutions(2 * out, out)})
                self.add_module(f"up{i + 1}", doubled)
            self.outc = nn.ModuleDict({"conv": nn.Conv2d(width, channels, 1)})

        def forward(self, x):
            levels = [self.inc["double_conv"](x)]
            for i in range(depth):
                pool, block = getattr(self, f"down{i + 1}")["maxpool_conv"]
                levels.append(block["double_conv"](pool(levels[-1])))
            x = levels.pop()
            for i in range(depth):
                level = getattr(self, f"up{i + 1}")
                x = level["conv"]["double_conv"](torch.cat([levels.pop(), level["up"](x)], 1))
            return self.outc["conv"](x)

    return UNet()
