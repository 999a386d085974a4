#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

// The backend of the tests with two kernels for the ops of one name: "first", which has the lower estimate,
// and "second". Each waits before it computes.
class TwoSpeeds final : public ForwardingBackend {
 public:
  using Wait = std::chrono::microseconds;
  TwoSpeeds(Backend& inner, std::string op, Wait first, Wait second)
      : ForwardingBackend(inner), op_(std::move(op)), first_(first), second_(second) {}

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    if (query.region.kind != op_) return candidates;
    candidates.resize(1);
    candidates.push_back(candidates[0]);
    wait_before(candidates[0], "first", first_);
    wait_before(candidates[1], "second", second_);
    candidates[1].seconds *= 2;
    return candidates;
  }

 private:
  class WaitingLaunch final : public Launch {
   public:
    WaitingLaunch(std::unique_ptr<Launch> launch, Wait wait) : launch_(std::move(launch)), wait_(wait) {}
    void run() override {
      std::this_thread::sleep_for(wait_);
      launch_->run();
    }

   private:
    std::unique_ptr<Launch> launch_;
    Wait wait_;
  };

  class WaitingKernel final : public Kernel {
   public:
    WaitingKernel(std::shared_ptr<const Kernel> kernel, Wait wait)
        : kernel_(std::move(kernel)), wait_(wait) {}
    std::size_t workspace() const override { return kernel_->workspace(); }
    std::unique_ptr<Launch> bind(const Binding& binding) const override {
      return std::make_unique<WaitingLaunch>(kernel_->bind(binding), wait_);
    }

   private:
    std::shared_ptr<const Kernel> kernel_;
    Wait wait_;
  };

  static void wait_before(Candidate& candidate, const char* implementation, Wait wait) {
    candidate.implementation = implementation;
    candidate.make = [make = std::move(candidate.make), wait] {
      return std::make_shared<WaitingKernel>(make(), wait);
    };
  }

  std::string op_;
  Wait first_;
  Wait second_;
};

}  // namespace plexaura::testing
