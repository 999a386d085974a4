#include "training/ranks/report_buckets.h"

#include <fmt/format.h>
#include <string>
#include <vector>

#include "core/base/events.h"

namespace plexaura {

namespace {

// Names after the first one are listed up to about this length, so that the text fits in EventFile::Bucket.
constexpr std::size_t longest = 100;

// Returns a text such as "conv1.weight, conv1.bias and 7 more".
std::string list(const std::vector<std::string>& names) {
  std::string text = names[0];
  std::size_t listed = 1;
  while (listed < names.size() && text.size() + names[listed].size() < longest)
    text += ", " + names[listed++];
  return listed == names.size() ? text : fmt::format("{} and {} more", text, names.size() - listed);
}

}  // namespace

void report_buckets(const WeightsImmigration& border) {
  std::vector<std::vector<std::string>> names(border.buckets().size());
  for (const auto& entry : border.entries())
    if (entry.bucket) names[*entry.bucket].push_back(entry.name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty()) report_event(EventKind::bucket, static_cast<std::int64_t>(i), list(names[i]));
}

}  // namespace plexaura
