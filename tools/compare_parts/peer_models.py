"""The networks of models/*.yaml in PyTorch."""


def torch_model(name, classes):
    """The model and its optimizer as models/NAME.yaml describes them."""
    import torch
    import torchvision
    from torch import nn

    if name == "resnet50":
        model = torchvision.models.resnet50(num_classes=classes, zero_init_residual=True)
        return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    layers, channels = [], 1
    for width in (32, 128, 256):
        layers += [nn.Conv2d(channels, width, 3), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    model = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, 1000), nn.ReLU(), nn.Linear(1000, 100), nn.ReLU(),
                          nn.Linear(100, classes))
    return model, torch.optim.Adam(model.parameters(), 0.002)
