#include "training/data/noisy_samples.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "training/data/random.h"

namespace plexaura {

namespace {

constexpr double largest_byte = 255;

std::byte with_noise(std::byte pixel, double noise) {
  const double sum = std::clamp(std::to_integer<int>(pixel) + noise, 0.0, largest_byte);
  return static_cast<std::byte>(static_cast<int>(sum + 0.5));
}

}  // namespace

NoisySamples::NoisySamples(std::shared_ptr<const Dataset> images, double deviation)
    : images_(std::move(images)), deviation_(deviation) {
  if (!(deviation > 0 && deviation <= 1))
    throw UserError(fmt::format("noise is {}; give a number above 0 and at most 1", deviation));
  const TensorType image{images_->sample_dtype(), images_->sample_shape()};
  if (image.dtype != DType::uint8)
    throw UserError(
        fmt::format("noise cannot be added to samples of {}; give images of uint8", to_string(image)));
}

std::vector<Field> NoisySamples::fields() const {
  const TensorType image{DType::uint8, images_->sample_shape()};
  return {{"samples", image}, {"targets", image}};
}

void NoisySamples::read_fields(std::int64_t index, const SampleContext& context,
                               std::span<const std::span<std::byte>> values) const {
  const std::span<const std::byte> clean = values[1];
  const std::span<std::byte> noisy = values[0];
  std::int64_t label = 0;
  images_->read_fields(index, context, std::array{values[1], std::as_writable_bytes(std::span(&label, 1))});
  // The letters "noise", which separate these random numbers from those of augmentation.
  constexpr std::uint64_t tag = 0x6e6f697365;
  Random random{context.seed, static_cast<std::uint64_t>(context.epoch), tag,
                static_cast<std::uint64_t>(index)};
  for (std::size_t first = 0; first < clean.size(); first += 2) {
    const std::array<double, 2> drawn = random.normals();
    for (std::size_t i = first; i < std::min(first + 2, clean.size()); ++i)
      noisy[i] = with_noise(clean[i], largest_byte * deviation_ * drawn[i - first]);
  }
}

}  // namespace plexaura
