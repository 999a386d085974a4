#include "app/choices/device_exchange.h"

#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "distributed/summing/device_all_reduce.h"

namespace plexaura {
namespace {

bool is_asked_for(const RunOptions& options) { return options.algorithm == device_algorithm; }

// A backend without a library for it is the rule, of which nobody needs to hear.
ToldChoice tell_why_not(const JoinedDevices& devices) {
  if (devices.library.empty()) return {};
  return {fmt::format("gradients cross through the memory of hosts, and not by {}: {}", devices.library,
                      devices.why_not),
          {{"event", "exchange"}, {"algorithm", "auto"}, {"why_not_device", devices.why_not}}};
}

}  // namespace

std::string algorithm_of_hosts(const RunOptions& options) {
  return is_asked_for(options) ? "auto" : options.algorithm;
}

bool may_sum_on_devices(const Communicator& exchange, const RunOptions& options) {
  return exchange.size() > 1 && !exchange.outlives_ranks() && options.strategy.name == "allreduce" &&
         options.strategy.compression.name == "none" && options.strategy.overlap == Overlap::automatic &&
         (options.algorithm == "auto" || is_asked_for(options));
}

DeviceExchange settle_device_exchange(Communicator& exchange, Backend& backend, RunOptions& options) {
  JoinedDevices devices = join_devices(exchange, backend);
  if (devices.sums == nullptr) {
    if (!is_asked_for(options)) return {.told = tell_why_not(devices)};
    const UserError error(
        fmt::format("distributed.algorithm is '{}', but {}; take 'auto'", device_algorithm, devices.why_not));
    agree_on_error(exchange, std::make_exception_ptr(error), "the choice of an algorithm");
  }
  options.algorithm = device_algorithm;
  return {std::make_unique<DeviceAllReduce>(exchange, std::move(devices.sums)),
          {fmt::format("gradients cross by {}, each rank on a device of its own", devices.library),
           {{"event", "exchange"},
            {"algorithm", std::string(device_algorithm)},
            {"library", devices.library},
            {"bucket_bytes", options.trainer.bucket_bytes}}}};
}

}  // namespace plexaura
