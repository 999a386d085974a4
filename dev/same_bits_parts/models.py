"""The models of the configurations: a program, its YAML file, its data, and settings that make a run short.
"""

import dataclasses


@dataclasses.dataclass
class Model:
    program: str
    yaml: str
    data: str  # iris.csv of models/; mnist of PLEXAURA_DATA; or images, which draw_shapes makes
    settings: tuple


MODELS = {
    "iris": Model("mlp", "iris.yaml", "iris.csv", ("training.epochs=2",)),
    "digits": Model("convnet", "mnist_cnn.yaml", "mnist", ("training.epochs=1", "training.batch_size=24", "data.limit=120", "data.validation_limit=40")),
    "shapes": Model("resnet", "resnet18.yaml", "images", (
        "model={name: resnet, stages: [1, 1], block: basic, width: 8}", "data.image_size=32", "training.epochs=2", "training.batch_size=6", "training.schedule.warmup_epochs=1")),
}
