#include "training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "training/signals.h"

namespace plexaura {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::uint64_t hash_of(const ParameterStore& store) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const ParameterSpec& spec : store.specs()) {
    const Tensor value = store.read(spec.name);
    for (const std::byte byte : std::span(value.data(), value.bytes()))
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
  }
  return hash;
}

const Tensor& in_dtype(const Tensor& tensor, DType dtype, Tensor& converted) {
  if (tensor.dtype() == dtype) return tensor;
  converted = tensor.cast(dtype);
  return converted;
}

// The signal of the lowest rank that received one.
int agreed_signal(Collective& collective, int mine) {
  for (const std::string& text : collective.gather_all(std::to_string(mine), "the signal that ends the run"))
    if (text != "0") return std::stoi(text);
  return 0;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

TrainingObserver::~TrainingObserver() = default;

Trainer::Trainer(TrainerParts parts, TrainerOptions options) : parts_(std::move(parts)), options_(std::move(options)) {
  const std::int64_t ranks = parts_.collective.size();
  train_plan_ = {parts_.train->size(), options_.batch_size, ranks, options_.micro_batches};
  validation_plan_ = {parts_.validation->size(), options_.batch_size, ranks, 1};
  train_plan_.check();
  programs_ = std::make_unique<TrainingPrograms>(parts_.model, parts_.train->sample_shape(), parts_.store, parts_.backend,
                                                 parts_.collective, parts_.strategy, train_plan_, validation_plan_,
                                                 options_.programs);
  state_.seed = options_.seed;
}

std::map<std::string, std::string> Trainer::facts() const {
  return {{"placement", to_text(parts_.store.placement())},
          {"seed", std::to_string(options_.seed)},
          {"initial weights", fmt::format("{:016x}", hash_of(parts_.store))}};
}

bool Trainer::resume() {
  const auto state = load_checkpoint(options_.output, parts_.store);
  if (!state) return false;
  if (state->seed != options_.seed)
    throw UserError(fmt::format("the checkpoint in {} was made with seed {} and training.seed is {}; resume with the same seed",
                                options_.output.string(), state->seed, options_.seed));
  state_ = *state;
  return true;
}

bool Trainer::done() const {
  return state_.epoch >= options_.epochs || (options_.steps && state_.step >= *options_.steps);
}

TrainingResult Trainer::run(TrainingObserver& observer) {
  const StopSignals signals;
  if (parts_.strategy != nullptr) parts_.strategy->begin(programs_->step().border());
  Loader loader(parts_.train, {.batch_size = options_.batch_size,
                               .ranks = parts_.collective.size(),
                               .rank = parts_.collective.rank(),
                               .micro_batches = options_.micro_batches,
                               .seed = static_cast<std::uint64_t>(options_.seed),
                               .shuffle = options_.shuffle,
                               .workers = options_.workers,
                               .prefetch = options_.prefetch,
                               .on_error = options_.on_error,
                               .first_epoch = state_.epoch,
                               .first_step = state_.step_in_epoch});
  const double begin = now();
  double epoch_begin = begin;
  bool stopped = false;
  while (!done() && !stopped) {
    noted_signal_ = signals.received();
    const std::int64_t epoch = state_.epoch;
    stopped = train_step(loader, observer);
    if (state_.epoch != epoch) {
      finish_epoch(observer, now() - epoch_begin);
      epoch_begin = now();
    }
  }
  if (parts_.strategy != nullptr) parts_.strategy->end();
  if (stopped || state_.step_in_epoch != 0) save();
  if (stopped) result_.signal = agreed_signal(parts_.collective, signals.received());
  result_.steps = state_.step;
  result_.images_per_second = median(rates_);
  result_.stall_share = loader.stall_seconds() / std::max(now() - begin, 1e-9);
  result_.skipped = loader.skipped();
  return result_;
}

// Returns whether all ranks leave after this step because one was asked to stop.
bool Trainer::train_step(Loader& loader, TrainingObserver& observer) {
  const double begin = now();
  StepInputs inputs;
  Step data;
  try {
    data = loader.next();
  } catch (...) {
    inputs.failure = std::current_exception();
  }
  const DType dtype = parts_.store.dtype();
  std::vector<Tensor> converted(data.micro_batches.size());
  std::vector<std::array<Feed, 2>> feeds;
  std::vector<MicroBatchInputs> batches;
  feeds.reserve(data.micro_batches.size());
  for (std::size_t i = 0; i < data.micro_batches.size(); ++i) {
    const MicroBatch& batch = data.micro_batches[i];
    feeds.push_back({Feed{"samples", in_dtype(batch.samples, dtype, converted[i])}, Feed{"labels", batch.labels}});
    batches.push_back({feeds.back(), batch.labels.elements(), batch.first_sample});
  }
  inputs.micro_batches = batches;
  inputs.global_samples = data.global_samples;
  inputs.step = state_.step + 1;
  inputs.learning_rate = options_.schedule.learning_rate(state_.step);
  inputs.seed = options_.seed;
  inputs.stop = noted_signal_ != 0;
  programs_->step().run(inputs);
  const StepMetrics metrics = agreed_metrics();

  ++state_.step;
  const double samples = std::max(metrics.samples, 1.0);
  state_.epoch_loss += metrics.loss * metrics.samples;
  state_.epoch_samples += metrics.samples;
  rates_.push_back(metrics.samples / std::max(now() - begin, 1e-9));
  observer.step({state_.step, data.epoch, metrics.loss, metrics.correct / samples, rates_.back(), inputs.learning_rate},
                data.steps_in_epoch);
  state_.step_in_epoch = data.ends_epoch() ? 0 : data.step_in_epoch + 1;
  if (data.ends_epoch()) ++state_.epoch;
  loader.recycle(std::move(data));
  return metrics.stop;
}

// Where any rank failed all leave here, each with an error.
StepMetrics Trainer::agreed_metrics() {
  StepMetrics metrics;
  std::exception_ptr mine;
  try {
    metrics = programs_->step().metrics();
  } catch (...) {
    mine = std::current_exception();
  }
  if (mine || metrics.failed) agree_on_error(parts_.collective, mine, fmt::format("step {}", state_.step + 1));
  return metrics;
}

void Trainer::finish_epoch(TrainingObserver& observer, double seconds) {
  const Evaluation evaluation = validate();
  const double samples = std::max(evaluation.samples, 1.0);
  result_.last_epoch = {state_.epoch - 1, state_.epoch_loss / std::max(state_.epoch_samples, 1.0), evaluation.loss / samples,
                        evaluation.correct / samples, seconds};
  state_.epoch_loss = state_.epoch_samples = 0;
  observer.epoch(result_.last_epoch);
  save();
}

Evaluation Trainer::validate() {
  Evaluation sums;
  std::exception_ptr mine;
  try {
    Loader loader(parts_.validation, {.batch_size = options_.batch_size,
                                      .ranks = parts_.collective.size(),
                                      .rank = parts_.collective.rank(),
                                      .shuffle = false,
                                      .workers = options_.workers,
                                      .prefetch = options_.prefetch,
                                      .on_error = options_.on_error});
    for (std::int64_t i = 0; i < validation_plan_.steps_per_epoch(); ++i) {
      const Step data = loader.next();
      Tensor converted;
      const MicroBatch& batch = data.micro_batches[0];
      const Evaluation part = programs_->evaluate(in_dtype(batch.samples, parts_.store.dtype(), converted), batch.labels);
      sums.loss += part.loss;
      sums.correct += part.correct;
      sums.correct_top5 += part.correct_top5;
      sums.samples += part.samples;
    }
  } catch (...) {
    mine = std::current_exception();
  }
  agree_on_error(parts_.collective, mine, "validation");
  std::array<double, 4> all{sums.loss, sums.correct, sums.correct_top5, sums.samples};
  parts_.collective.sum(DType::float64, reinterpret_cast<std::byte*>(all.data()), 4, "the validation of an epoch");
  return {all[0], all[1], all[2], all[3]};
}

void Trainer::save() {
  if (options_.output.empty()) return;
  std::exception_ptr mine;
  try {
    if (parts_.collective.rank() == 0) save_checkpoint(options_.output, parts_.store, state_, options_.keep);
  } catch (...) {
    mine = std::current_exception();
  }
  agree_on_error(parts_.collective, mine, "saving a checkpoint");
}

}  // namespace plexaura
