#include "training/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/fnv.h"
#include "core/vm/profile.h"
#include "training/signals.h"

namespace plexaura {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t hash_of(const Tensor& tensor, std::uint64_t hash) {
  return fnv(std::span(tensor.data(), tensor.bytes()), hash);
}

std::uint64_t hash_of_weights(const ParameterStore& store) {
  std::uint64_t hash = fnv_start;
  for (const ParameterSpec& spec : store.specs()) hash = hash_of(store.read(spec.name), hash);
  return hash;
}

std::uint64_t hash_of_states(const ParameterStore& store) {
  std::uint64_t hash = fnv_start;
  for (std::int64_t state = 0; state < store.states(); ++state)
    for (const ParameterSpec& spec : store.specs())
      if (spec.role == ParameterRole::trainable) hash = hash_of(store.read_state(state, spec.name), hash);
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

Trainer::Trainer(TrainerParts parts, TrainerOptions options)
    : parts_(std::move(parts)), options_(std::move(options)) {
  const std::int64_t ranks = parts_.collective.size();
  train_plan_ = {parts_.train->size(), options_.batch_size, ranks, options_.micro_batches};
  validation_plan_ = {parts_.validation->size(), options_.batch_size, ranks, 1};
  together(parts_.collective, "the division of the data", [&] { train_plan_.check(); });
  programs_ = std::make_unique<TrainingPrograms>(parts_.model, parts_.train->sample_shape(), parts_.store,
                                                 parts_.backend, parts_.collective, parts_.strategy,
                                                 train_plan_, validation_plan_, options_.programs);
  state_.seed = options_.seed;
  state_.data_origin = options_.data_origin;
  state_.samples = train_plan_.samples;
  state_.batch_size = train_plan_.batch_size;
  state_.solver = solver_name(options_.programs.solver);
}

std::map<std::string, std::string> Trainer::facts() const {
  std::map<std::string, std::string> facts{
      {"seed", std::to_string(options_.seed)},
      {"initial weights", fmt::format("{:016x}", hash_of_weights(parts_.store))},
      {"the first step", std::to_string(state_.step + 1)},
      {"the plan", fmt::format("{:016x}", programs_->plan_hash())}};
  if (options_.rebroadcast_every == 0)
    facts["the plan's kernels"] = fmt::format("{:016x}", programs_->kernels_hash());
  if (state_.step > 0) facts["the solver's state"] = fmt::format("{:016x}", hash_of_states(parts_.store));
  return facts;
}

bool Trainer::resume() {
  const auto state = load_checkpoint(options_.output, parts_.store, state_.solver);
  if (!state) return false;
  if (state->seed != options_.seed)
    throw UserError(fmt::format(
        "the checkpoint in {} was made with seed {} and training.seed is {}; resume with the same seed",
        options_.output.string(), state->seed, options_.seed));
  if (state->data_origin != options_.data_origin)
    throw UserError(
        fmt::format("the checkpoint in {} was made with other data, classes or split, and what is held out "
                    "now may be what "
                    "it was trained on; resume with the same, or start from its weights with --weights",
                    options_.output.string()));
  if (state->step_in_epoch != 0 &&
      (state->samples != state_.samples || state->batch_size != state_.batch_size))
    throw UserError(fmt::format(
        "the checkpoint in {} was made within an epoch of {} samples in batches of {} and now there are {} "
        "in batches of {}; "
        "resume with the same data and batches",
        options_.output.string(), state->samples, state->batch_size, state_.samples, state_.batch_size));
  state_ = *state;
  state_.samples = train_plan_.samples;
  state_.batch_size = train_plan_.batch_size;
  saved_ = true;
  return true;
}

bool Trainer::done() const {
  return state_.epoch >= options_.epochs || (options_.steps && state_.step >= *options_.steps);
}

TrainingResult Trainer::run(TrainingObserver& observer) {
  const StopSignals signals;
  std::optional<Loader> loader;
  together(parts_.collective, "the start of training", [&] {
    if (parts_.strategy != nullptr) parts_.strategy->begin(programs_->step().border());
    loader.emplace(parts_.train, LoaderOptions{.batch_size = options_.batch_size,
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
  });
  const double begin = now();
  double epoch_begin = begin;
  bool stopped = false;
  while (!done() && !stopped) {
    noted_signal_ = StopSignals::received();
    const std::int64_t epoch = state_.epoch;
    stopped = train_step(*loader, observer);
    if (state_.epoch != epoch) {
      finish_epoch(observer, now() - epoch_begin);
      epoch_begin = now();
    }
  }
  programs_->step().await_weights();
  if (parts_.strategy != nullptr) parts_.strategy->end();
  if (!saved_ && result_.steps_now > 0) save();
  if (stopped) result_.signal = agreed_signal(parts_.collective, StopSignals::received());
  result_.steps = state_.step;
  result_.images_per_second = median(rates_);
  result_.stall_share = loader->stall_seconds() / std::max(now() - begin, 1e-9);
  result_.skipped = loader->skipped();
  return result_;
}

// Returns whether all ranks leave after this step because one was asked to stop.
bool Trainer::train_step(Loader& loader, TrainingObserver& observer) {
  const double begin = now();
  StepInputs inputs;
  Step data;
  try {
    data = next_step(loader);
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
    feeds.push_back(
        {Feed{"samples", in_dtype(batch.samples, dtype, converted[i])}, Feed{"labels", batch.labels}});
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
  check_finite(metrics.loss, fmt::format("the loss of step {}", inputs.step));

  ++state_.step;
  ++result_.steps_now;
  saved_ = false;
  rebroadcast_weights();
  const double samples = std::max(metrics.samples, 1.0);
  state_.epoch_loss += metrics.loss * metrics.samples;
  state_.epoch_samples += metrics.samples;
  rates_.push_back(metrics.samples / std::max(now() - begin, 1e-9));
  observer.step({state_.step, data.epoch, metrics.loss, metrics.correct / samples, rates_.back(),
                 inputs.learning_rate, data.step_in_epoch + 1},
                data.steps_in_epoch);
  state_.step_in_epoch = data.ends_epoch() ? 0 : data.step_in_epoch + 1;
  if (data.ends_epoch()) ++state_.epoch;
  loader.recycle(std::move(data));
  return metrics.stop;
}

Step Trainer::next_step(Loader& loader) const {
  const ProfileSpan span(options_.programs.profile, "waiting for data", "data");
  return loader.next();
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
  if (mine || metrics.failed)
    agree_on_error(parts_.collective, mine, fmt::format("step {}", state_.step + 1));
  return metrics;
}

void Trainer::rebroadcast_weights() {
  if (options_.rebroadcast_every == 0 || state_.step % options_.rebroadcast_every != 0) return;
  programs_->step().await_weights();
  WeightsImmigration& border = programs_->step().border();
  const std::string what = fmt::format("the weights after step {}", state_.step);
  std::vector<std::byte> values = together(parts_.collective, what, [&] { return border.emigrate_all(); });
  parts_.collective.broadcast(values.data(), values.size(), 0, what);
  if (parts_.collective.rank() != 0) border.immigrate_all(values, border.placement());
}

// Every rank has the same loss. Comes before anything is saved, so that a good checkpoint stays.
void Trainer::check_finite(double loss, const std::string& name) {
  if (std::isfinite(loss)) return;
  const UserError error(
      fmt::format("{} is {}: training diverged; lower training.solver.learning_rate, or set "
                  "training.watch=true to see which op made the first such number; no checkpoint was touched",
                  name, std::isnan(loss) ? "nan" : "infinite"));
  agree_on_error(parts_.collective, std::make_exception_ptr(error), name);
}

void Trainer::finish_epoch(TrainingObserver& observer, double seconds) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  EpochRecord record{state_.epoch - 1, state_.epoch_loss / std::max(state_.epoch_samples, 1.0), none, none,
                     seconds};
  if (const auto evaluation = validate()) {
    record.val_loss = evaluation->loss / evaluation->samples;
    check_finite(record.val_loss, fmt::format("the validation loss after step {}", state_.step));
    record.val_accuracy = evaluation->correct / evaluation->samples;
    if (programs_->has_top5()) record.val_accuracy_top5 = evaluation->correct_top5 / evaluation->samples;
  }
  result_.last_epoch = record;
  state_.epoch_loss = state_.epoch_samples = 0;
  observer.epoch(record);
  save();
}

// Over all ranks; nothing where there is nothing to look at.
std::optional<Evaluation> Trainer::validate() {
  if (validation_plan_.samples == 0) return std::nullopt;
  programs_->step().await_weights();
  const Evaluation sums = together(parts_.collective, "validation", [&] { return evaluate_share(); });
  std::array<double, 4> all{sums.loss, sums.correct, sums.correct_top5, sums.samples};
  parts_.collective.sum(DType::float64, reinterpret_cast<std::byte*>(all.data()), 4,
                        "the validation of an epoch");
  return Evaluation{all[0], all[1], all[2], all[3]};
}

Evaluation Trainer::evaluate_share() {
  Evaluation sums;
  Loader loader(parts_.validation, {.batch_size = options_.batch_size,
                                    .ranks = parts_.collective.size(),
                                    .rank = parts_.collective.rank(),
                                    .shuffle = false,
                                    .workers = options_.workers,
                                    .prefetch = options_.prefetch,
                                    .on_error = options_.on_error});
  for (std::int64_t i = 0; i < validation_plan_.steps_per_epoch(); ++i) {
    Step data = next_step(loader);
    Tensor converted;
    const MicroBatch& batch = data.micro_batches[0];
    const Evaluation part =
        programs_->evaluate(in_dtype(batch.samples, parts_.store.dtype(), converted), batch.labels);
    sums.loss += part.loss;
    sums.correct += part.correct;
    sums.correct_top5 += part.correct_top5;
    sums.samples += part.samples;
    loader.recycle(std::move(data));
  }
  return sums;
}

void Trainer::save() {
  if (options_.output.empty()) return;
  programs_->step().await_weights();
  together(parts_.collective, "saving a checkpoint", [&] {
    if (parts_.collective.rank() == 0) save_checkpoint(options_.output, parts_.store, state_, options_.keep);
  });
  saved_ = true;
}

}  // namespace plexaura
