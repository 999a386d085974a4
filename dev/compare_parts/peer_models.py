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
    model = {"mnist_cnn": mnist_cnn, "mnist_mlp": mnist_mlp}[name](classes).to(device)
    return model, torch.optim.Adam(model.parameters(), 0.002 if name == "mnist_cnn" else 0.001, **recorded)


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
