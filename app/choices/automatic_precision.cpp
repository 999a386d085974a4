#include "app/choices/automatic_precision.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include "app/choices/kernel_choice.h"
#include "app/report/report.h"
#include "backends/registry.h"
#include "core/base/clock.h"
#include "training/checkpoints/checkpoint.h"
#include "training/data/step_source.h"
#include "training/programs/programs.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

constexpr int fewest_steps = 3;
constexpr int most_steps = 20;
constexpr double enough_seconds = 1;
constexpr double least_gain = 0.95;  // share of the time of float32 that bfloat16 may take at most

ArenaTypes types_of(const std::string& precision) {
  return precision == "bfloat16" ? ArenaTypes::mixed(DType::bfloat16) : ArenaTypes::all(DType::float32);
}

// The training programs of one rank, with a micro-batch of zeros. Few kernels take another time with other values: the
// gradient of an embedding, for example, adds all samples to one row.
class TimedStep {
 public:
  TimedStep(const StepToTime& of, Backend& backend, const ArenaTypes& types, const TrainerOptions& options,
            Tuner* tuner)
      : store_(of.parameters, 1), samples_(of.samples) {
    store_.set_types(types);
    const BatchPlan plan{samples_, samples_, 1, 1};
    programs_ = std::make_unique<TrainingPrograms>(
        builder_of(of.model), of.fields, store_, backend, alone_, StrategyInUse(nullptr), plan, plan,
        ProgramOptions{.optimizer = options.optimizer, .tuner = tuner, .memory = options.memory});
    batch_ = make_fields(of.fields, samples_, programs_->feed_memory().get());
    for (Tensor& field : batch_) std::memset(field.data(), 0, field.bytes());
  }

  // Makes some steps after a first one, and returns the median of their seconds.
  double median_seconds() {
    step();
    std::vector<double> seconds;
    const double begin = seconds_now();
    while (std::ssize(seconds) < fewest_steps ||
           (std::ssize(seconds) < most_steps && seconds_now() - begin < enough_seconds)) {
      const double start = seconds_now();
      step();
      seconds.push_back(seconds_now() - start);
    }
    std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
    return seconds[seconds.size() / 2];
  }

 private:
  void step() {
    const std::vector<Feed> feeds = programs_->feeds(batch_);
    const MicroBatchInputs micro_batch[] = {{feeds, samples_, 0}};
    programs_->step().metrics(
        programs_->step().run({.micro_batches = micro_batch, .global_samples = samples_, .step = ++steps_}));
  }

  SingleProcess alone_;
  ParameterStore store_;
  std::unique_ptr<TrainingPrograms> programs_;
  std::vector<Tensor> batch_;
  std::int64_t samples_;
  std::int64_t steps_ = 0;
};

// Chooses the precision. A checkpoint keeps it, and a run that continues from it takes the same one.
class AutomaticPrecision final : public RankChoice<std::string> {
 public:
  AutomaticPrecision(const CommandLine& line, Communicator& ranks, StepToTime step, std::string stored,
                     RunOptions& options)
      : line_(line), ranks_(ranks), step_(std::move(step)), stored_(std::move(stored)), options_(options) {}

 private:
  std::vector<std::string> candidates() override { return {"float32", "bfloat16"}; }
  std::string name_of(const std::string& precision) const override { return precision; }
  std::string kept_name() override { return stored_; }

  // Only rank 0 measures, because ranks on one host would disturb each other. All know its times, because any of them
  // may report.
  std::string judge() override {
    const std::vector<KernelChoice> kernels = kernel_choices();
    on_rank_0(ranks_, "measuring the precision", [&] {
      const std::unique_ptr<Backend> backend = open_backend(line_.backend);
      times_.float32 = seconds_in("float32", *backend, kernels[0].tuner.get());
      times_.bfloat16 = seconds_in("bfloat16", *backend, kernels[1].tuner.get());
    });
    times_.float32 = of_rank_0(times_.float32);
    times_.bfloat16 = of_rank_0(times_.bfloat16);
    return times_.faster();
  }

  double of_rank_0(double seconds) {
    return std::stod(ranks_.gather_all(fmt::format("{}", seconds), "the times of precisions").front());
  }

  // A tuner serves one set of programs.
  std::vector<KernelChoice> kernel_choices() {
    std::vector<KernelChoice> choices;
    for (int i = 0; i < 2; ++i) choices.push_back(kernel_choice(ranks_, line_, options_));
    return choices;
  }

  // Returns infinity if a step needs more than training.memory.
  double seconds_in(const std::string& precision, Backend& backend, Tuner* tuner) {
    try {
      TimedStep step(step_, backend, types_of(precision), options_.trainer, tuner);
      if (tuner != nullptr) keep_kernel_choice(*tuner);
      return step.median_seconds();
    } catch (const StepMemoryError&) {
      return std::numeric_limits<double>::infinity();
    }
  }

  void take(const std::string& precision) override { options_.types = types_of(precision); }

  ChoiceReport report(const std::string& taken) override {
    const std::vector<JsonField> chosen{{"event", "precision"}, {"precision", taken}};
    if (taken == stored_)
      return {fmt::format("training.precision is auto and continues with {}, as in the checkpoint", taken),
              chosen};
    std::vector<JsonField> fields = chosen;
    fields.push_back({"float32_seconds", times_.float32});
    fields.push_back({"bfloat16_seconds", times_.bfloat16});
    return {
        fmt::format("training.precision is auto and takes {}; {} samples {}", taken, step_.samples, reason()),
        fields};
  }

  std::string reason() const {
    for (const auto& [name, seconds] : {std::pair{"float32", times_.float32}, {"bfloat16", times_.bfloat16}})
      if (std::isinf(seconds)) return fmt::format("need more than training.memory in {}", name);
    return fmt::format("take {} in float32 and {} in bfloat16", seconds_text(times_.float32),
                       seconds_text(times_.bfloat16));
  }

  const CommandLine& line_;
  Communicator& ranks_;
  StepToTime step_;
  std::string stored_;
  RunOptions& options_;
  PrecisionTimes times_;
};

}  // namespace

std::string PrecisionTimes::faster() const {
  return bfloat16 <= least_gain * float32 ? "bfloat16" : "float32";
}

ChoiceReport decide_precision(const CommandLine& line, Communicator& ranks, StepToTime step,
                              RunOptions& options) {
  if (line.dry_run)
    return {.sentence = "training.precision is auto; --dry-run measures nothing and shows float32"};
  const bool looks = line.resume && ranks.rank() == 0;
  const std::string mine = looks ? precision_of_newest(options.trainer.output) : "";
  std::string stored = ranks.gather_all(mine, "the precision of the checkpoint").front();
  together(ranks, "the precision of the checkpoint", [&] {
    if (!stored.empty() && stored != "float32" && stored != "bfloat16")
      throw UserError(fmt::format(
          "the checkpoint in {} was trained in {}, which training.precision: auto does not choose; "
          "set training.precision to {}",
          options.trainer.output.string(), stored, stored));
  });
  return AutomaticPrecision(line, ranks, std::move(step), std::move(stored), options).make();
}

}  // namespace plexaura
