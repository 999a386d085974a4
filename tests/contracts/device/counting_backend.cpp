#include "tests/contracts/device/counting_backend.h"

namespace plexaura::testing {

namespace {

using Counts = CountingBackend::Counts;

class CountingRecording final : public Recording {
 public:
  CountingRecording(std::shared_ptr<Counts> counts, std::unique_ptr<Recording> inner)
      : counts_(std::move(counts)), inner_(std::move(inner)) {}
  void replay() override {
    ++counts_->replays;
    inner_->replay();
  }

 private:
  std::shared_ptr<Counts> counts_;
  std::unique_ptr<Recording> inner_;
};

class CountingLaunch final : public Launch {
 public:
  CountingLaunch(std::shared_ptr<Counts> counts, std::unique_ptr<Launch> inner)
      : counts_(std::move(counts)), inner_(std::move(inner)) {}
  void run() override {
    ++counts_->launches;
    inner_->run();
  }

 private:
  std::shared_ptr<Counts> counts_;
  std::unique_ptr<Launch> inner_;
};

class CountingKernel final : public Kernel {
 public:
  CountingKernel(std::shared_ptr<Counts> counts, std::shared_ptr<const Kernel> inner)
      : counts_(std::move(counts)), inner_(std::move(inner)) {}
  std::size_t workspace() const override { return inner_->workspace(); }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<CountingLaunch>(counts_, inner_->bind(binding));
  }

 private:
  std::shared_ptr<Counts> counts_;
  std::shared_ptr<const Kernel> inner_;
};

}  // namespace

std::unique_ptr<Recording> CountingBackend::record(const std::function<void()>& body) {
  auto recording = inner().record(body);
  if (!recording) return nullptr;
  ++counts_->recordings;
  return std::make_unique<CountingRecording>(counts_, std::move(recording));
}

std::vector<Candidate> CountingBackend::propose(const RegionQuery& query) const {
  std::vector<Candidate> candidates = inner().propose(query);
  for (Candidate& candidate : candidates)
    candidate.make = [counts = counts_, make = std::move(candidate.make)] {
      return std::make_shared<CountingKernel>(counts, make());
    };
  return candidates;
}

}  // namespace plexaura::testing
