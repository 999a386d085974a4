#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

namespace {

std::vector<float> gaussian(std::int64_t size, double sigma) {
  std::vector<float> kernel;
  float sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float distance = static_cast<float>(i - size / 2) / static_cast<float>(sigma);
    kernel.push_back(std::exp(-0.5F * distance * distance));
    sum += kernel.back();
  }
  for (float& weight : kernel) weight /= sum;
  return kernel;
}

// Returns the place within [0, pixels) that mirrors a place beyond the ends; the first and last pixels are the mirrors.
std::int64_t mirrored(std::int64_t place, std::int64_t pixels) {
  if (place < 0) return -place;
  return place < pixels ? place : 2 * (pixels - 1) - place;
}

// Writes the weighted sums of the pixels around each pixel of a row.
void blur_row(const std::uint8_t* row, std::int64_t width, const std::vector<float>& kernel,
              std::vector<float>& padded, float* sums) {
  const std::int64_t reach = std::ssize(kernel) / 2;
  float* to = padded.data();
  for (std::int64_t x = -reach; x < width + reach; ++x) to = std::copy_n(row + mirrored(x, width) * 3, 3, to);
  std::fill_n(sums, width * 3, 0.0F);
  for (std::size_t tap = 0; tap < kernel.size(); ++tap)
    for (std::int64_t i = 0; i < width * 3; ++i)
      sums[i] += kernel[tap] * padded[static_cast<std::size_t>(i) + tap * 3];
}

}  // namespace

void gaussian_blur(Image& image, std::int64_t size, double sigma) {
  const std::vector<float> kernel = gaussian(size, sigma);
  const std::int64_t reach = size / 2;
  const std::int64_t values = image.width * 3;
  std::vector<float> padded(static_cast<std::size_t>((image.width + 2 * reach) * 3));
  std::vector<float> rows(image.pixels.size());
  for (std::int64_t y = 0; y < image.height; ++y)
    blur_row(image.pixels.data() + y * values, image.width, kernel, padded, rows.data() + y * values);
  std::vector<float> line(static_cast<std::size_t>(values));
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::ranges::fill(line, 0.0F);
    for (std::int64_t tap = 0; tap < size; ++tap) {
      const float* const row = rows.data() + mirrored(y + tap - reach, image.height) * values;
      const float weight = kernel[static_cast<std::size_t>(tap)];
      for (std::int64_t i = 0; i < values; ++i) line[static_cast<std::size_t>(i)] += weight * row[i];
    }
    std::ranges::transform(line, image.pixels.begin() + y * values, [](float value) {
      return static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0F, 255.0F));
    });
  }
}

RandomGaussianBlur::RandomGaussianBlur(const Options& options) : options_(options) {
  constexpr double most_sigma = 1000;
  checked_probability(name(), options.p);
  checked_side(name(), options.kernel_size);
  if (options.kernel_size % 2 == 0)
    throw UserError(
        fmt::format("gaussian_blur: the kernel_size is {}; give an odd number", options.kernel_size));
  checked_span(name(), "sigma", options.sigma, 1e-3, most_sigma);
}

void RandomGaussianBlur::apply(Image& image, Random& random) const {
  const bool blurs = random.uniform() < options_.p;
  const double sigma = options_.sigma.draw(random);
  if (options_.kernel_size / 2 >= std::min(image.width, image.height))
    throw UserError(fmt::format(
        "gaussian_blur: the kernel has {} pixels on each side, which is too large for an image of "
        "{}x{}; give a kernel_size of at most {}",
        options_.kernel_size, image.width, image.height, 2 * std::min(image.width, image.height) - 1));
  if (blurs) gaussian_blur(image, options_.kernel_size, sigma);
}

}  // namespace plexaura::augmentation
