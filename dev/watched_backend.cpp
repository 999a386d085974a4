#include "dev/watched_backend.h"

#include <fmt/format.h>
#include <vector>

namespace plexaura {

namespace {

std::string json_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += fmt::format(R"({}"{}")", list.empty() ? "" : ",", name);
  return '[' + list + ']';
}

// Uses as much memory as another kernel, but computes nothing.
class EmptyKernel final : public Kernel {
 public:
  explicit EmptyKernel(std::size_t workspace) : workspace_(workspace) {}
  std::size_t workspace() const override { return workspace_; }
  std::unique_ptr<Launch> bind(const Binding&) const override { return std::make_unique<EmptyLaunch>(); }

 private:
  class EmptyLaunch final : public Launch {
    void run() override {}
  };
  std::size_t workspace_;
};

}  // namespace

void WatchedBackend::Account::add(const std::string& kind, const std::string& implementation,
                                  double seconds_of_kernel) {
  ++kernels;
  seconds += seconds_of_kernel;
  if (implementation == "portable") portable[kind] += seconds_of_kernel;
  if (implementation.find("ref") != std::string::npos) reference.insert(kind);
}

std::vector<Candidate> WatchedBackend::propose(const RegionQuery& query) const {
  std::vector<Candidate> candidates = inner().propose(query);
  for (Candidate& candidate : candidates)
    candidate.make = [account = account_, kind = query.region.kind, implementation = candidate.implementation,
                      seconds = candidate.seconds, computes = kernels_,
                      make = std::move(candidate.make)]() -> std::shared_ptr<const Kernel> {
      account->add(kind, implementation, seconds);
      auto kernel = make();
      return computes ? kernel : std::make_shared<EmptyKernel>(kernel->workspace());
    };
  return candidates;
}

std::string WatchedBackend::plan() const {
  double portable = 0;
  std::vector<std::string> kinds;
  for (const auto& [kind, seconds] : account_->portable) {
    portable += seconds;
    kinds.push_back(kind);
  }
  return fmt::format(
      R"({{"kernels":{},"expected_s":{:.9f},"portable_share":{:.6f},"portable":{},"reference":{}}})",
      account_->kernels, account_->seconds, account_->seconds > 0 ? portable / account_->seconds : 0,
      json_of(kinds), json_of({account_->reference.begin(), account_->reference.end()}));
}

}  // namespace plexaura
