#include "distributed/compression/compression.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "distributed/compression/half_precision.h"
#include "distributed/compression/host_compression.h"
#include "distributed/compression/power_sgd.h"
#include "distributed/compression/top_k.h"

namespace plexaura {
namespace {

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
  // Makes the compression; null for `none`.
  std::unique_ptr<Compression> (*make)(const CompressionOptions&, Communicator&);
};

constexpr std::array known_compressions{Known{"none", nullptr}, Known{"fp16", make_half<float16>},
                                        Known{"bf16", make_half<bfloat16>}, Known{"top-k", make_top_k},
                                        Known{"powersgd", make_power_sgd}};

const Known& known_compression(const std::string& name) {
  const auto known = std::ranges::find(known_compressions, name, &Known::name);
  if (known == known_compressions.end())
    throw UserError(fmt::format("there is no compression '{}'; known are {}{}", name,
                                fmt::join(compression_names(), ", "),
                                did_you_mean(name, compression_names())));
  return *known;
}

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

void check_compression(const std::string& name) { known_compression(name); }

bool hosts_add_first(int hosts, int ranks) { return hosts > 1 && ranks > hosts; }

std::unique_ptr<Compression> make_compression(const CompressionOptions& options, Communicator& communicator) {
  const Known& known = known_compression(options.name);
  if (known.make == nullptr) return nullptr;
  if (hosts_add_first(communicator.place().count, communicator.size()))
    return make_host_compression(options, communicator);
  return known.make(options, communicator);
}

std::unique_ptr<Compression> make_host_compression(const CompressionOptions& options,
                                                   Communicator& communicator) {
  const Known& known = known_compression(options.name);
  if (known.make == nullptr) return nullptr;
  return std::make_unique<HostCompression>(
      communicator, [&](Communicator& first_ranks) { return known.make(options, first_ranks); });
}

}  // namespace plexaura
