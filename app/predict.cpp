#include "app/predict.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>

#include "core/base/error.h"
#include "core/base/print.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "models/predictor.h"

namespace plexaura {

namespace {

constexpr std::int64_t most_at_once = 256;

// Returns `count` samples, beginning with `first`.
Tensor part(const Tensor& samples, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> extents = samples.shape().extents();
  const std::size_t bytes = samples.bytes() / static_cast<std::size_t>(extents[0]);
  extents[0] = count;
  Tensor tensor(TensorType{samples.dtype(), Shape(std::move(extents))});
  std::copy_n(samples.data() + static_cast<std::size_t>(first) * bytes, tensor.bytes(), tensor.data());
  return tensor;
}

void check_finite(const std::string& name, std::span<const double> outputs) {
  const auto bad = std::ranges::find_if(outputs, [](double value) { return !std::isfinite(value); });
  if (bad != outputs.end())
    throw UserError(fmt::format(
        "{}: the model's output is {}; the sample contains numbers far beyond those of the training data, or "
        "the weights are of a run that diverged",
        name, *bad));
}

}  // namespace

std::vector<std::string> predictions(const NamedSamples& file, Model& model,
                                     const std::vector<std::string>& class_names, ParameterStore& store,
                                     Backend& backend, bool strict, std::set<std::string>& ops_on_host) {
  const Loss loss = model.info().loss;
  const bool are_probabilities = loss != Loss::squared_error;
  const auto outputs = [&](const Node& x) {
    const Node y = model(x);
    if (!are_probabilities) return y;
    return loss == Loss::softmax_cross_entropy ? softmax(y, 1) : sigmoid(y);
  };
  Predictor predict(outputs, store, backend, {.strict = strict});
  std::vector<std::string> lines;
  const auto all = static_cast<std::int64_t>(file.names.size());
  for (std::int64_t first = 0; first < all; first += most_at_once) {
    const std::int64_t count = std::min(most_at_once, all - first);
    const std::vector<double> values = predict(part(file.samples, first, count)).to_doubles();
    for (std::int64_t row = 0; row < count; ++row) {
      const auto begin = values.begin() + row * model.classes();
      const std::string name = printable(file.names[static_cast<std::size_t>(first + row)]);
      check_finite(name, {begin, begin + model.classes()});
      const auto best = std::max_element(begin, begin + model.classes());
      lines.push_back(fmt::format("{}\t{}\t{}{:.4f}", name,
                                  printable(class_names[static_cast<std::size_t>(best - begin)]),
                                  are_probabilities ? "" : "output ", *best));
    }
  }
  ops_on_host.insert(predict.ops_on_host().begin(), predict.ops_on_host().end());
  return lines;
}

}  // namespace plexaura
