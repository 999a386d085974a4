#include "models/zoo/vgg.h"

#include <array>
#include <fmt/format.h>
#include <map>

#include "core/base/error.h"
#include "core/ops/adaptive_pool.h"
#include "core/ops/shape.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/zoo/image_net.h"

namespace plexaura {

namespace {

// Height and width of the images before the linear layers.
constexpr std::int64_t pooled = 7;

// Returns the number of convolutions before each pooling.
const std::array<std::int64_t, 5>& convolutions_of(std::int64_t depth) {
  static const std::map<std::int64_t, std::array<std::int64_t, 5>> known{
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  const auto found = known.find(depth);
  if (found != known.end()) return found->second;
  throw UserError(fmt::format("there is no VGG{}; depth is 11, 13, 16 or 19", depth));
}

void append_vgg_linear(layers::Sequential& classifier, std::int64_t in, std::int64_t out) {
  classifier.append<layers::Linear>(
      in, out,
      layers::LinearOptions{.weight = Initialiser::normal(0.01), .bias_start = Initialiser::zeros()});
}

}  // namespace

Vgg::Vgg(ModelInfo info, const VggOptions& options) : Model(std::move(info)) {
  constexpr std::array<std::int64_t, 5> widths{64, 128, 256, 512, 512};
  const auto& convolutions = convolutions_of(options.depth);
  std::int64_t in = image_channels(sample_shape(), "vgg");
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    for (std::int64_t i = 0; i < convolutions[stage]; ++i) {
      features_.append<layers::Conv2d>(in, widths[stage], Size2d{3, 3},
                                       layers::Conv2dOptions{.padding = {1, 1},
                                                             .weight = Initialiser::he_normal_fan_out(),
                                                             .bias_start = Initialiser::zeros()});
      if (options.batch_norm)
        features_.append<layers::BatchNorm2d>(
            widths[stage], layers::BatchNormOptions{.synchronised = options.synchronised_batch_norm});
      features_.append<layers::Activation>("relu");
      in = widths[stage];
    }
    features_.append<layers::MaxPool2d>(2);
  }
  constexpr std::int64_t hidden = 4096;
  append_vgg_linear(classifier_, in * pooled * pooled, hidden);
  classifier_.append<layers::Activation>("relu");
  classifier_.append<layers::Dropout>(options.dropout);
  append_vgg_linear(classifier_, hidden, hidden);
  classifier_.append<layers::Activation>("relu");
  classifier_.append<layers::Dropout>(options.dropout);
  append_vgg_linear(classifier_, hidden, classes());
}

void Vgg::members(MemberVisitor& visit) {
  visit("features", features_);
  visit("classifier", classifier_);
}

Node Vgg::forward(Operand x) const {
  Node y = features_(x);
  if (y.shape()[2] != pooled || y.shape()[3] != pooled) y = adaptive_avg_pool2d(y, {pooled, pooled});
  return classifier_(reshape(y, {y.shape()[0], -1}));
}

std::vector<Key> vgg_keys(VggOptions& options) {
  return {
      {.name = "depth",
       .into = one_of(options.depth, {{"11", 11}, {"13", 13}, {"16", 16}, {"19", 19}}),
       .meaning = "number of layers with weights"},
      {.name = "batch_norm",
       .into = &options.batch_norm,
       .meaning = "batch norm after each convolution, as in the published weights `vgg16_bn`"},
      {.name = "dropout",
       .into = &options.dropout,
       .range = {.minimum = 0, .below = 1},
       .meaning = "the probability that a hidden value between the linear layers is dropped"},
      synchronised_batch_norm_key(options.synchronised_batch_norm, {.key = "batch_norm", .values = {"true"}}),
  };
}

std::unique_ptr<Model> make_vgg(ModelInfo info, const VggOptions& options, const Section& yaml) {
  require_images(yaml, info.sample_shape, "vgg");
  return std::make_unique<Vgg>(std::move(info), options);
}

}  // namespace plexaura
