#include "training/ranks/skipped.h"

#include <limits>
#include <set>
#include <sstream>

namespace plexaura {

namespace {

// Returns a text such as "3 17 20", a line break, and the error of sample 3.
std::string to_text(const std::map<std::int64_t, std::string>& skipped) {
  std::string text;
  for (const auto& [index, error] : skipped) text += std::to_string(index) + ' ';
  return text + '\n' + (skipped.empty() ? "" : skipped.begin()->second);
}

}  // namespace

Skipped gather_skipped(Collective& ranks, const std::map<std::int64_t, std::string>& mine,
                       std::string_view what) {
  std::set<std::int64_t> indices;
  Skipped all;
  for (const std::string& text : ranks.gather_all(to_text(mine), what)) {
    const std::size_t line_end = text.find('\n');
    const std::int64_t lowest = indices.empty() ? std::numeric_limits<std::int64_t>::max() : *indices.begin();
    std::istringstream line(text.substr(0, line_end));
    for (std::int64_t index = 0; line >> index;) indices.insert(index);
    if (!indices.empty() && *indices.begin() < lowest) all.first = text.substr(line_end + 1);
  }
  all.count = static_cast<std::int64_t>(indices.size());
  return all;
}

}  // namespace plexaura
