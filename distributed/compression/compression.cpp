#include "distributed/compression/compression.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/did_you_mean.h"
#include "core/error.h"
#include "distributed/compression/half_precision.h"
#include "distributed/compression/power_sgd.h"
#include "distributed/compression/top_k.h"

namespace plexaura {
namespace {

std::unique_ptr<Compression> make_none(const CompressionOptions&, Communicator&) { return nullptr; }

template <class Half>
std::unique_ptr<Compression> make_half(const CompressionOptions&, Communicator& communicator) {
  return std::make_unique<HalfPrecision<Half>>(communicator);
}

std::unique_ptr<Compression> make_top_k(const CompressionOptions& options, Communicator& communicator) {
  return std::make_unique<TopK>(communicator, options.ratio);
}

std::unique_ptr<Compression> make_power_sgd(const CompressionOptions& options, Communicator& communicator) {
  return std::make_unique<PowerSgd>(communicator, options.rank);
}

struct Known {
  std::string_view name;
  std::unique_ptr<Compression> (*make)(const CompressionOptions&, Communicator&);
};

constexpr std::array known_compressions{Known{"none", make_none}, Known{"fp16", make_half<float16>},
                                        Known{"bf16", make_half<bfloat16>}, Known{"top-k", make_top_k},
                                        Known{"powersgd", make_power_sgd}};

}  // namespace

Compression::~Compression() = default;

const std::vector<std::string>& compression_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const Known& known : known_compressions) made.emplace_back(known.name);
    return made;
  }();
  return names;
}

std::unique_ptr<Compression> make_compression(const CompressionOptions& options, Communicator& communicator) {
  const auto known = std::ranges::find(known_compressions, options.name, &Known::name);
  if (known == known_compressions.end())
    throw UserError(fmt::format("there is no compression '{}'; known are {}{}", options.name,
                                fmt::join(compression_names(), ", "),
                                did_you_mean(options.name, compression_names())));
  return known->make(options, communicator);
}

}  // namespace plexaura
