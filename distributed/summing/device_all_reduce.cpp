#include "distributed/summing/device_all_reduce.h"

#include <fmt/format.h>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura {
namespace {

constexpr std::string_view joining = "joining the devices of all ranks";

std::string library_of(const SumsOnDevices* device) {
  return device != nullptr ? device->sums_library() : "";
}

// Returns a reason if not all ranks have the same library, otherwise an empty text. `libraries` has the
// libraries of all ranks.
std::string why_unlike(const std::vector<std::string>& libraries) {
  for (std::size_t rank = 0; rank < libraries.size(); ++rank) {
    if (libraries[rank].empty()) return fmt::format("the device of rank {} has no library for that", rank);
    if (libraries[rank] != libraries[0])
      return fmt::format("rank 0 has {} and rank {} has {}", libraries[0], rank, libraries[rank]);
  }
  return {};
}

// Returns a reason if two ranks have the same device, otherwise an empty text. `devices` has the devices of
// all ranks.
std::string why_shared(const std::vector<std::string>& devices) {
  std::map<std::string, std::size_t> first;
  for (std::size_t rank = 0; rank < devices.size(); ++rank)
    if (const auto [other, is_new] = first.emplace(devices[rank], rank); !is_new)
      return fmt::format("ranks {} and {} share a device", other->second, rank);
  return {};
}

// Returns the first failure among all ranks, or an empty text. `mine` is the failure of this rank, or an
// empty text.
std::string failure_among(Communicator& ranks, const std::string& mine) {
  const std::vector<std::string> all = ranks.gather_all(mine, joining);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty()) return fmt::format("rank {}: {}", rank, all[rank]);
  return {};
}

// Runs `work` on all ranks. Returns, on all ranks, the error of one of them, or an empty text if there is
// none.
template <class Work>
std::string attempt(Communicator& ranks, Work&& work) {
  std::string failure;
  try {
    work();
  } catch (const Error& error) {
    failure = error.what();
  }
  return failure_among(ranks, failure);
}

}  // namespace

JoinedDevices join_devices(Communicator& ranks, Backend& backend) {
  auto* const device = dynamic_cast<SumsOnDevices*>(&backend);
  JoinedDevices joined;
  const std::vector<std::string> libraries = ranks.gather_all(library_of(device), joining);
  joined.why_not = why_unlike(libraries);
  if (!joined.why_not.empty()) return joined;
  joined.library = libraries[0];
  const std::string identity = fmt::format("{} {}", ranks.place().index, device->device_identity());
  joined.why_not = why_shared(ranks.gather_all(identity, joining));
  if (!joined.why_not.empty()) return joined;
  std::string token;
  joined.why_not = attempt(ranks, [&] {
    if (ranks.rank() == 0) token = device->make_sums_token();
  });
  if (!joined.why_not.empty()) return joined;
  token = ranks.gather_all(token, joining).front();
  joined.why_not = attempt(ranks, [&] {
    joined.sums = device->join_sums(token, ranks.rank(), ranks.size(), ranks.deadline_seconds());
  });
  if (!joined.why_not.empty()) joined.sums = nullptr;
  return joined;
}

DeviceAllReduce::DeviceAllReduce(Communicator& ranks, std::unique_ptr<DeviceSums> sums)
    : ranks_(ranks), sums_(std::move(sums)) {}

void DeviceAllReduce::begin(WeightsImmigration& border) {
  border_ = &border;
  summed_.clear();
  for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket)
    summed_.push_back(border.make_event(*sums_));
}

void DeviceAllReduce::gradients_ready(std::size_t bucket, Event& final) {
  border_->sum_on_device(bucket, final, *sums_, *summed_[bucket]);
}

UpdateAnswer DeviceAllReduce::before_update(std::size_t bucket) {
  return {.event = summed_[bucket].get(), .deadline_seconds = ranks_.deadline_seconds()};
}

}  // namespace plexaura
