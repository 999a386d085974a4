#include "tests/distributed/programs/compressed_sums.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "distributed/compression/compression.h"

namespace plexaura {
namespace {

constexpr std::int64_t rows = 300;
constexpr std::int64_t columns = 1000;
constexpr int steps = 3;

struct Exchanged {
  std::vector<float> brought;  // added over all steps
  std::vector<float> owed;
  std::vector<float> crossed;  // added over all steps and all ranks
};

Exchanged exchange(Communicator& ranks, const CompressionOptions& options) {
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", {DType::float32, {rows, columns}}, ParameterRole::trainable,
                   Layout::row_major(2));
  const std::vector<Bucket> buckets{{0, rows * columns, DType::float32}};
  const auto compression = make_compression(options, ranks);
  compression->begin(placement, buckets);
  Exchanged made{std::vector<float>(rows * columns), std::vector<float>(rows * columns),
                 std::vector<float>(rows * columns)};
  std::vector<float> sums(rows * columns);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float more = std::sin(static_cast<float>(i * (static_cast<std::size_t>(ranks.rank()) + 2)));
      made.brought[i] += more;
      made.owed[i] += more;
    }
    compression->exchange(0, made.owed, sums, "a bucket");
    for (std::size_t i = 0; i < sums.size(); ++i) made.crossed[i] += sums[i];
  }
  return made;
}

void sum(Communicator& ranks, std::vector<float>& values) {
  ranks.sum(DType::float32, std::as_writable_bytes(std::span(values)).data(), std::ssize(values), "a check");
}

bool is_same_everywhere(Communicator& ranks, const std::vector<float>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::vector<std::string> all = ranks.gather_all(std::to_string(fnv(bytes)), "a check");
  return std::ranges::count(all, all[0]) == std::ssize(all);
}

}  // namespace

void check_compressed_sums(Communicator& ranks) {
  const bool owes = !hosts_add_first(ranks.place().count, ranks.size()) || ranks.place().rank == 0;
  for (const std::string& name : compression_names()) {
    if (name == "none") continue;
    Exchanged made = exchange(ranks, {.name = name});
    const bool is_same = is_same_everywhere(ranks, made.crossed);
    const bool owes_nothing = std::ranges::count(made.owed, 0.0F) == std::ssize(made.owed);
    sum(ranks, made.brought);
    sum(ranks, made.owed);
    float missing = 0;
    for (std::size_t i = 0; i < made.brought.size(); ++i)
      missing = std::max(missing, std::abs(made.brought[i] - made.crossed[i] - made.owed[i]));
    if (!is_same) throw InternalError(fmt::format("test failed: {} gives other sums on other ranks", name));
    if (owes_nothing == owes) throw InternalError(fmt::format("test failed: {}: who owes", name));
    if (!(missing < 1e-4F)) throw InternalError(fmt::format("test failed: {} loses {}", name, missing));
  }
}

}  // namespace plexaura
