#include "training/checkpoints/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

#include "core/vm/watch.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/data/sampler.h"
#include "training/files/safetensors.h"
#include "training/optimizers/averaged_weights.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view strategy_prefix = "strategy.";
constexpr const char* strategy_ranks_name = "run.strategy_ranks";
// These are keys in the metadata of a state: the checksum of its weights, whether samples are shuffled, the
// kernels and their times, the compression, and the size of a bucket.
const std::string weights_key = "weights";
const std::string precision_key = "precision";
const std::string shuffle_key = "shuffle";
const std::string kernels_key = "kernels";
const std::string kernel_times_key = "kernel_times";
const std::string compression_key = "compression";
const std::string bucket_bytes_key = "bucket_bytes";
// Above this number, a double cannot represent every whole number.
constexpr std::int64_t largest_count = std::int64_t{1} << 53;

constexpr const char* plateau_name = "run.plateau";
constexpr const char* streamed_name = "run.streamed";
const std::string plateau_key = "plateau";
const std::string goal_key = "goal";

// Return the names of two tensors of a TrainedPart: its number of updates, and the state of its plateau.
std::string updates_name(std::size_t part) { return fmt::format("run.updates.{}", part); }

std::string plateau_name_of(std::size_t part) { return fmt::format("{}.{}", plateau_name, part); }

// True if an optimizer keeps this state for the parameter. A trainable parameter has no state if no optimizer
// trains it.
bool has_state(const ParameterStore& store, std::int64_t index, const ParameterSpec& spec) {
  return spec.role == ParameterRole::trainable &&
         store.placement().find(spec.name)->role == ParameterRole::trainable &&
         store.trained_parts().have_state(index, spec.name);
}

std::string state_name(std::int64_t index, const std::string& parameter) {
  return fmt::format("state{}.{}", index, parameter);
}

// Returns the optimizer's state of a parameter. Throws if it is not finite, because it would stay so, and the
// parameter would learn nothing any more.
Tensor finite_state(const ParameterStore& store, std::int64_t index, const std::string& name) {
  Tensor tensor = store.read_state(index, name);
  if (!all_finite(tensor))
    throw UserError(
        fmt::format("{} of the optimizer's state of '{}' after the last step: training diverged; lower "
                    "the learning rate; no checkpoint was touched",
                    first_bad(tensor), name));
  return tensor;
}

Tensor vector_of(std::span<const double> numbers) {
  Tensor vector({DType::float64, {std::ssize(numbers)}});
  std::ranges::copy(numbers, vector.as<double>().begin());
  return vector;
}

SafeTensors state_of(const ParameterStore& store, const RunState& state, std::string weights) {
  SafeTensors file;
  file.metadata = {{"optimizer", state.optimizer},
                   {precision_key, std::string(name_of(store.types().precision()))},
                   {weights_key, std::move(weights)}};
  if (state.shuffle) file.metadata[shuffle_key] = *state.shuffle ? "true" : "false";
  if (!state.kernels.empty()) file.metadata[kernels_key] = state.kernels;
  if (!state.bucket_bytes.empty()) file.metadata[bucket_bytes_key] = state.bucket_bytes;
  if (!state.kernel_times.empty()) file.metadata[kernel_times_key] = state.kernel_times;
  if (!state.compression.empty()) file.metadata[compression_key] = state.compression;
  for (std::int64_t index = 0; index < store.states(); ++index)
    for (const ParameterSpec& spec : store.specs())
      if (has_state(store, index, spec))
        file.tensors.emplace_back(state_name(index, spec.name), finite_state(store, index, spec.name));
  const auto add = [&](const char* name, auto value) {
    file.tensors.emplace_back(name, Tensor::scalar(value));
  };
  if (store.types().scales_loss()) {
    const LossScale scale = store.read_loss_scale();
    add("loss_scale.scale", scale.scale);
    add("loss_scale.good_steps", scale.good_steps);
    add("loss_scale.skipped_steps", scale.skipped_steps);
  }
  add("run.step", state.step);
  const auto parts = store.trained_parts().parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->updates != state.step) add(updates_name(i).c_str(), parts[i]->updates);
    if (!parts[i]->schedule.empty())
      file.tensors.emplace_back(plateau_name_of(i), vector_of(parts[i]->schedule));
  }
  if (state.plateau) {
    file.metadata[plateau_key] = state.plateau_metric;
    file.tensors.emplace_back(plateau_name, vector_of(numbers_of(*state.plateau)));
  }
  if (state.best.is_known()) {
    file.metadata[goal_key] = state.goal;
    add("best.epoch", state.best.epoch);
    add("best.step", state.best.step);
    add("best.value", state.best.value);
    add("best.worse", state.best.worse);
  }
  add("run.epoch", state.epoch);
  add("run.step_in_epoch", state.step_in_epoch);
  add("run.seed", state.seed);
  add("run.epoch_loss", state.epoch_loss);
  add("run.epoch_samples", state.epoch_samples);
  add("run.data_origin", static_cast<std::int64_t>(state.data_origin));
  add("run.samples", state.samples);
  add("run.batch_size", state.batch_size);
  if (!state.streamed.empty()) {
    Tensor streamed({DType::int64, {std::ssize(state.streamed)}});
    std::ranges::copy(state.streamed, streamed.as<std::int64_t>().begin());
    file.tensors.emplace_back(streamed_name, streamed);
  }
  if (!state.strategy.empty()) add(strategy_ranks_name, std::int64_t{state.strategy_ranks});
  for (const auto& [name, value] : state.strategy)
    file.tensors.emplace_back(std::string(strategy_prefix) + name, value);
  return file;
}

class Reader {
 public:
  explicit Reader(fs::path path) : path_(std::move(path)), file_(read_safetensors(path_)) {}
  // Reads a file of a checkpoint without the tensors of other ranks. Rank 0 reads the whole file and compares
  // it with its checksum, for all ranks.
  Reader(fs::path path, int rank)
      : path_(std::move(path)),
        file_(read_safetensors(
            path_,
            [&](const std::string& name) {
              return !name.starts_with(strategy_prefix) ||
                     is_state_of(rank, std::string_view(name).substr(strategy_prefix.size()));
            },
            rank == 0)) {}

  bool has(std::string_view name) const {
    return std::ranges::any_of(file_.tensors, [&](const auto& entry) { return entry.first == name; });
  }
  // `remedy` is the end of the error about a missing tensor.
  const Tensor& tensor(const std::string& name,
                       std::string_view remedy = "it belongs to another model or optimizer") const {
    const auto found = std::ranges::find(file_.tensors, name, [](const auto& entry) { return entry.first; });
    if (found == file_.tensors.end())
      throw UserError(fmt::format("{} has no tensor '{}'; {}", path_.string(), name, remedy));
    return found->second;
  }
  template <class T>
  T scalar(const std::string& name) const {
    const Tensor& value = tensor(name);
    if (value.type() != TensorType{dtype_of<T>, {}})
      throw UserError(fmt::format("{}: '{}' is {}; it must be a scalar of {}", path_.string(), name,
                                  to_string(value.type()), name_of(dtype_of<T>)));
    return value.as<T>()[0];
  }
  // Returns the value of a scalar that is a count.
  std::int64_t count(const std::string& name) const {
    const auto number = scalar<std::int64_t>(name);
    if (number < 0) fail(fmt::format("'{}' is {}, which counts from 0", name, number));
    if (number > largest_count) fail(fmt::format("'{}' is {}, which no run can reach", name, number));
    return number;
  }
  // Returns numbers of samples; none if there is no such tensor.
  std::vector<std::int64_t> counts(const std::string& name) const {
    if (!has(name)) return {};
    const Tensor& numbers = tensor(name);
    if (numbers.dtype() != DType::int64)
      fail(fmt::format("'{}' is {} and must be of int64", name, to_string(numbers.type())));
    const auto values = numbers.as<std::int64_t>();
    if (std::ranges::any_of(values, [](std::int64_t value) { return value < 0 || value > largest_count; }))
      fail(fmt::format("'{}' has numbers that no run can reach", name));
    return {values.begin(), values.end()};
  }
  // Returns the value of a scalar that is a sum of losses or samples.
  double total(const std::string& name) const {
    const auto number = scalar<double>(name);
    if (!std::isfinite(number)) fail(fmt::format("'{}' is {}, which no run can reach", name, number));
    return number;
  }
  // Returns the state of a plateau. Returns nothing if there is no such tensor.
  std::optional<PlateauState> plateau(const std::string& name) const {
    if (!has(name)) return std::nullopt;
    return plateau_of(name, vector(name));
  }
  // Returns the state of the schedule of a part: the numbers of a plateau, and a flag that is true if larger
  // values of its metric are better.
  std::vector<double> schedule(const std::string& name) const {
    const std::span<const double> numbers = vector(name);
    constexpr std::size_t of_plateau = std::tuple_size_v<PlateauNumbers>;
    if (numbers.size() != of_plateau + 1 || (numbers.back() != 0 && numbers.back() != 1))
      fail(fmt::format("'{}' has {} numbers, which are no state of a schedule", name, numbers.size()));
    plateau_of(name, numbers.first(of_plateau));
    return {numbers.begin(), numbers.end()};
  }
  const fs::path& path() const { return path_; }
  const SafeTensors& contents() const { return file_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}: {}; the file is damaged: take another copy", path_.string(), what));
  }

 private:
  std::span<const double> vector(const std::string& name) const {
    const Tensor& numbers = tensor(name);
    if (numbers.dtype() != DType::float64)
      fail(fmt::format("'{}' is {} and must be of float64", name, to_string(numbers.type())));
    return numbers.as<double>();
  }
  PlateauState plateau_of(const std::string& name, std::span<const double> numbers) const {
    try {
      return plateau_state(numbers);
    } catch (const UserError& error) {
      fail(fmt::format("'{}' {}", name, error.what()));
    }
  }

  fs::path path_;
  SafeTensors file_;
};

constexpr std::string_view how_to_continue = "resume with the same, or start from its weights with --weights";

void require_same(const fs::path& path, std::string_view key, std::string_view then, std::string_view now) {
  if (then != now)
    throw UserError(fmt::format("{} was made with {} {} and now it is {}; {}", path.string(), key, then, now,
                                how_to_continue));
}

// Throws UserError unless the optimizers are the same. `then` and `now` are their names, to which " with
// training.ema" is added for averages of the weights.
void require_same_optimizer(const fs::path& path, const std::string& then, const std::string& now) {
  constexpr std::string_view averages = " with training.ema";
  if (then == now + std::string(averages) || now == then + std::string(averages))
    throw UserError(fmt::format(
        "{} was made with{} training.ema and now it is {}; {}, or start from its weights with --weights",
        path.string(), then.size() > now.size() ? "" : "out",
        then.size() > now.size() ? "not given" : "given",
        then.size() > now.size() ? "give the same training.ema" : "remove training.ema"));
  require_same(path, "training.optimizer.name", then, now);
}

[[noreturn]] void fail_untold(const fs::path& path, std::string_view what) {
  throw UserError(
      fmt::format("{} does not say its {}, as older versions did not; start from its weights with --weights",
                  path.string(), what));
}

// Compares the metadata of a state with this run, `now`.
void require_same_run(const fs::path& path, const Metadata& metadata, const RunState& now, DType precision) {
  const auto text = [&](const std::string& name) -> const std::string& {
    const auto found = metadata.find(name);
    if (found == metadata.end()) fail_untold(path, name);
    return found->second;
  };
  require_same(path, "training.precision", text(precision_key), name_of(precision));
  require_same_optimizer(path, text("optimizer"), now.optimizer);
}

// Checks that both files were written together: two files with equal shapes may come from two runs.
void require_pair(const Reader& weights, const fs::path& state, const Metadata& metadata) {
  const auto found = metadata.find(weights_key);
  if (found == metadata.end() || found->second == checksum_of(weights.contents())) return;
  throw UserError(
      fmt::format("{} and {} were not written together; take both from one checkpoint, or start from the "
                  "weights alone with --weights",
                  weights.path().string(), state.filename().string()));
}

// Returns a tensor of the optimizer's state, which has the shape of its parameter.
const Tensor& tensor_of_state(const Reader& file, const std::string& name, const TensorType& type) {
  const Tensor& tensor = file.tensor(
      name,
      "it belongs to another model or optimizer, or the parameter was frozen: freeze it as before "
      "(training.freeze), or start from the weights with --weights");
  if (tensor.type() != type)
    throw UserError(fmt::format("{}: '{}' is {} and the optimizer's state is now {}; {}",
                                file.path().string(), name, to_string(tensor.type()), to_string(type),
                                how_to_continue));
  if (!all_finite(tensor)) file.fail(fmt::format("{} of '{}'", first_bad(tensor), name));
  return tensor;
}

void read_optimizer_state(const Reader& file, ParameterStore& store) {
  if (const std::string name = state_name(store.states(), ""); std::ranges::any_of(
          file.contents().tensors, [&](const auto& entry) { return entry.first.starts_with(name); }))
    throw UserError(
        fmt::format("{} holds the state of another optimizer; resume with the same training.optimizer",
                    file.path().string()));
  for (std::int64_t index = 0; index < store.states(); ++index)
    for (const ParameterSpec& spec : store.specs()) {
      if (!has_state(store, index, spec)) continue;
      store.write_state(index, spec.name,
                        tensor_of_state(file, state_name(index, spec.name),
                                        {store.placement().types.states, spec.type.shape}));
    }
}

// Reads the trained values of parameters that were trained and are frozen now. The file of weights holds their averages,
// and the last state holds their values, which have the type of the parameter.
void read_newly_frozen(const Reader& file, ParameterStore& store) {
  for (const ParameterSpec& spec : store.specs()) {
    const std::string name = state_name(store.states() - 1, spec.name);
    if (store.placement().find(spec.name)->role == ParameterRole::frozen && file.has(name))
      store.write(spec.name, tensor_of_state(file, name, spec.type));
  }
}

void read_loss_scale(const Reader& file, ParameterStore& store) {
  const LossScale scale{file.scalar<float>("loss_scale.scale"), file.scalar<float>("loss_scale.good_steps"),
                        file.scalar<float>("loss_scale.skipped_steps")};
  if (!(scale.scale >= LossScale::least && scale.scale <= LossScale::most))
    file.fail(fmt::format("'loss_scale.scale' is {}, which no run can reach", scale.scale));
  if (!(scale.good_steps >= 0 && scale.good_steps < LossScale::growth_steps && scale.skipped_steps >= 0))
    file.fail("the steps of the loss scale are numbers that no run can reach");
  store.write_loss_scale(scale);
}

// Sets the number of updates of the store, and those of its parts, with their plateaus. If one part has made
// all updates, the file has no separate tensor of its number.
void read_updates(const Reader& file, const RunState& state, ParameterStore& store) {
  store.trained_parts().set_updates(state.step);
  const auto parts = store.trained_parts().parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i]->updates = file.has(updates_name(i)) ? file.count(updates_name(i)) : state.step;
    if (parts[i]->updates > state.step)
      file.fail(fmt::format("'{}' is {}, and all optimizers together have made {} updates", updates_name(i),
                            parts[i]->updates, state.step));
    parts[i]->schedule.clear();
    if (file.has(plateau_name_of(i))) parts[i]->schedule = file.schedule(plateau_name_of(i));
  }
}

// Checks that the counts are consistent. Earlier epochs may have had other batch sizes.
void check_numbers(const Reader& file, const RunState& state) {
  if (state.step < state.epoch || state.step - state.epoch < state.step_in_epoch)
    file.fail(fmt::format("{} steps are too few for {} epochs and {} steps", state.step, state.epoch,
                          state.step_in_epoch));
  if (state.epoch_samples < 0)
    file.fail(fmt::format("'run.epoch_samples' is {}, which counts from 0", state.epoch_samples));
  if (state.step_in_epoch == 0) return;
  const BatchPlan plan{state.samples, state.batch_size, 1, 1};
  if (state.samples < 1 || state.batch_size < 1 || state.step_in_epoch >= plan.steps_per_epoch())
    file.fail(fmt::format("step {} of an epoch does not come within {} samples in batches of {}",
                          state.step_in_epoch, state.samples, state.batch_size));
}

std::string text_or_none(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

// Reads the best epoch, if the run had a goal.
void read_best(const Reader& file, const Metadata& metadata, RunState& state) {
  state.goal = text_or_none(metadata, goal_key);
  if (state.goal.empty()) return;
  state.best = {.epoch = file.count("best.epoch"),
                .step = file.count("best.step"),
                .value = file.scalar<double>("best.value"),
                .worse = file.count("best.worse")};
  if (state.best.step > state.step || state.best.epoch + state.best.worse >= state.epoch)
    file.fail(fmt::format("its best epoch {}, after step {}, lies beyond its epoch {}", state.best.epoch,
                          state.best.step, state.epoch));
}

void read_state(const Reader& file, const Metadata& metadata, RunState& state) {
  state.step = file.count("run.step");
  state.epoch = file.count("run.epoch");
  state.step_in_epoch = file.count("run.step_in_epoch");
  state.seed = file.scalar<std::int64_t>("run.seed");
  state.epoch_loss = file.total("run.epoch_loss");
  state.epoch_samples = file.total("run.epoch_samples");
  state.data_origin = static_cast<std::uint64_t>(file.scalar<std::int64_t>("run.data_origin"));
  state.samples = file.count("run.samples");
  state.batch_size = file.count("run.batch_size");
  if (const auto found = metadata.find(shuffle_key); found != metadata.end())
    state.shuffle = found->second == "true";
  state.kernels = text_or_none(metadata, kernels_key);
  state.kernel_times = text_or_none(metadata, kernel_times_key);
  state.bucket_bytes = text_or_none(metadata, bucket_bytes_key);
  state.compression = text_or_none(metadata, compression_key);
  state.plateau = file.plateau(plateau_name);
  state.plateau_metric = text_or_none(metadata, plateau_key);
  state.streamed = file.counts(streamed_name);
  read_best(file, metadata, state);
  for (const auto& [name, value] : file.contents().tensors)
    if (name.starts_with(strategy_prefix))
      state.strategy.emplace_back(name.substr(strategy_prefix.size()), value);
  // `strategy` may be empty on this rank although other ranks have state.
  if (!state.strategy.empty() || file.has(strategy_ranks_name))
    state.strategy_ranks = static_cast<int>(file.count(strategy_ranks_name));
  check_numbers(file, state);
}

std::string text_of_newest(const fs::path& directory, const std::string& key) {
  try {
    const auto newest = newest_checkpoint(directory);
    if (!newest) return {};
    return text_or_none(read_safetensors_header(*newest / "state.safetensors").metadata, key);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void save_checkpoint(const fs::path& directory, const ParameterStore& store, const RunState& state, int keep,
                     const std::set<std::int64_t>& held) {
  UnfinishedCheckpoint unfinished(directory, state.step);
  std::string weights = save_trained_weights(unfinished.path() / "weights.safetensors", store, state.settings,
                                             state.data_origin, state.notes);
  write_safetensors(unfinished.path() / "state.safetensors", state_of(store, state, std::move(weights)));
  unfinished.put_in_place();
  std::set<std::int64_t> kept = held;
  if (state.best.is_known()) {
    link_best(directory, state.best.step);
    kept.insert(state.best.step);
  }
  remove_other_checkpoints(directory, state.step, keep, kept);
}

std::string kernel_times_of_newest(const fs::path& directory) {
  return text_of_newest(directory, kernel_times_key);
}

std::string compression_of_newest(const fs::path& directory) {
  return text_of_newest(directory, compression_key);
}

std::string precision_of_newest(const fs::path& directory) {
  return text_of_newest(directory, precision_key);
}

std::optional<RunState> load_checkpoint(const fs::path& directory, ParameterStore& store,
                                        std::string_view optimizer, const Settings& settings, int rank) {
  const auto newest = newest_checkpoint(directory);
  if (!newest) return std::nullopt;
  RunState state{.optimizer = std::string(optimizer), .settings = settings};
  const fs::path state_path = *newest / "state.safetensors";
  const fs::path weights_path = *newest / "weights.safetensors";
  require_whole(*newest);
  const Metadata metadata = read_safetensors_header(state_path).metadata;
  require_same_run(state_path, metadata, state, store.types().precision());
  const Metadata of_weights = read_safetensors_header(weights_path).metadata;
  if (!settings.empty() && !has_settings(of_weights)) fail_untold(weights_path, "settings");
  check_settings(weights_path, of_weights, settings, how_to_continue);
  {
    const Reader weights(weights_path);
    require_pair(weights, state_path, metadata);
    put_weights(weights_path, weights.contents(), store);
  }
  const Reader file(state_path, rank);
  read_optimizer_state(file, store);
  if (of_weights.contains(averaged_key)) read_newly_frozen(file, store);
  if (store.types().scales_loss()) read_loss_scale(file, store);
  read_state(file, metadata, state);
  read_updates(file, state, store);
  return state;
}

}  // namespace plexaura
