#include "app/choices/device_exchange.h"

#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "distributed/summing/device_all_reduce.h"

namespace plexaura {
namespace {

bool is_asked_for(const RunOptions& options) { return options.algorithm == device_algorithm; }

// Chooses between sums by the devices and sums by the hosts. The devices sum if all ranks can join their
// devices.
class DeviceSumsChoice final : public RankChoice<std::string> {
 public:
  DeviceSumsChoice(Communicator& exchange, const OpenBackend& open, RunOptions& options, DeviceExchange& made)
      : exchange_(exchange), open_(open), options_(options), made_(made) {}

 private:
  std::vector<std::string> candidates() override {
    if (!may_sum_on_devices(exchange_, options_)) return {};
    return {options_.algorithm, std::string(device_algorithm)};
  }
  std::string name_of(const std::string& algorithm) const override { return algorithm; }

  std::string judge() override {
    made_.backend = together(exchange_, "opening the backend", open_);
    devices_ = join_devices(exchange_, *made_.backend);
    if (devices_.sums == nullptr && is_asked_for(options_)) {
      const UserError error(fmt::format("distributed.algorithm is '{}', but {}; take 'auto'",
                                        device_algorithm, devices_.why_not));
      agree_on_error(exchange_, std::make_exception_ptr(error), "the choice of an algorithm");
    }
    return devices_.sums == nullptr ? options_.algorithm : std::string(device_algorithm);
  }

  void take(const std::string& algorithm) override {
    options_.algorithm = algorithm;
    if (devices_.sums == nullptr) return;
    made_.strategy = std::make_unique<DeviceAllReduce>(exchange_, std::move(devices_.sums));
  }

  // Reports nothing for a backend without a library for sums, which is the usual case.
  ChoiceReport report(const std::string& taken) override {
    if (devices_.library.empty()) return {};
    if (made_.strategy == nullptr)
      return {fmt::format("gradients cross through the memory of hosts, and not by {}: {}", devices_.library,
                          devices_.why_not),
              {{"event", "exchange"}, {"algorithm", taken}, {"why_not_device", devices_.why_not}}};
    return {fmt::format("gradients cross by {}, each rank on a device of its own", devices_.library),
            {{"event", "exchange"},
             {"algorithm", taken},
             {"library", devices_.library},
             {"bucket_bytes", options_.trainer.bucket_bytes}}};
  }

  Communicator& exchange_;
  const OpenBackend& open_;
  RunOptions& options_;
  DeviceExchange& made_;
  JoinedDevices devices_;
};

}  // namespace

std::string algorithm_of_hosts(const RunOptions& options) {
  return is_asked_for(options) ? "auto" : options.algorithm;
}

bool may_sum_on_devices(const Communicator& exchange, const RunOptions& options) {
  return exchange.size() > 1 && !exchange.outlives_ranks() && options.strategy.name == "allreduce" &&
         options.strategy.compression.name == "none" && options.strategy.overlap == Overlap::automatic &&
         (options.algorithm == "auto" || is_asked_for(options));
}

DeviceExchange decide_device_exchange(Communicator& exchange, const OpenBackend& open, RunOptions& options) {
  DeviceExchange made;
  made.report = DeviceSumsChoice(exchange, open, options, made).make();
  return made;
}

}  // namespace plexaura
