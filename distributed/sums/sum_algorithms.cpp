#include "distributed/sums/sum_algorithms.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "distributed/sums/hierarchical_sum.h"
#include "distributed/sums/mpi_sum.h"
#include "distributed/sums/ring_sum.h"
#include "distributed/sums/tree_sum.h"
#include "distributed/sums/window_sum.h"

namespace plexaura {
namespace {

template <class Algorithm>
std::unique_ptr<SumAlgorithm> make_sum(const SumMeans& means) {
  return std::make_unique<Algorithm>(means);
}

std::unique_ptr<SumAlgorithm> make_window_sum(const SumMeans& means) {
  const char* const rule = "'window' adds in memory that all ranks share; take 'auto' or 'hierarchical'";
  if (means.topology.nodes() > 1)
    throw UserError(fmt::format(
        "distributed.algorithm is 'window', but the ranks run on {} hosts ({} and {} among them): {}",
        means.topology.nodes(), means.topology.of(means.topology.by_node()[0][0]).host,
        means.topology.of(means.topology.by_node()[1][0]).host, rule));
  if (means.rendezvous == nullptr)
    throw UserError(
        fmt::format("distributed.algorithm is 'window', but the ranks do not share memory: {}", rule));
  return make_sum<WindowSum>(means);
}

std::unique_ptr<SumAlgorithm> make_best_sum(const SumMeans& means) {
  const bool all_share = means.topology.nodes() == 1 && means.rendezvous != nullptr;
  return all_share ? make_sum<WindowSum>(means) : make_sum<HierarchicalSum>(means);
}

struct KnownAlgorithm {
  std::string_view name;
  std::unique_ptr<SumAlgorithm> (*make)(const SumMeans&);
  bool adds_shards;
};

constexpr std::array known_algorithms{KnownAlgorithm{"auto", make_best_sum, true},
                                      KnownAlgorithm{"window", make_window_sum, true},
                                      KnownAlgorithm{"hierarchical", make_sum<HierarchicalSum>, true},
                                      KnownAlgorithm{"ring", make_sum<RingSum>, false},
                                      KnownAlgorithm{"tree", make_sum<TreeSum>, false},
                                      KnownAlgorithm{"mpi", make_sum<MpiSum>, false}};

}  // namespace

const std::vector<std::string>& sum_algorithm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    made.reserve(known_algorithms.size());
    for (const KnownAlgorithm& known : known_algorithms) made.emplace_back(known.name);
    return made;
  }();
  return names;
}

std::vector<std::string> sum_algorithms_of_shards() {
  std::vector<std::string> names;
  for (const KnownAlgorithm& known : known_algorithms)
    if (known.adds_shards) names.emplace_back(known.name);
  return names;
}

std::unique_ptr<SumAlgorithm> make_sum_algorithm(std::string_view name, const SumMeans& means) {
  const auto known = std::ranges::find(known_algorithms, name, &KnownAlgorithm::name);
  if (known == known_algorithms.end())
    throw UserError(fmt::format("there is no algorithm '{}' for sums over ranks; known are {}{}", name,
                                fmt::join(sum_algorithm_names(), ", "),
                                did_you_mean(name, sum_algorithm_names())));
  return means.topology.ranks() == 1 ? nullptr : known->make(means);
}

}  // namespace plexaura
