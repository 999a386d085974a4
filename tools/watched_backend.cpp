#include "tools/watched_backend.h"

#include <fmt/format.h>
#include <vector>

namespace plexaura {

namespace {

std::string json_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += fmt::format(R"({}"{}")", list.empty() ? "" : ",", name);
  return '[' + list + ']';
}

}  // namespace

std::shared_ptr<const Kernel> WatchedBackend::make(const RegionQuery& query, const Candidate& candidate) {
  ++kernels_;
  seconds_ += candidate.seconds;
  if (candidate.implementation == "portable") portable_[query.region.kind] += candidate.seconds;
  if (candidate.implementation.find("ref") != std::string::npos) reference_.insert(query.region.kind);
  return backend_->make(query, candidate);
}

std::string WatchedBackend::plan() const {
  double portable = 0;
  std::vector<std::string> kinds;
  for (const auto& [kind, seconds] : portable_) {
    portable += seconds;
    kinds.push_back(kind);
  }
  return fmt::format(
      R"({{"kernels":{},"expected_s":{:.9f},"portable_share":{:.6f},"portable":{},"reference":{}}})",
      kernels_, seconds_, seconds_ > 0 ? portable / seconds_ : 0, json_of(kinds),
      json_of({reference_.begin(), reference_.end()}));
}

}  // namespace plexaura
