#include "training/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <set>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/did_you_mean.h"
#include "core/vm/watch.h"
#include "training/file.h"
#include "training/safetensors.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "checkpoint-";
// In the metadata of a state: the checksum of its weights, and before the key of each setting.
const std::string weights_key = "weights";
constexpr std::string_view setting_prefix = "setting.";

using Settings = std::map<std::string, std::string>;

std::string state_name(std::int64_t index, const std::string& parameter) {
  return fmt::format("state{}.{}", index, parameter);
}

Tensor finite_value(const ParameterStore& store, const std::string& name) {
  Tensor tensor = store.read(name);
  if (!all_finite(tensor))
    throw UserError(fmt::format(
        "{} of '{}' after the last step: training diverged, or a sample holds such a number; lower "
        "training.optimizer.learning_rate, or set training.watch=true to see which op made the first "
        "one; no checkpoint was touched",
        first_bad(tensor), name));
  return tensor;
}

SafeTensors weights_of(const ParameterStore& store) {
  SafeTensors weights;
  for (const ParameterSpec& spec : store.specs())
    weights.tensors.emplace_back(spec.name, finite_value(store, spec.name));
  return weights;
}

SafeTensors state_of(const ParameterStore& store, const RunState& state, std::string weights) {
  SafeTensors file;
  file.metadata = {{"optimizer", state.optimizer},
                   {"precision", std::string(name_of(store.dtype()))},
                   {weights_key, std::move(weights)}};
  for (const auto& [key, value] : state.settings) file.metadata[std::string(setting_prefix) + key] = value;
  for (std::int64_t index = 0; index < store.states(); ++index)
    for (const ParameterSpec& spec : store.specs())
      if (spec.role == ParameterRole::trainable)
        file.tensors.emplace_back(state_name(index, spec.name), store.read_state(index, spec.name));
  const auto add = [&](const char* name, auto value) {
    file.tensors.emplace_back(name, Tensor::scalar(value));
  };
  add("run.step", state.step);
  add("run.epoch", state.epoch);
  add("run.step_in_epoch", state.step_in_epoch);
  add("run.seed", state.seed);
  add("run.epoch_loss", state.epoch_loss);
  add("run.epoch_samples", state.epoch_samples);
  add("run.data_origin", static_cast<std::int64_t>(state.data_origin));
  add("run.samples", state.samples);
  add("run.batch_size", state.batch_size);
  return file;
}

std::optional<std::int64_t> number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

[[noreturn]] void cannot(const char* what, const fs::path& path, const std::error_code& error) {
  const std::string text = fmt::format("cannot {} {}: {}; name a folder that can be written in output.dir",
                                       what, path.string(), error.message());
  if (user_can_mend(error.value())) throw UserError(text);
  throw DeviceError(text);
}

std::vector<std::pair<std::int64_t, fs::path>> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (const auto number = number_of(entry->path())) found.emplace_back(*number, entry->path());
  if (error && error != std::errc::no_such_file_or_directory) cannot("read", directory, error);
  std::ranges::sort(found);
  return found;
}

// Also over a folder of that name, in one move where the file system can do that.
void put_in_place(const fs::path& made, const fs::path& target) {
  std::error_code error;
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(made, error);
    return;
  }
  fs::remove_all(target, error);
  fs::rename(made, target, error);
  if (error) cannot("rename", made, error);
}

// All of later steps, and those before the newest `keep`.
void remove_others(const fs::path& directory, std::int64_t step, std::size_t keep) {
  auto all = checkpoints_in(directory);
  const auto later = std::ranges::upper_bound(all, step, {}, [](const auto& found) { return found.first; });
  const auto kept = std::min(keep, static_cast<std::size_t>(later - all.begin()));
  all.erase(later - static_cast<std::ptrdiff_t>(kept), later);
  std::error_code error;
  for (const auto& [number, path] : all) fs::remove_all(path, error);
}

class Reader {
 public:
  explicit Reader(fs::path path) : path_(std::move(path)), file_(read_safetensors(path_)) {}

  const Tensor& tensor(const std::string& name) const {
    const auto found = std::ranges::find(file_.tensors, name, [](const auto& entry) { return entry.first; });
    if (found == file_.tensors.end())
      throw UserError(fmt::format("{} has no tensor '{}'; it belongs to another model or optimizer",
                                  path_.string(), name));
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
  // A scalar that counts.
  std::int64_t count(const std::string& name) const {
    const auto number = scalar<std::int64_t>(name);
    if (number < 0) fail(fmt::format("'{}' is {}, which counts from 0", name, number));
    return number;
  }
  // A scalar that adds up losses or samples.
  double total(const std::string& name) const {
    const auto number = scalar<double>(name);
    if (!std::isfinite(number)) fail(fmt::format("'{}' is {}, which no run comes to", name, number));
    return number;
  }
  const fs::path& path() const { return path_; }
  const SafeTensors& contents() const { return file_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}: {}; the file is damaged: take another copy", path_.string(), what));
  }

  fs::path path_;
  SafeTensors file_;
};

void require_same(const fs::path& path, std::string_view key, std::string_view then, std::string_view now) {
  if (then == now) return;
  throw UserError(
      fmt::format("{} was made with {} {} and now it is {}; resume with the same, or start from its weights "
                  "with --weights",
                  path.string(), key, then, now));
}

Settings settings_in(const Settings& metadata) {
  Settings settings;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(setting_prefix)) settings.emplace(key.substr(setting_prefix.size()), value);
  return settings;
}

void require_same_settings(const fs::path& path, const Settings& then, const Settings& now) {
  if (then.empty() || now.empty()) return;
  Settings all = then;
  all.insert(now.begin(), now.end());
  const auto value_in = [](const Settings& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? "not given" : found->second;
  };
  for (const auto& [key, value] : all) require_same(path, key, value_in(then, key), value_in(now, key));
}

// What the metadata of a state says of its run, beside `now`.
void require_same_run(const fs::path& path, const Settings& metadata, const RunState& now, DType precision) {
  const auto text = [&](const std::string& name) -> const std::string& {
    const auto found = metadata.find(name);
    if (found == metadata.end())
      throw UserError(fmt::format(
          "{} does not say its {}, as older versions did not; start from its weights with --weights",
          path.string(), name));
    return found->second;
  };
  require_same(path, "training.precision", text("precision"), name_of(precision));
  require_same(path, "training.optimizer.name", text("optimizer"), now.optimizer);
  require_same_settings(path, settings_in(metadata), now.settings);
}

// Two files of equal shapes may come from two runs.
void require_pair(const Reader& weights, const fs::path& state, const Settings& metadata) {
  const auto found = metadata.find(weights_key);
  if (found == metadata.end() || found->second == checksum_of(weights.contents())) return;
  throw UserError(
      fmt::format("{} and {} were not written together; take both from one checkpoint, or start from the "
                  "weights alone with --weights",
                  weights.path().string(), state.filename().string()));
}

void read_state(const Reader& file, ParameterStore& store, RunState& state) {
  if (const std::string name = state_name(store.states(), ""); std::ranges::any_of(
          file.contents().tensors, [&](const auto& entry) { return entry.first.starts_with(name); }))
    throw UserError(
        fmt::format("{} holds the state of another optimizer; resume with the same training.optimizer",
                    file.path().string()));
  for (std::int64_t index = 0; index < store.states(); ++index)
    for (const ParameterSpec& spec : store.specs()) {
      if (spec.role != ParameterRole::trainable) continue;
      const Tensor& tensor = file.tensor(state_name(index, spec.name));
      if (tensor.type() != spec.type)
        throw UserError(fmt::format("{}: '{}' is {} and the parameter is {}", file.path().string(),
                                    state_name(index, spec.name), to_string(tensor.type()),
                                    to_string(spec.type)));
      store.write_state(index, spec.name, tensor);
    }
  state.step = file.count("run.step");
  state.epoch = file.count("run.epoch");
  state.step_in_epoch = file.count("run.step_in_epoch");
  state.seed = file.scalar<std::int64_t>("run.seed");
  state.epoch_loss = file.total("run.epoch_loss");
  state.epoch_samples = file.total("run.epoch_samples");
  state.data_origin = static_cast<std::uint64_t>(file.scalar<std::int64_t>("run.data_origin"));
  state.samples = file.count("run.samples");
  state.batch_size = file.count("run.batch_size");
}

bool matches(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(name, pattern); });
}

// What a pattern of load_weights() takes from the parameters that a file must have.
void erase_matching(std::set<std::string>& names, const ParameterStore& store, const std::string& pattern) {
  bool any = false;
  std::vector<std::string> known;
  for (const ParameterSpec& spec : store.specs()) {
    known.push_back(spec.name);
    if (!matches(spec.name, pattern)) continue;
    names.erase(spec.name);
    any = true;
  }
  if (!any)
    throw UserError(fmt::format("no parameter is named like '{}', so that nothing would be skipped{}",
                                pattern, did_you_mean(pattern, known)));
}

// "fc.*" for "fc.weight": a layer is skipped as a whole.
std::string layer_pattern(const std::string& name) { return name.substr(0, name.rfind('.') + 1) + "*"; }

void put_weights(const Reader& file, ParameterStore& store, const std::vector<std::string>& skip = {}) {
  std::set<std::string> missing;
  for (const ParameterSpec& spec : store.specs()) missing.insert(spec.name);
  for (const std::string& pattern : skip) erase_matching(missing, store, pattern);
  for (const auto& [name, tensor] : file.contents().tensors) {
    if (name.ends_with("num_batches_tracked") || matches_any(name, skip)) continue;
    if (!store.contains(name)) {
      const std::vector<std::string> known(missing.begin(), missing.end());
      throw UserError(fmt::format("{}: the model has no parameter '{}'{}; load weights of the same model",
                                  file.path().string(), name, did_you_mean(name, known)));
    }
    const ParameterSpec& spec = store.spec(name);
    if (tensor.shape() != spec.type.shape || !is_floating(tensor.dtype()))
      throw UserError(fmt::format(
          "{}: '{}' is {} and the model has {}; load weights of the same model and number of classes, or "
          "skip "
          "it (--skip '{}')",
          file.path().string(), name, to_string(tensor.type()), to_string(spec.type), layer_pattern(name)));
    if (!all_finite(tensor))
      throw UserError(fmt::format("{}: {} of '{}'; load weights of a run that did not diverge",
                                  file.path().string(), first_bad(tensor), name));
    store.write(spec.name, tensor.cast(spec.type.dtype));
    missing.erase(spec.name);
  }
  if (!missing.empty())
    throw UserError(
        fmt::format("{} lacks '{}' and {} more of the model's parameters; load weights of the same model",
                    file.path().string(), *missing.begin(), missing.size() - 1));
}

}  // namespace

void check_weights(const ParameterStore& store) {
  for (const ParameterSpec& spec : store.specs()) finite_value(store, spec.name);
}

void prepare_checkpoints(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) cannot("create", directory, error);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    cannot("write in", directory, std::error_code(errno, std::generic_category()));
}

void save_checkpoint(const fs::path& directory, const ParameterStore& store, const RunState& state,
                     int keep) {
  prepare_checkpoints(directory);
  std::error_code error;
  const fs::path target = directory / fmt::format("{}{:06}", prefix, state.step);
  const fs::path unfinished = directory / "checkpoint.unfinished";
  fs::remove_all(unfinished, error);
  fs::create_directory(unfinished, error);
  if (error) cannot("create", unfinished, error);
  try {
    std::string weights = write_safetensors(unfinished / "weights.safetensors", weights_of(store));
    write_safetensors(unfinished / "state.safetensors", state_of(store, state, std::move(weights)));
  } catch (...) {
    fs::remove_all(unfinished, error);
    throw;
  }
  put_in_place(unfinished, target);
  remove_others(directory, state.step, static_cast<std::size_t>(keep));
}

std::optional<fs::path> newest_checkpoint(const fs::path& directory) {
  const auto all = checkpoints_in(directory);
  return all.empty() ? std::nullopt : std::optional(all.back().second);
}

std::optional<RunState> load_checkpoint(const fs::path& directory, ParameterStore& store,
                                        std::string_view optimizer, const Settings& settings) {
  const auto newest = newest_checkpoint(directory);
  if (!newest) return std::nullopt;
  RunState state{.optimizer = std::string(optimizer), .settings = settings};
  const fs::path state_path = *newest / "state.safetensors";
  const Settings metadata = read_safetensors_header(state_path).metadata;
  require_same_run(state_path, metadata, state, store.dtype());
  {
    const Reader weights(*newest / "weights.safetensors");
    require_pair(weights, state_path, metadata);
    put_weights(weights, store);
  }
  read_state(Reader(state_path), store, state);
  return state;
}

void save_weights(const fs::path& path, const ParameterStore& store) {
  write_safetensors(path, weights_of(store));
}

void load_weights(const fs::path& path, ParameterStore& store, const std::vector<std::string>& skip) {
  put_weights(Reader(path), store, skip);
}

}  // namespace plexaura
