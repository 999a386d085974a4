// Times the training step of a model on one random batch: what the engine can do without a data source.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <random>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "tools/tool.h"

#include "backends/cpu/threads.h"
#include "backends/registry.h"
#include "core/error.h"
#include "models/programs/run_config.h"
#include "models/zoo/model.h"

namespace plexaura {

namespace {

struct Options {
  std::string config;
  std::vector<std::string> set;
  std::vector<std::int64_t> sample;
  std::int64_t classes = 1000;
  std::string backend = "cpu";
  double seconds = 20;
};

constexpr int warm_up_steps = 3;
constexpr std::size_t fewest_steps = 5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

Tensor random_labels(std::int64_t count, std::int64_t classes) {
  Tensor labels({DType::int64, {count}});
  std::mt19937_64 random(2);
  std::uniform_int_distribution<std::int64_t> any(0, classes - 1);
  for (std::int64_t& label : labels.as<std::int64_t>()) label = any(random);
  return labels;
}

std::string measure(const Options& options) {
  const Config config = Config::load(options.config, options.set);
  const Shape sample(options.sample);
  const auto model = make_model(config.section("model"), sample, options.classes);
  const std::int64_t batch = config.section("training").integer("batch_size", {.minimum = 1});
  const RunOptions run = read_options(config, batch, 1);
  for (const char* section : {"model", "training"}) config.section(section).check_all_used();
  const int threads = use_cores(1);
  const auto backend = open_backend(options.backend);
  ParameterStore store = make_store(*model, run.dtype);
  const ModelBuilder build = [&](const ModelInputs& inputs) {
    return build_loss(*model, (*model)(inputs["samples"]), inputs["labels"]);
  };
  SingleProcess alone;
  const BatchPlan plan{batch, batch, 1, 1};
  TrainingPrograms programs(build, {{"samples", {DType::float32, sample}}, {"labels", {DType::int64, {}}}},
                            store, *backend, alone, nullptr, plan, plan, {.solver = run.trainer.solver});

  std::vector<std::int64_t> shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  const Tensor samples = random_samples(run.dtype, Shape(shape));
  const Tensor labels = random_labels(batch, options.classes);
  const Feed feeds[] = {{"samples", samples}, {"labels", labels}};
  const MicroBatchInputs micro_batch[] = {{feeds, batch, 0}};
  StepInputs inputs{.micro_batches = micro_batch, .global_samples = batch, .seed = run.trainer.seed};
  const auto step = [&] {
    inputs.learning_rate = run.trainer.learning_rate.learning_rate(inputs.step - 1);
    programs.step().run(inputs);
    ++inputs.step;
    return programs.step().metrics().loss;
  };

  const double first_loss = step();
  for (int i = 1; i < warm_up_steps; ++i) step();
  std::vector<double> times;
  double last_loss = 0;
  const long faults = usage().ru_minflt;
  const double begin = now();
  while (times.size() < fewest_steps || now() - begin < options.seconds) {
    const double start = now();
    last_loss = step();
    times.push_back(now() - start);
  }
  return fmt::format(
      R"({{"model":"{}","backend":"{}","threads":{},"batch":{},"parameters":{},"steps":{},"median_s":{:.9f},"min_s":{:.9f},)"
      R"("images_per_second":{:.2f},"loss":[{:.6g},{:.6g}],"page_faults_per_step":{:.2f},"peak_rss_mb":{},"arena_mb":{:.1f}}})",
      options.config, options.backend, threads, batch, store.trainable_elements(), times.size(),
      median(times), std::ranges::min(times), static_cast<double>(batch) / median(times), first_loss,
      last_loss, static_cast<double>(usage().ru_minflt - faults) / static_cast<double>(times.size()),
      usage().ru_maxrss / 1024, static_cast<double>(programs.workspace_bytes()) / (1 << 20));
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app(
      "Times the training step of a model on one random batch, and prints a line of JSON: seconds, MiB, "
      "losses of the first and the last step",
      "bench");
  Options options;
  app.option_defaults()->always_capture_default();
  app.add_option("FILE.yaml", options.config, "its sections model and training are read")->required();
  app.add_option("--sample", options.sample, "the shape of one sample, such as 3,224,224")
      ->delimiter(',')
      ->check(whole_number(1))
      ->required();
  app.add_option("--classes", options.classes, "of the labels")->check(whole_number(1));
  app.add_option("--set", options.set, "overrides a key of the file: training.batch_size=16")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--seconds", options.seconds, "at least so long, and five steps")->check(above_zero());
  app.add_option("--backend", options.backend, "as of the programs");
  return run_tool(app, argc, argv, [&] { fmt::print("{}\n", measure(options)); });
}
