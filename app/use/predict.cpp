#include "app/use/predict.h"

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

bool are_probabilities(Loss loss) {
  return loss == Loss::softmax_cross_entropy || loss == Loss::binary_cross_entropy;
}

std::string class_text(std::span<const double> outputs, Loss loss, const std::vector<std::string>& names) {
  const auto best = std::ranges::max_element(outputs);
  return fmt::format("\t{}\t{}{:.4f}", printable(names[static_cast<std::size_t>(best - outputs.begin())]),
                     are_probabilities(loss) ? "" : "output ", *best);
}

std::string numbers_text(std::span<const double> outputs, const Standardisation& scale) {
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    text += fmt::format("\t{:.6g}", outputs[i] * scale.stddev[i] + scale.mean[i]);
  return text;
}

// Returns the labels whose probability is above 1/2 with their probabilities, or "no label".
std::string labels_text(std::span<const double> probabilities, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (probabilities[i] > 0.5) text += fmt::format("\t{}\t{:.4f}", printable(names[i]), probabilities[i]);
  return text.empty() ? "\tno label" : text;
}

// Returns the pixels as text: the values from 0 to 1 of a reconstructed image, or the classes of a
// segmentation.
std::string pixels_text(std::span<const double> outputs) {
  std::string text;
  for (const double output : outputs) text += fmt::format("\t{:.6g}", output);
  return text;
}

// Returns the class with the largest output of each pixel. `outputs` are [classes, pixels].
std::vector<std::uint8_t> classes_of_pixels(std::span<const double> outputs, std::int64_t classes) {
  const std::size_t pixels = outputs.size() / static_cast<std::size_t>(classes);
  std::vector<std::uint8_t> best(pixels);
  for (std::size_t i = pixels; i < outputs.size(); ++i)
    if (std::uint8_t& of_pixel = best[i % pixels]; outputs[i] > outputs[of_pixel * pixels + i % pixels])
      of_pixel = static_cast<std::uint8_t>(i / pixels);
  return best;
}

// Returns the end of a line for an image: its pixels or, if `images` is not null, the path to which it writes
// the image.
std::string image_text(const std::string& sample, std::span<const double> outputs, const ModelInfo& model,
                       PredictedImages* images) {
  if (model.task == Task::segmentation) {
    const std::vector<std::uint8_t> classes = classes_of_pixels(outputs, model.classes);
    if (images != nullptr) return "\t" + printable(images->write_classes(sample, classes));
    return pixels_text(std::vector<double>(classes.begin(), classes.end()));
  }
  return images != nullptr ? "\t" + printable(images->write(sample, outputs)) : pixels_text(outputs);
}

std::string outputs_text(std::span<const double> outputs, const ModelInfo& model,
                         const TrainedData& trained) {
  if (model.task == Task::multi_label) return labels_text(outputs, trained.targets);
  if (model.task == Task::regression) return numbers_text(outputs, trained.target_scale);
  return class_text(outputs, model.loss, trained.classes);
}

}  // namespace

std::vector<std::string> predictions(const NamedSamples& file, Model& model, const TrainedData& trained,
                                     ParameterStore& store, Backend& backend, bool strict,
                                     std::set<std::string>& ops_on_host, PredictedImages* images) {
  const Loss loss = model.info().loss;
  const auto outputs = [&](const Node& x) {
    const Node y = model(x);
    if (!are_probabilities(loss)) return y;
    return loss == Loss::softmax_cross_entropy ? softmax(y, 1) : sigmoid(y);
  };
  const bool is_image = returns_images(model.info().task);
  Predictor predict(outputs, store, backend, {.strict = strict});
  std::vector<std::string> lines;
  const auto all = static_cast<std::int64_t>(file.names.size());
  for (std::int64_t first = 0; first < all; first += most_at_once) {
    const std::int64_t count = std::min(most_at_once, all - first);
    const std::vector<double> values = predict(part(file.samples, first, count)).to_doubles();
    const std::size_t width = values.size() / static_cast<std::size_t>(count);
    for (std::int64_t row = 0; row < count; ++row) {
      const std::span of_row = std::span(values).subspan(static_cast<std::size_t>(row) * width, width);
      const std::string& sample = file.names[static_cast<std::size_t>(first + row)];
      const std::string name = printable(sample);
      check_finite(name, of_row);
      lines.push_back(name + (is_image ? image_text(sample, of_row, model.info(), images)
                                       : outputs_text(of_row, model.info(), trained)));
    }
  }
  ops_on_host.insert(predict.ops_on_host().begin(), predict.ops_on_host().end());
  return lines;
}

}  // namespace plexaura
