#include "training/checkpoints/weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/did_you_mean.h"
#include "core/params/name_pattern.h"
#include "core/vm/watch.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr const char* origin_key = "data.origin";  // key in the metadata

// The advice at the end of the error about a value that is not finite.
constexpr std::string_view without_training =
    ": a file of weights contains only finite numbers, so nothing was saved; look for what wrote such a "
    "number into the store";
constexpr std::string_view after_training =
    " after the last step: training diverged, or a sample holds such a number; lower "
    "the learning rate, or set watch (training.watch=true) to see which op made the first one; no "
    "checkpoint was touched";

Tensor finite_value(const ParameterStore& store, const std::string& name, std::string_view advice) {
  Tensor tensor = store.read(name);
  if (!all_finite(tensor)) throw UserError(fmt::format("{} of '{}'{}", first_bad(tensor), name, advice));
  return tensor;
}

std::string write_weights(const fs::path& path, const ParameterStore& store, const Settings& settings,
                          std::uint64_t data_origin, const Metadata& notes, std::string_view advice) {
  SafeTensors weights{.tensors = {}, .metadata = notes};
  for (const ParameterSpec& spec : store.specs())
    weights.tensors.emplace_back(spec.name, finite_value(store, spec.name, advice));
  add_settings(weights.metadata, settings);
  if (data_origin != 0) weights.metadata[origin_key] = fmt::format("{:016x}", data_origin);
  return write_safetensors(path, weights);
}

template <class Named>
bool is_named_like_any(const Named& named, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return is_named_like(named, pattern); });
}

// True for a counter in PyTorch's batch norms, which is not needed here.
bool is_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

// Returns the pattern that skips the layer of a parameter: "fc.*" for "fc.weight". A name without a dot is returned itself.
std::string layer_pattern(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot + 1) + "*";
}

// Returns the prefix that a wrapper of PyTorch has added to all names, or an empty text.
std::string_view wrapper_prefix(const SafeTensors& file, const ParameterStore& store) {
  constexpr std::array<std::string_view, 2> known{"module.", "_orig_mod."};
  if (file.tensors.empty() || store.contains(file.tensors.front().first)) return "";
  const auto is_everywhere = [&](std::string_view prefix) {
    return std::ranges::all_of(file.tensors,
                               [&](const auto& entry) { return entry.first.starts_with(prefix); });
  };
  const auto* found = std::ranges::find_if(known, is_everywhere);
  return found == known.end() ? "" : *found;
}

class Loading {
 public:
  Loading(const fs::path& path, const SafeTensors& file, ParameterStore& store,
          const std::vector<std::string>& skip, bool can_skip)
      : path_(path.string()),
        file_(file),
        store_(store),
        skip_(skip),
        can_skip_(can_skip),
        prefix_(wrapper_prefix(file, store).size()) {
    for (const ParameterSpec& spec : store.specs()) missing_.insert(spec.name);
  }

  void run() {
    check_kind();
    for (const std::string& pattern : skip_) leave_out(pattern);
    for (const auto& [name, tensor] : file_.tensors) take(name.substr(prefix_), tensor);
    check_complete();
  }

 private:
  void check_kind() const {
    if (std::ranges::any_of(file_.tensors, [](const auto& entry) { return entry.first == "run.step"; }))
      throw UserError(fmt::format(
          "{} is the state of a run and contains no weights; name the weights.safetensors in its folder",
          path_));
  }

  void leave_out(const std::string& pattern) {
    std::vector<std::string> known;
    for (const ParameterSpec& spec : store_.specs()) known.push_back(spec.name);
    for (const auto& [name, tensor] : file_.tensors)
      if (!is_counter(name)) known.push_back(name.substr(prefix_));
    const auto fits = [&](const auto& named) { return is_named_like(named, pattern); };
    if (std::ranges::none_of(known, fits) && std::ranges::none_of(store_.specs(), fits))
      throw UserError(fmt::format("no parameter is named like '{}', so that nothing would be skipped{}",
                                  pattern, did_you_mean(pattern, known)));
    std::erase_if(missing_, [&](const std::string& name) { return fits(store_.spec(name)); });
  }

  void take(const std::string& name, const Tensor& tensor) {
    if (is_counter(name) || is_named_like_any(name, skip_)) return;
    if (!store_.contains(name)) {
      const std::vector<std::string> known(missing_.begin(), missing_.end());
      throw UserError(fmt::format("{}: the model has no parameter '{}'{}; load weights of the same model{}",
                                  path_, name, did_you_mean(name, known), or_skip("it", name)));
    }
    const ParameterSpec& spec = store_.spec(name);
    if (is_named_like_any(spec, skip_)) return;
    if (tensor.shape() != spec.type.shape || !is_floating(tensor.dtype()))
      throw UserError(fmt::format(
          "{}: '{}' is {} and the model has {}; load weights of the same model and number of classes{}",
          path_, name, to_string(tensor.type()), to_string(spec.type), or_skip("it", layer_pattern(name))));
    if (!all_finite(tensor))
      throw UserError(fmt::format("{}: {} of '{}'; load weights of a run that did not diverge", path_,
                                  first_bad(tensor), name));
    store_.write(spec.name, converted(name, tensor, spec.type.dtype));
    missing_.erase(spec.name);
  }

  // Casts a tensor. Throws if a value would become infinite in the model's precision.
  Tensor converted(const std::string& name, const Tensor& tensor, DType dtype) const {
    Tensor result = tensor.cast(dtype);
    if (all_finite(result)) return result;
    const std::vector<double> now = result.to_doubles();
    const auto bad = std::ranges::find_if(now, [](double value) { return !std::isfinite(value); });
    throw UserError(fmt::format("{}: '{}' holds {}, which {} cannot; load it with training.precision=float64",
                                path_, name, tensor.to_doubles()[static_cast<std::size_t>(bad - now.begin())],
                                name_of(dtype)));
  }

  void check_complete() const {
    if (missing_.empty()) return;
    const std::string& first = *missing_.begin();
    const std::string more = missing_.size() == 1 ? "" : fmt::format(" and {} more", missing_.size() - 1);
    throw UserError(fmt::format("{} lacks '{}'{} of the model's parameters; load weights of the same model{}",
                                path_, first, more,
                                or_skip("what keeps its initial value", layer_pattern(first))));
  }

  // Returns the end of an error: how to skip parameters, if the caller lets the user skip some.
  std::string or_skip(std::string_view what, std::string_view pattern) const {
    return can_skip_ ? fmt::format(", or skip {} with the pattern '{}'", what, pattern) : "";
  }

  std::string path_;
  const SafeTensors& file_;
  ParameterStore& store_;
  const std::vector<std::string>& skip_;
  bool can_skip_;
  std::size_t prefix_;  // number of leading characters of each name that are ignored
  std::set<std::string> missing_;
};

}  // namespace

std::string save_weights(const fs::path& path, const ParameterStore& store, const Settings& settings,
                         std::uint64_t data_origin) {
  return write_weights(path, store, settings, data_origin, {}, without_training);
}

std::string save_trained_weights(const fs::path& path, const ParameterStore& store, const Settings& settings,
                                 std::uint64_t data_origin, const Metadata& notes) {
  return write_weights(path, store, settings, data_origin, notes, after_training);
}

std::optional<std::uint64_t> data_origin_in(const Metadata& metadata, const fs::path& path) {
  const auto found = metadata.find(origin_key);
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  std::uint64_t origin = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), origin, 16);
  if (error == std::errc() && end == text.data() + text.size()) return origin;
  throw UserError(
      fmt::format("{}: its metadata has data.origin '{}', which is not a hash; name another file of "
                  "weights, or save this one again",
                  path.string(), text));
}

void check_weights(const ParameterStore& store) {
  for (const ParameterSpec& spec : store.specs()) finite_value(store, spec.name, after_training);
}

void require_weights_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  const fs::path inside = path / "weights.safetensors";
  throw UserError(
      fs::exists(inside, error)
          ? fmt::format("'{}' is a folder; name its file of weights, '{}'", path.string(), inside.string())
          : fmt::format("'{}' is a folder; name a file of weights, such as the "
                        "weights.safetensors of a checkpoint",
                        path.string()));
}

Metadata load_weights(const fs::path& path, ParameterStore& store, const std::vector<std::string>& skip) {
  require_weights_file(path);
  SafeTensors file = read_safetensors(path);
  Loading(path, file, store, skip, true).run();
  return std::move(file.metadata);
}

Metadata load_all_weights(const fs::path& path, ParameterStore& store) {
  require_weights_file(path);
  SafeTensors file = read_safetensors(path);
  put_weights(path, file, store);
  return std::move(file.metadata);
}

void put_weights(const fs::path& path, const SafeTensors& file, ParameterStore& store) {
  Loading(path, file, store, {}, false).run();
}

std::optional<std::string> first_skipped(const ParameterStore& store, const std::vector<std::string>& skip) {
  for (const ParameterSpec& spec : store.specs())
    if (is_named_like_any(spec, skip)) return spec.name;
  return std::nullopt;
}

}  // namespace plexaura
