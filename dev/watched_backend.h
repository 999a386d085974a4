#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/device/forwarding_backend.h"

namespace plexaura {

// A backend that records the kernels that programs get from it. If `kernels` is false, the kernels compute
// nothing.
class WatchedBackend final : public ForwardingBackend {
 public:
  explicit WatchedBackend(std::unique_ptr<Backend> backend, bool kernels = true)
      : ForwardingBackend(*backend), backend_(std::move(backend)), kernels_(kernels) {}

  const Backend& watched() const { return *backend_; }

  // Returns a JSON line with the kernels, the seconds that the backend estimates for them, the share of
  // portable kernels with their names, and the regions that use the reference code of a library.
  std::string plan() const;

  std::vector<Candidate> propose(const RegionQuery& query) const override;

 private:
  struct Account {
    int kernels = 0;
    double seconds = 0;
    std::map<std::string, double> portable = {};  // seconds of portable kernels, by kind of region
    std::set<std::string> reference = {};         // kinds of regions with reference code of a library

    void add(const std::string& kind, const std::string& implementation, double seconds_of_kernel);
  };

  std::unique_ptr<Backend> backend_;
  bool kernels_;
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
};

}  // namespace plexaura
