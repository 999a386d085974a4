// Times the training step or the forward pass of a model on one random batch, without a data source.

#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include "dev/described_bench.h"
#include "dev/encoder_decoder.h"
#include "dev/processor_clock.h"
#include "dev/watched_backend.h"
#include "tools/tool.h"

#include "app/options/repeatable.h"
#include "app/options/run_config.h"
#include "backends/cpu/threads.h"
#include "backends/registry.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "core/compile/mixed_precision.h"
#include "core/device/transfer_counts.h"
#include "core/inference/fold_batch_norms.h"
#include "models/zoo/model.h"
#include "training/checkpoints/kernel_times.h"
#include "training/data/step_source.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura {

namespace {

struct Options {
  std::string config;
  std::vector<std::string> set;
  std::vector<std::int64_t> sample;
  std::int64_t classes = 1000;
  std::string backend = "cpu";
  std::string device;
  double seconds = 20;
  bool inference = false;
  bool plan = false;
  bool no_kernels = false;
  bool bytes = false;
  bool trainer = false;
  bool processor_time = false;
};

constexpr int warm_up_steps = 3;
constexpr std::size_t fewest_steps = 5;

rusage usage() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Tensor random_samples(DType dtype, Shape shape) {
  Tensor samples({DType::float64, std::move(shape)});
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (double& value : samples.as<double>()) value = normal(random);
  return samples.cast(dtype);
}

Tensor random_images(Shape shape) {
  Tensor samples({DType::uint8, std::move(shape)});
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int> any(0, 255);
  for (std::uint8_t& value : samples.as<std::uint8_t>()) value = static_cast<std::uint8_t>(any(random));
  return samples;
}

Tensor random_numbers(Shape shape, std::int64_t classes) {
  Tensor numbers({DType::int64, std::move(shape)});
  std::mt19937_64 random(2);
  std::uniform_int_distribution<std::int64_t> any(0, classes - 1);
  for (std::int64_t& number : numbers.as<std::int64_t>()) number = any(random);
  return numbers;
}

// Returns the numbers of classes or tokens, or the targets of a regression.
Tensor random_labels(const Model& model, std::int64_t count) {
  const Field expected = expected_field(model);
  const Shape shape = batched(count, expected.type.shape);
  return expected.type.dtype == DType::float32
             ? random_samples(DType::float32, shape)
             : random_numbers(shape, model.classes()).cast(expected.type.dtype);
}

// A model on one backend, with a batch for it.
struct Bench {
  Bench(const Options& options, const Config& config)
      : sample(options.sample),
        model(make_model(config, sample, options.classes)),
        batch(config.section("training").integer("batch_size", {.minimum = 1})),
        run(read_options(config, batch, 1)),
        backend(std::make_unique<WatchedBackend>(open_backend(options.backend), !options.no_kernels)),
        store(make_store(*model, run.types.values)),
        tuner(options.plan || options.no_kernels ? Tuning::off : run.tuning) {
    store.set_types(run.types);
    for (const char* section : {"model", "training"}) config.section(section).check_all_used();
    if (run.finds_precision)
      throw config.section("training")
          .error("precision", "is auto, and the bench times one precision; give float32 or bfloat16");
    std::vector<std::int64_t> shape{batch};
    shape.insert(shape.end(), sample.begin(), sample.end());
    if (model->info().task == Task::language_model)
      samples = random_numbers(Shape(shape), options.classes);
    else
      samples = options.bytes ? random_images(Shape(shape)) : random_samples(run.types.values, Shape(shape));
    labels = random_labels(*model, batch);
  }

  Shape sample;
  std::unique_ptr<Model> model;
  std::int64_t batch;
  RunOptions run;
  std::unique_ptr<WatchedBackend> backend;
  ParameterStore store;
  Tuner tuner;
  Tensor samples;
  Tensor labels;
};

// A function that runs a program once. It returns the loss, or 0 if the program has none.
using Step = std::function<double()>;

struct Timed {
  std::size_t workspace_bytes;
  Step step;
};

// Returns the fields that the loss reads. A reconstruction reads only the samples.
std::vector<Field> fields_of(const Bench& of) {
  std::vector<Field> fields{{"samples", {of.samples.dtype(), of.sample}}};
  if (of.model->info().task != Task::reconstruction) fields.push_back(expected_field(*of.model));
  return fields;
}

class Training {
 public:
  explicit Training(Bench& of)
      : of_(of),
        fields_(fields_of(of)),
        plan_{of.batch, of.batch, 1, 1},
        programs_(
            builder_of(*of.model), fields_, of.store, *of.backend, alone_, StrategyInUse(nullptr), plan_,
            plan_,
            {.optimizer = of.run.trainer.optimizer, .tuner = &of.tuner, .memory = of.run.trainer.memory}) {
    for (std::vector<Tensor>& batch : batches_) {
      batch = make_fields(fields_, of.batch, programs_.feed_memory().get());
      std::copy_n(of.samples.data(), of.samples.bytes(), batch[0].data());
      if (batch.size() > 1) std::copy_n(of.labels.data(), of.labels.bytes(), batch[1].data());
    }
  }

  Timed timed() {
    return {programs_.workspace_bytes(), [this] { return step(); }};
  }

 private:
  // Runs one step. On a device with its own memory, launches the next step before it reads the loss of this
  // one, like the Trainer does.
  double step() {
    if (of_.backend->info().host_memory) return programs_.step().metrics(launch()).loss;
    if (!unread_) unread_ = launch();
    const StepTicket ticket = *std::exchange(unread_, launch());
    return programs_.step().metrics(ticket).loss;
  }

  StepTicket launch() {
    const std::vector<Feed> feeds = programs_.feeds(batches_[static_cast<std::size_t>(steps_ % 2)]);
    const MicroBatchInputs micro_batch[] = {{feeds, of_.batch, 0}};
    ++steps_;
    return programs_.step().run({.micro_batches = micro_batch,
                                 .global_samples = of_.batch,
                                 .step = steps_,
                                 .learning_rate = of_.run.trainer.learning_rate.learning_rate(steps_ - 1),
                                 .seed = of_.run.trainer.seed});
  }

  Bench& of_;
  SingleProcess alone_;
  std::vector<Field> fields_;
  BatchPlan plan_;
  TrainingPrograms programs_;
  // Two batches that are used in turns, in the memory where a loader would write them.
  std::array<std::vector<Tensor>, 2> batches_;
  std::optional<StepTicket> unread_;
  std::int64_t steps_ = 0;
};

// Collects the seconds between two reports of steps.
struct StepTimes final : TrainingObserver {
  void step(const StepRecord&, std::int64_t) override {
    const double time = seconds_now();
    if (last > 0) seconds.push_back(time - last);
    last = time;
  }
  double last = 0;
  std::vector<double> seconds = {};
};

// Times the steps of a Trainer on samples in memory. An epoch has some hundred steps.
std::string measure_trainer(const Options& options, Bench& of) {
  constexpr std::int64_t steps_in_epoch = 500;
  const auto repeated = [&](const Tensor& batch) {
    std::vector<std::int64_t> extents = batch.shape().extents();
    extents[0] *= steps_in_epoch;
    Tensor all({batch.dtype(), Shape(std::move(extents))});
    for (std::int64_t i = 0; i < steps_in_epoch; ++i)
      std::copy_n(batch.data(), batch.bytes(), all.data() + static_cast<std::size_t>(i) * batch.bytes());
    return all;
  };
  std::vector<std::pair<std::string, Tensor>> tensors{{"samples", repeated(of.samples)}};
  if (fields_of(of).size() > 1) tensors.emplace_back(expected_field(*of.model).name, repeated(of.labels));
  const auto data = tensor_dataset(std::move(tensors));
  StepTimes times;
  const double begin = seconds_now();
  while (times.seconds.empty() || seconds_now() - begin < options.seconds) {
    Trainer trainer({builder_of(*of.model), of.store, *of.backend, data},
                    {.batch_size = of.batch, .optimizer = of.run.trainer.optimizer});
    times.last = 0;
    trainer.run(times);
  }
  return fmt::format(
      R"({{"model":"{}","backend":"{}","batch":{},"steps":{},"median_s":{:.9f},"min_s":{:.9f}}})",
      options.config, options.backend, of.batch, times.seconds.size(), median(times.seconds),
      std::ranges::min(times.seconds));
}

class Inference {
 public:
  explicit Inference(Bench& of) : of_(of) {
    Graph graph(Mode::inference);
    const std::vector<Value> roots{(*of.model)(graph.input("samples", of.samples.type())).value()};
    const ArenaTypes& types = of.store.types();
    const PassGraph built = types.is_mixed() ? in_mixed_precision(graph, roots, types.precision())
                                             : fold_batch_norms(graph, roots);
    program_ = compile(*built.graph, std::vector<ProgramOutput>{{Node(*built.graph, built.roots[0])}},
                       *of.backend, {.types = types, .tuner = &of.tuner});
    of.store.place(program_->placement, *of.backend);
    auto workspace = std::make_shared<Workspace>(*of.backend, program_->arena_bytes, program_->feed_bytes);
    vm_ = std::make_unique<VM>(program_, *of.backend, VmOptions{.store = &of.store, .workspace = workspace});
    for (Tensor& batch : batches_) {
      batch = std::move(workspace->feeds().take({of.samples.type()}).front());
      std::copy_n(of.samples.data(), of.samples.bytes(), batch.data());
    }
  }

  // Times the runs. On a device with its own memory, a run waits for the run before the last one, which was
  // fed from the same batch.
  Timed timed() {
    return {program_->arena_bytes, [this] {
              vm_->run({{"samples", batches_[static_cast<std::size_t>(runs_++ % 2)]}});
              if (of_.backend->info().host_memory) vm_->wait();
              return 0.0;
            }};
  }

 private:
  Bench& of_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<VM> vm_;
  std::array<Tensor, 2> batches_;  // two batches, which are used in turns
  std::int64_t runs_ = 0;
};

// Returns the counts of transfers. Returns nothing if the backend does not count them.
std::optional<TransferCounts> transfers_of(const Backend& backend) {
  const auto* const counts = dynamic_cast<const CountsTransfers*>(&backend);
  if (counts == nullptr) return std::nullopt;
  return counts->transfers();
}

// Returns text for the JSON line: the transfers per step, from two counts that are `steps` steps apart.
// Returns "" if the backend does not count.
std::string transfers_text(const std::optional<TransferCounts>& from, const std::optional<TransferCounts>& to,
                           std::size_t steps) {
  if (!from || !to) return "";
  const auto per_step = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(steps);
  };
  return fmt::format(R"(,"copies_per_step":{:g},"recorded_copies_per_step":{:g},"waits_per_step":{:g})",
                     per_step(to->copies - from->copies),
                     per_step(to->recorded_copies - from->recorded_copies),
                     per_step(to->waits - from->waits));
}

std::string measure(const Options& options, const Bench& of, const Timed& timed, int threads) {
  const auto now = options.processor_time ? processor_seconds : seconds_now;
  const double first_loss = timed.step();
  for (int i = 1; i < warm_up_steps; ++i) timed.step();
  std::vector<double> times;
  double last_loss = 0;
  const long faults = usage().ru_minflt;
  const std::optional<TransferCounts> before = transfers_of(of.backend->watched());
  const double begin = now();
  while (times.size() < fewest_steps || now() - begin < options.seconds) {
    const double start = now();
    last_loss = timed.step();
    times.push_back(now() - start);
  }
  return fmt::format(
      R"({{"model":"{}","backend":"{}","precision":"{}","threads":{},"batch":{},"parameters":{},"steps":{},"median_s":{:.9f},"min_s":{:.9f},)"
      R"("images_per_second":{:.2f},"loss":[{:.6g},{:.6g}],"page_faults_per_step":{:.2f},"peak_rss_mb":{},"arena_mb":{:.1f}{}}})",
      options.config, options.backend, name_of(of.run.types.precision()), threads, of.batch,
      of.store.trainable_elements(), times.size(), median(times), std::ranges::min(times),
      static_cast<double>(of.batch) / median(times), first_loss, last_loss,
      static_cast<double>(usage().ru_minflt - faults) / static_cast<double>(times.size()),
      usage().ru_maxrss / 1024, static_cast<double>(timed.workspace_bytes) / (1 << 20),
      transfers_text(before, transfers_of(of.backend->watched()), times.size()));
}

template <class Program>
std::string look_at(const Options& options) {
  const Config config = Config::load(options.config, options.set);
  if (!options.device.empty())
    return described_step(config, Shape(options.sample), options.classes, options.backend, options.device);
  const int threads = use_cores(1);
  Bench of(options, config);
  const auto times = kernel_times_file();
  if (!options.plan && of.run.tuning != Tuning::off) load_kernel_times(times, of.tuner);
  if (options.trainer) return measure_trainer(options, of);
  Program program(of);
  if (of.tuner.measured() > 0) save_kernel_times(times, of.tuner);
  const Timed timed = program.timed();
  return options.plan ? of.backend->plan() : measure(options, of, timed, threads);
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  register_encoder_decoder();
  CLI::App app(
      "Times training steps of a model on one random batch and prints one line of JSON: seconds, MiB, the "
      "losses of the first and the last step",
      "bench");
  Options options;
  app.option_defaults()->always_capture_default();
  app.add_option("FILE.yaml", options.config,
                 "a configuration; only the sections model and training are used")
      ->required();
  app.add_option("--sample", options.sample, "the shape of one sample, such as 3,224,224")
      ->delimiter(',')
      ->check(whole_number(1))
      ->required();
  app.add_option("--classes", options.classes, "number of classes")->check(whole_number(1));
  repeatable(app.add_option("--set", options.set, "overrides a key of the file: training.batch_size=16"))
      ->type_name("KEY=VALUE");
  auto* const seconds =
      app.add_option("--seconds", options.seconds, "minimum duration; at least five steps are timed")
          ->check(above_zero());
  app.add_option("--backend", options.backend, "cpu, portable or a plugin; options follow its name");
  auto* const device = app.add_option(
      "--device", options.device,
      "times nothing; prints what a step of training would enqueue on this GPU, which need not "
      "be there: a100, h100, h200 or b200");
  auto* const inference = app.add_flag("--inference", options.inference, "times only the forward pass");
  auto* const trainer = app.add_flag("--trainer", options.trainer,
                                     "times steps through the Trainer: with data, metrics and records");
  app.add_flag("--bytes", options.bytes, "gives samples of uint8, which the model normalises");
  auto* const processor_time = app.add_flag("--processor-time", options.processor_time,
                                            "times the processor instead of the clock: all threads together")
                                   ->excludes(trainer);
  auto* const no_kernels =
      app.add_flag("--no-kernels", options.no_kernels,
                   "leaves all kernels out: what remains is the loop, feeds, scalars and metrics");
  auto* const plan = app.add_flag(
      "--plan", options.plan,
      "times nothing; prints which kernels estimates choose, and the share of the portable ones");
  plan->excludes(processor_time);
  for (auto* const of_what_runs : {seconds, inference, trainer, processor_time, no_kernels, plan})
    device->excludes(of_what_runs);
  return run_tool(app, argc, argv, [&] {
    print_output((options.inference ? look_at<Inference>(options) : look_at<Training>(options)) + "\n");
  });
}
