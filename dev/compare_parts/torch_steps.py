"""Times training steps in PyTorch, in the forms in which users write them."""

import contextlib
import dataclasses
import statistics
import time

from peer_models import torch_model


@dataclasses.dataclass(frozen=True)
class Mode:
    precision: str = "float32"  # also tf32; 16-bit types use torch.autocast, like PyTorch's AMP
    channels_last: bool = False
    way: str = "eager"          # also compile (torch.compile) and graph (the whole step is one CUDA graph)

    def dtype(self):
        import torch
        return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(self.precision)


ON_CPU = {"as written": Mode(), "channels_last": Mode(channels_last=True)}
IMAGES_ON_GPU = {
    "AMP bfloat16, channels_last": Mode("bfloat16", True),
    "AMP bfloat16, channels_last, compile": Mode("bfloat16", True, "compile"),
    "AMP bfloat16, channels_last, graph": Mode("bfloat16", True, "graph"),
    "AMP float16, channels_last": Mode("float16", True),
    "TF32, channels_last": Mode("tf32", True),
    "float32": Mode(),
}
DIGITS_ON_GPU = {"float32": Mode(), "float32, compile": Mode(way="compile"), "float32, graph": Mode(way="graph")}

WITHOUT_CHANNELS = ("text_gpt", "text_lstm", "mnist_lstm", "mnist_vit", "mnist_autoencoder", "encoder_decoder")


def modes_of(model, device):
    if device == "cpu":
        return ON_CPU if model not in WITHOUT_CHANNELS else {"as written": Mode()}
    return DIGITS_ON_GPU if model.startswith("mnist") or model in WITHOUT_CHANNELS else IMAGES_ON_GPU


def set_flags(mode, device):
    import torch
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode.precision == "tf32"
        torch.backends.cudnn.benchmark = True


def make_step(model_name, sample, classes, batch, mode, device):
    """Returns a function that trains one step on a random batch on the device, and returns the loss on the
    device."""
    import torch
    from sequence_models import LIMITED, loss_of, random_batch
    torch.manual_seed(1)
    set_flags(mode, device)
    model, optimizer = torch_model(model_name, classes, device, capturable=mode.way == "graph")
    samples, targets = random_batch(model_name, sample, classes, batch, device)
    if mode.channels_last:
        model, samples = model.to(memory_format=torch.channels_last), samples.to(memory_format=torch.channels_last)
    if mode.way == "compile":
        model = torch.compile(model)
    scaler = torch.amp.GradScaler(device, enabled=mode.precision == "float16")

    def forward_and_backward():
        # Casts cached by autocast would not be computed again when a graph is replayed.
        narrow = torch.autocast(device, mode.dtype(), cache_enabled=mode.way != "graph") if mode.dtype() else contextlib.nullcontext()
        with narrow:
            loss = loss_of(model_name, model(samples), targets)
        scaler.scale(loss).backward()
        if model_name in LIMITED:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        return loss

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward_and_backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return capture(step, optimizer) if mode.way == "graph" else step


def capture(step, optimizer):
    """Records the step as one CUDA graph, as PyTorch's manual describes."""
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def median_seconds(step, seconds, device):
    """Returns the median time of a step. On the CPU the loss is read after each step. A GPU is waited for
    only after groups of steps, so that the host can run ahead."""
    for _ in range(3):
        step().item()
    block = 1
    if device != "cpu":
        begin = time.perf_counter()
        step().item()
        block = max(1, int(0.1 / (time.perf_counter() - begin)))
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        for _ in range(block - 1):
            step()
        step().item()
        times.append((time.perf_counter() - start) / block)
    return statistics.median(times)
