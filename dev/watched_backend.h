#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/device/forwarding_backend.h"

namespace plexaura {

// A backend that keeps an account of the kernels that programs get from it; without `kernels` they compute
// nothing.
class WatchedBackend final : public ForwardingBackend {
 public:
  explicit WatchedBackend(std::unique_ptr<Backend> backend, bool kernels = true)
      : ForwardingBackend(*backend), backend_(std::move(backend)), kernels_(kernels) {}

  const Backend& watched() const { return *backend_; }

  // A line of JSON: the kernels, the seconds that the backend expects of them, the share of portable kernels
  // in these with their names, and what was left to the reference code of a library.
  std::string plan() const;

  std::vector<Candidate> propose(const RegionQuery& query) const override;

 private:
  struct Account {
    int kernels = 0;
    double seconds = 0;
    std::map<std::string, double> portable = {};  // seconds by kind of region
    std::set<std::string> reference = {};         // kinds of regions

    void add(const std::string& kind, const std::string& implementation, double seconds_of_kernel);
  };

  std::unique_ptr<Backend> backend_;
  bool kernels_;
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
};

}  // namespace plexaura
