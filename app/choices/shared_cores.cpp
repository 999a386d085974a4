#include "app/choices/shared_cores.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "backends/cpu/threads.h"
#include "distributed/wire/failure.h"
#include "distributed/wire/texts.h"

namespace plexaura {
namespace {

std::string cores_text(const RankCores& rank) {
  std::vector<std::string> words{std::to_string(rank.rank), std::to_string(rank.node), rank.host,
                                 std::to_string(rank.threads), std::to_string(rank.cores_of_machine)};
  for (const int core : rank.cores) words.push_back(std::to_string(core));
  return pack(words);
}

RankCores read_cores(const std::string& text) {
  const std::vector<std::string> words = unpack(text);
  RankCores read{.rank = std::stoi(words[0]),
                 .node = std::stoi(words[1]),
                 .host = words[2],
                 .threads = std::stoi(words[3]),
                 .cores_of_machine = std::stoi(words[4]),
                 .cores = {}};
  for (std::size_t i = 5; i < words.size(); ++i) read.cores.push_back(std::stoi(words[i]));
  return read;
}

std::string sentence(std::span<const RankCores> crowd, std::size_t cores, int threads) {
  std::vector<int> ranks;
  for (const RankCores& rank : crowd) ranks.push_back(rank.rank);
  const bool are_bound = static_cast<int>(cores) < crowd.front().cores_of_machine;
  const bool have_many = threads > static_cast<int>(crowd.size());
  return fmt::format("{} have {} threads on {} of {}, and slow each other down; {}start fewer {}",
                     list_ranks(ranks), threads, cores == 1 ? "one core" : fmt::format("{} cores", cores),
                     crowd.front().host,
                     are_bound ? "give them more (mpirun --bind-to none, srun --cpus-per-task), or " : "",
                     have_many ? "threads (OMP_NUM_THREADS)" : "ranks");
}

bool some_share(std::span<const RankCores> crowd) {
  std::set<int> taken;
  for (const RankCores& rank : crowd)
    for (const int core : rank.cores)
      if (!taken.insert(core).second) return true;
  return false;
}

// Returns a sentence about the ranks of a node that may use only these cores. Returns an empty text if they
// do not slow each other down.
std::string remark_on(std::span<const RankCores> node, const std::vector<int>& cores) {
  std::vector<RankCores> crowd;
  std::ranges::copy_if(node, std::back_inserter(crowd),
                       [&](const RankCores& rank) { return std::ranges::includes(cores, rank.cores); });
  const int threads = std::accumulate(crowd.begin(), crowd.end(), 0,
                                      [](int sum, const RankCores& rank) { return sum + rank.threads; });
  if (!some_share(crowd) || threads <= static_cast<int>(cores.size())) return {};
  return sentence(crowd, cores.size(), threads);
}

std::vector<int> cores_of_all(std::span<const RankCores> node) {
  std::set<int> all;
  for (const RankCores& rank : node) all.insert(rank.cores.begin(), rank.cores.end());
  return {all.begin(), all.end()};
}

std::string remark_on_node(std::span<const RankCores> node) {
  const auto tells_none = [](const RankCores& rank) { return rank.cores.empty(); };
  if (std::ranges::any_of(node, tells_none)) return {};
  for (const RankCores& rank : node)
    if (std::string remark = remark_on(node, rank.cores); !remark.empty()) return remark;
  return remark_on(node, cores_of_all(node));
}

}  // namespace

std::string remark_on_shared_cores(std::span<const RankCores> ranks) {
  std::map<int, std::vector<RankCores>> nodes;
  for (const RankCores& rank : ranks) nodes[rank.node].push_back(rank);
  for (const auto& [_, node] : nodes)
    if (std::string remark = remark_on_node(node); !remark.empty()) return remark;
  return {};
}

std::string remark_on_shared_cores(Communicator& ranks, int number, bool computes_on_cpu) {
  const bool tells = computes_on_cpu && !openmp_binds_threads();
  const RankCores mine{.rank = number,
                       .node = ranks.place().index,
                       .host = ranks.place().host,
                       .threads = threads_in_use(),
                       .cores_of_machine = cores_of_machine(),
                       .cores = tells ? usable_cores() : std::vector<int>()};
  const std::vector<std::string> texts = ranks.gather_all(cores_text(mine), "the cores of the ranks");
  std::vector<RankCores> all;
  for (const std::string& text : texts) all.push_back(read_cores(text));
  return remark_on_shared_cores(all);
}

}  // namespace plexaura
