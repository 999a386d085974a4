#include "distributed/wire/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>

namespace plexaura {

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}", fmt::join(std::span(ranks).first(ranks.size() - 1), ", "),
                     ranks.back());
}

}  // namespace plexaura
