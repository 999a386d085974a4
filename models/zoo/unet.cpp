#include "models/zoo/unet.h"

#include <bit>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/ops/concat.h"
#include "core/ops/pool2d.h"
#include "models/layers/batch_norm.h"
#include "models/zoo/image_net.h"

namespace plexaura {

namespace {

constexpr std::int64_t most_depth = 8;
constexpr std::int64_t most_width = 1024;

std::unique_ptr<layers::Sequential> double_convolution(std::int64_t in, std::int64_t out, bool synchronised) {
  auto made = std::make_unique<layers::Sequential>();
  for (const std::int64_t channels : {in, out}) {
    made->append<layers::Conv2d>(channels, out, Size2d{3, 3},
                                 layers::Conv2dOptions{.padding = {1, 1}, .bias = false});
    made->append<layers::BatchNorm2d>(out, layers::BatchNormOptions{.synchronised = synchronised});
    made->append<layers::Activation>("relu");
  }
  return made;
}

// Returns the number of times that height and width of an image can be halved.
std::int64_t halvings(const Shape& sample) {
  return std::countr_zero(static_cast<std::uint64_t>(sample[1] | sample[2]));
}

// Returns the end of a sentence that begins with the depth, if images of this shape cannot be halved that
// often. Otherwise returns an empty text.
std::string fault_of_size(const Shape& sample, std::int64_t depth) {
  const std::int64_t most = halvings(sample);
  if (depth <= most) return "";
  return fmt::format(
      "and the images have {}x{} pixels; height and width must be multiples of 2^depth = {}, so give other "
      "images{}",
      sample[1], sample[2], std::int64_t{1} << depth,
      most > 0 ? fmt::format(", or a depth of at most {}", most) : "");
}

void check_unet(const ModelInfo& info, const UNetOptions& options) {
  image_channels(info.sample_shape, "unet");
  if (!returns_images(info.task))
    throw UserError(fmt::format(
        "a model unet returns images, and its task is {}; set ModelInfo::task to Task::reconstruction or "
        "Task::segmentation",
        name_of(info.task)));
  if (options.depth < 1 || options.depth > most_depth)
    throw UserError(
        fmt::format("the depth of a model unet is {}; give one from 1 to {}", options.depth, most_depth));
  if (options.width < 1 || options.width > most_width)
    throw UserError(
        fmt::format("the width of a model unet is {}; give one from 1 to {}", options.width, most_width));
  if (const std::string fault = fault_of_size(info.sample_shape, options.depth); !fault.empty())
    throw UserError(fmt::format("the depth of a model unet is {}, {}", options.depth, fault));
}

ModelInfo checked(ModelInfo info, const UNetOptions& options) {
  check_unet(info, options);
  return info;
}

}  // namespace

UNet::UNet(ModelInfo info, const UNetOptions& options)
    : Model(checked(std::move(info), options)),
      last_(options.width, this->info().task == Task::segmentation ? classes() : sample_shape()[0],
            Size2d{1, 1}) {
  std::int64_t channels = options.width;
  encoders_.push_back(double_convolution(sample_shape()[0], channels, options.synchronised_batch_norm));
  for (std::int64_t level = 0; level < options.depth; ++level, channels *= 2)
    encoders_.push_back(double_convolution(channels, 2 * channels, options.synchronised_batch_norm));
  for (; channels > options.width; channels /= 2) {
    ups_.push_back(std::make_unique<layers::ConvTranspose2d>(
        channels, channels / 2, Size2d{2, 2}, layers::TransposedConvOptions<Size2d>{.stride = {2, 2}}));
    decoders_.push_back(double_convolution(channels, channels / 2, options.synchronised_batch_norm));
  }
}

void UNet::members(MemberVisitor& visit) {
  visit("inc.double_conv", encoders_.front());
  for (std::size_t i = 1; i < encoders_.size(); ++i)
    visit(fmt::format("down{}.maxpool_conv.1.double_conv", i), encoders_[i]);
  for (std::size_t i = 0; i < ups_.size(); ++i) {
    visit(fmt::format("up{}.up", i + 1), ups_[i]);
    visit(fmt::format("up{}.conv.double_conv", i + 1), decoders_[i]);
  }
  visit("outc.conv", last_);
}

Node UNet::forward(Operand x) const {
  std::vector<Node> levels{(*encoders_.front())(x)};
  for (std::size_t i = 1; i < encoders_.size(); ++i)
    levels.push_back((*encoders_[i])(max_pool2d(levels.back(), 2)));
  Node y = levels.back();
  for (std::size_t i = 0; i < ups_.size(); ++i) {
    levels.pop_back();
    y = (*decoders_[i])(concat({levels.back(), (*ups_[i])(y)}, 1));
  }
  return last_(y);
}

std::vector<Key> unet_keys(UNetOptions& options) {
  return {
      {.name = "depth",
       .into = &options.depth,
       .range = {.minimum = 1, .maximum = most_depth},
       .meaning = "how often height and width are halved; both must be multiples of 2^depth"},
      {.name = "width",
       .into = &options.width,
       .range = {.minimum = 1, .maximum = most_width},
       .meaning = "channels of the first level; each level has twice as many as the one before"},
      synchronised_batch_norm_key(options.synchronised_batch_norm),
  };
}

std::unique_ptr<Model> make_unet(ModelInfo info, const UNetOptions& options, const Section& yaml) {
  require_images(yaml, info.sample_shape, "unet");
  if (!returns_images(info.task))
    throw yaml.error("task", fmt::format("is {}, and model.name is unet, which returns images; set it to "
                                         "reconstruction or segmentation",
                                         name_of(info.task)));
  if (const std::string fault = fault_of_size(info.sample_shape, options.depth); !fault.empty())
    throw yaml.error("depth", fmt::format("is {}, {}", options.depth, fault));
  return std::make_unique<UNet>(std::move(info), options);
}

}  // namespace plexaura
