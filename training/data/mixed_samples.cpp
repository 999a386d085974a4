#include "training/data/mixed_samples.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

constexpr double most_alpha = 1000;

// A sample before mixing. Each thread keeps the one that it has read last, because the next sample of the batch, which it
// usually reads next, is mixed with it.
struct KeptSample {
  std::uint64_t owner = 0;
  std::int64_t index = -1;
  SampleContext context = {};
  std::vector<std::byte> values;
  std::int64_t label = 0;

  bool is(std::uint64_t id, std::int64_t wanted, const SampleContext& in) const {
    return owner == id && index == wanted && context.seed == in.seed && context.epoch == in.epoch;
  }
};
thread_local KeptSample kept;

// Draws from the gamma distribution with scale 1. Source: Marsaglia and Tsang, A Simple Method for Generating
// Gamma Variables, 2000.
double gamma(double shape, Random& random) {
  if (shape < 1) {
    const double larger = gamma(shape + 1, random);
    return larger * std::pow(1 - random.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normals()[0];
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double beta(double alpha, Random& random) {
  const double first = gamma(alpha, random);
  const double second = gamma(alpha, random);
  return first + second > 0 ? first / (first + second) : 0.5;
}

Mix draw_cut(double alpha, std::int64_t width, std::int64_t height, Random& random) {
  const double half = 0.5 * std::sqrt(1 - beta(alpha, random));
  const auto x = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
  const auto y = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height)));
  const auto across = static_cast<std::int64_t>(half * static_cast<double>(width));
  const auto down = static_cast<std::int64_t>(half * static_cast<double>(height));
  Mix mix{.is_cut = true,
          .left = std::max<std::int64_t>(x - across, 0),
          .top = std::max<std::int64_t>(y - down, 0),
          .right = std::min(x + across, width),
          .bottom = std::min(y + down, height)};
  const auto area = static_cast<double>((mix.right - mix.left) * (mix.bottom - mix.top));
  mix.share = 1 - area / static_cast<double>(width * height);
  return mix;
}

// Copies the part of `from` that the mix names into `to`. Both images are [channels, height, width].
void paste(const Mix& mix, const Shape& shape, const std::byte* from, std::byte* to) {
  for (std::int64_t channel = 0; channel < shape[0]; ++channel)
    for (std::int64_t y = mix.top; y < mix.bottom; ++y) {
      const std::int64_t row = (channel * shape[1] + y) * shape[2];
      std::copy(from + row + mix.left, from + row + mix.right, to + row + mix.left);
    }
}

void add_up(double share, std::span<const std::byte> other, std::span<std::byte> values) {
  const auto own = static_cast<float>(share);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float sum = own * static_cast<float>(std::to_integer<int>(values[i])) +
                      (1 - own) * static_cast<float>(std::to_integer<int>(other[i]));
    values[i] = static_cast<std::byte>(static_cast<int>(sum + 0.5F));
  }
}

void check_alpha(const char* name, double alpha) {
  if (!(alpha >= 0 && alpha <= most_alpha))
    throw UserError(fmt::format("{} is {}; give a number from 0 to {}", name, alpha, most_alpha));
}

}  // namespace

Mix draw_mix(const MixOptions& options, std::int64_t width, std::int64_t height, Random& random) {
  const bool both = options.mixup_alpha > 0 && options.cutmix_alpha > 0;
  const bool cuts = both ? random.below(2) == 1 : options.cutmix_alpha > 0;
  if (cuts) return draw_cut(options.cutmix_alpha, width, height, random);
  return {.share = beta(options.mixup_alpha, random)};
}

MixedSamples::MixedSamples(std::shared_ptr<const Dataset> images, const MixOptions& options)
    : images_(std::move(images)), options_(options) {
  static std::atomic<std::uint64_t> made = 0;
  id_ = ++made;
  check_alpha("mixup_alpha", options.mixup_alpha);
  check_alpha("cutmix_alpha", options.cutmix_alpha);
  const TensorType image{images_->sample_dtype(), images_->sample_shape()};
  if (image.dtype != DType::uint8 || image.shape.rank() != 3)
    throw UserError(fmt::format("samples of {} cannot be mixed; give images, uint8[channels, height, width]",
                                to_string(image)));
}

std::vector<Field> MixedSamples::fields() const {
  std::vector<Field> fields = images_->fields();
  fields.push_back({"partner_labels", {DType::int64, {}}});
  fields.push_back({"label_share", {DType::float32, {}}});
  return fields;
}

void MixedSamples::read_fields(std::int64_t index, const SampleContext& context,
                               std::span<const std::span<std::byte>> values) const {
  auto& label = *reinterpret_cast<std::int64_t*>(values[1].data());
  auto& partner_label = *reinterpret_cast<std::int64_t*>(values[2].data());
  auto& share = *reinterpret_cast<float*>(values[3].data());
  const auto read = [&](std::int64_t which, std::span<std::byte> sample, std::int64_t& its_label) {
    images_->read_fields(which, context,
                         std::array{sample, std::as_writable_bytes(std::span(&its_label, 1))});
  };
  const bool mixes = options_.mixes() && context.partner >= 0;
  bool has_partner = mixes && kept.is(id_, context.partner, context);
  std::vector<std::byte> other;
  std::int64_t other_label = 0;
  if (has_partner) {
    other = std::move(kept.values);
    other_label = kept.label;
  } else if (mixes) {
    other.resize(values[0].size());
    try {
      read(context.partner, other, other_label);
      has_partner = true;
    } catch (const LimitReached&) {
      throw;
    } catch (const UserError&) {
      // The error is ignored here: it is reported when the partner is read at its own place in the batch.
    }
  }
  kept.owner = 0;
  read(index, values[0], label);
  partner_label = label;
  share = 1;
  if (mixes) kept = {id_, index, context, {values[0].begin(), values[0].end()}, label};
  if (!has_partner) return;

  const Shape shape = images_->sample_shape();
  // The letters "mix", which separate these random numbers from those of samples.
  constexpr std::uint64_t tag = 0x6d6978;
  Random random{context.seed, static_cast<std::uint64_t>(context.epoch), tag,
                static_cast<std::uint64_t>(context.step)};
  const Mix mix = draw_mix(options_, shape[2], shape[1], random);
  if (mix.is_cut)
    paste(mix, shape, other.data(), values[0].data());
  else
    add_up(mix.share, other, values[0]);
  partner_label = other_label;
  share = static_cast<float>(mix.share);
}

}  // namespace plexaura
