// Tests what a training step enqueues on GPUs that need not exist. Figures that depend on the plans of
// convolutions are cuDNN's if it is part of the build. Otherwise each convolution is assumed to be one call
// without scratch memory.

#include "app/described_step.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>
#include <string>

#include "app/options/run_config.h"
#include "backends/registry.h"
#include "core/base/error.h"
#include "models/zoo/model.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::described_step_test {

namespace {

// A model of the zoo that trains on images of bytes.
struct Run {
  Run(const std::string& yaml, const Shape& sample, std::int64_t classes, const std::string& device,
      const std::vector<std::string>& overrides, const std::string& backend_name = "cuda")
      : config(Config::load(std::string(PLEXAURA_SOURCE) + "/models/" + yaml, overrides)),
        model(make_model(config, sample, classes)),
        options(read_options(config, config.section("training").integer("batch_size", {.minimum = 1}), 1)),
        backend(open_described_backend(backend_name, device)),
        store(make_store(*model, options.types.values)) {
    store.set_types(options.types);
    options.trainer.output.clear();
    trainer = std::make_unique<Trainer>(
        TrainerParts{.model = builder_of(*model),
                     .store = store,
                     .backend = *backend,
                     .train = std::make_shared<UnreadSamples>(options.trainer.batch_size, sample)},
        options.trainer);
  }

  Config config;
  std::unique_ptr<Model> model;
  RunOptions options;
  std::unique_ptr<DescribedBackend> backend;
  ParameterStore store;
  std::unique_ptr<Trainer> trainer;
};

struct Figures {
  explicit Figures(const WorkAccount& account) : graphs(account.replays) {
    for (const EnqueuedCall& call : account.calls) {
      bytes += call.bytes;
      operations += call.operations;
      seconds += call.seconds;
      (call.recorded ? recorded : beside) += 1;
    }
  }

  std::size_t graphs;
  std::size_t recorded = 0;
  std::size_t beside = 0;  // calls beside the graph: samples are copied in, loss and counts are copied out
  double bytes = 0;
  double operations = 0;
  double seconds = 0;
};

std::size_t count_of(const WorkAccount& account, EnqueuedCall::Kind kind, std::string_view what) {
  std::size_t count = 0;
  for (const EnqueuedCall& call : account.calls) count += call.kind == kind && call.what == what ? 1 : 0;
  return count;
}

// The graph itself copies nothing to or from the host. Beside it, only samples and metrics are copied.
void check_moves_nothing(const WorkAccount& account) {
  std::multiset<std::string> beside;
  for (const EnqueuedCall& call : account.calls) {
    CAPTURE(call.what);
    if (!call.recorded)
      beside.insert(call.what);
    else
      CHECK((call.kind != EnqueuedCall::Kind::copy || call.what == "copy on the device"));
  }
  CHECK(beside == std::multiset<std::string>{"copy from the host", "copy to the host"});
}

}  // namespace

TEST_CASE("a step of ResNet50 in bfloat16 is one graph of few calls, and reads and writes little") {
  Run run("resnet50.yaml", {3, 224, 224}, 1000, "h200",
          {"training.batch_size=256", "training.precision=bfloat16"});
  const WorkAccount account = account_of_step(*run.backend, *run.trainer);
  MESSAGE(text_of(account, *run.backend, 256));
  const Figures step(account);
  CHECK(step.graphs == 1);
  CHECK(step.beside == 2);
  check_moves_nothing(account);
  CHECK(step.recorded <= 450);
  // 53 convolutions forward and the gradients of their weights. The first one has no gradient of its input.
  const auto libraries = [&](std::string_view what) {
    return count_of(account, EnqueuedCall::Kind::library, what);
  };
  CHECK(libraries("conv2d") == 53);
  CHECK(libraries("conv2d_weight_grad") == 53);
  CHECK(libraries("conv2d_input_grad") == 52);
  CHECK(step.bytes <= 97.5e9);
  CHECK(256 / step.seconds >= 9700);
  CHECK(account.seconds_of_chains <= 0.9 * step.seconds);
}

TEST_CASE("the table of a step counts its calls, in the graph and beside it, and sums what they take") {
  using Kind = EnqueuedCall::Kind;
  const auto backend = open_described_backend("cuda", "h200");
  const WorkAccount account{.calls = {{Kind::library, "conv2d", 3e9, 4e9, 0.25e-3, true},
                                      {Kind::kernel, "add", 1e9, 0, 1e-3, true},
                                      {Kind::library, "conv2d", 3e9, 4e9, 0.25e-3, true},
                                      {Kind::copy, "copy from the host", 5e8, 0, 0, false}},
                            .replays = 2,
                            .seconds_of_chains = 1.25e-3};
  const std::string text = text_of(account, *backend, 30);
  CHECK(text.substr(text.find("step ")) ==
        R"(step         2 graph launches with 3 calls, 1 calls beside
 calls        GB      GFLOP        ms  by       what
     1     1.000        0.0     1.000  kernel   add
     2     6.000        8.0     0.500  library  conv2d
     1     0.500        0.0     0.000  copy     copy from the host
     4     7.500        8.0     1.500           in all
roofline     1.5 ms a step of 30 samples, 20000 samples/s at most
side by side 1.25 ms, if kernels that run at the same time do not slow each other down
)");
}

TEST_CASE("ResNet50 holds little memory a picture") {
  const auto gigabytes_a_picture = [](const char* precision, std::int64_t batch) {
    const Run run(
        "resnet50.yaml", {3, 224, 224}, 1000, "h200",
        {fmt::format("training.batch_size={}", batch), fmt::format("training.precision={}", precision)});
    const double gigabytes = static_cast<double>(run.backend->most_bytes_used()) / 1e9;
    MESSAGE(fmt::format("{}, {} pictures: {:.1f} GB", precision, batch, gigabytes));
    return gigabytes / static_cast<double>(batch);
  };
  CHECK(gigabytes_a_picture("float32", 256) <= 0.12);
  CHECK(gigabytes_a_picture("bfloat16", 256) <= 0.06);
}

TEST_CASE("a step of the nets for digits is one graph") {
  for (const char* const device : {"a100", "h100", "h200", "b200"})
    for (const char* const yaml : {"mnist_cnn.yaml", "mnist_mlp.yaml"}) {
      CAPTURE(yaml);
      CAPTURE(device);
      Run run(yaml, {1, 28, 28}, 10, device, {});
      const WorkAccount account = account_of_step(*run.backend, *run.trainer);
      const Figures step(account);
      CHECK(step.graphs == 1);
      CHECK(step.beside == 2);
      check_moves_nothing(account);
    }
}

TEST_CASE(
    "a step that a described GPU has no memory for is told with what is planned, and what makes it smaller") {
  const auto refusal = [](const char* precision) {
    return user_error([&] {
      Run("resnet50.yaml", {3, 224, 224}, 1000, "a100",
          {"training.batch_size=4096", std::string("training.precision=") + precision});
    });
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string wide = refusal("float32");
  has(wide, "the GPU was asked for ");
  has(wide, " bytes of memory and has ");
  has(wide, " of its 85899345920 bytes left: ");
  has(wide, " bytes of intermediate values are planned for 4096 samples at a time, in addition to ");
  has(wide,
      "; lower training.batch_size, raise training.micro_batches, set training.precision to bfloat16, or set "
      "training.memory, with which values are computed again");
  has(refusal("bfloat16"),
      "; lower training.batch_size, raise training.micro_batches, or set training.memory, ");
}

}  // namespace plexaura::testing::described_step_test
