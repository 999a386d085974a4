#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <iterator>
#include <optional>

#include "backends/cuda/engine/cuda_event.h"
#include "backends/cuda/engine/cuda_recording.h"
#include "backends/cuda/engine/device.h"
#include "backends/cuda/engine/rank_sums.h"
#include "backends/cuda/kernel_code.h"
#include "backends/cuda/offers/cast_behind.h"
#include "backends/cuda/offers/chain_regions.h"
#include "backends/cuda/offers/kernel_uses.h"
#include "backends/cuda/offers/library_source.h"
#include "backends/cuda/offers/own_source.h"
#include "backends/cuda/regions/fused_batch_norm.h"
#include "backends/cuda/regions/fused_row_norm.h"
#include "backends/regions/matmul_regions.h"
#include "core/base/error.h"
#include "core/device/device_sums.h"
#include "core/device/transfer_counts.h"

namespace plexaura::cuda {

namespace {

class CudaMemory final : public Memory {
 public:
  CudaMemory(std::shared_ptr<Device> device, std::size_t bytes, MemoryUse use)
      : device_(std::move(device)),
        bytes_(bytes),
        use_(use),
        address_(use == MemoryUse::device ? runtime::allocate_device(std::max<std::size_t>(bytes, 1))
                                          : runtime::allocate_pinned(std::max<std::size_t>(bytes, 1))) {
    if (use == MemoryUse::device) device_->transfers.add_memory(address_, bytes_);
  }
  ~CudaMemory() override {
    if (use_ == MemoryUse::device) {
      device_->transfers.remove_memory(address_);
      runtime::free_device(address_);
    } else {
      runtime::free_pinned(address_);
    }
  }

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  std::size_t bytes_;
  MemoryUse use_;
  Address address_;
};

// A kernel of our own may be slow. It is a candidate in addition to the libraries' kernels only if its
// estimate is below this number of seconds, so that measuring it takes little time.
constexpr double seconds_worth_measuring = 1e-3;

BackendInfo info_of(const runtime::Device& device, const std::string& libraries, bool tf32, bool fuses) {
  const std::string description =
      libraries.empty() ? device.description : device.description + ", " + libraries;
  return {.name = device.name,
          .description = description,
          .kind = description + (tf32 ? ", TF32" : "") + (fuses ? "" : ", unfused"),
          .bytes_reordered_in_a_second = device.bytes_in_a_second,
          .build = kernel_code_stamp()};
}

class CudaBackend final : public Backend, public CountsTransfers, public SumsOnDevices {
 public:
  CudaBackend(int index, const vendor::Options& options, bool fuses, bool branches)
      : fuses_(fuses),
        branches_(branches),
        device_(std::make_shared<Device>(index)),
        library_source_(device_, options),
        info_(info_of(device_->info, library_source_.versions(), options.tf32, fuses)) {}

  const BackendInfo& info() const override { return info_; }
  TransferCounts transfers() const override { return device_->transfers.counts(); }

  std::string sums_library() const override { return vendor::sums_version(); }
  std::string device_identity() const override { return device_->info.identity; }
  std::string make_sums_token() override { return vendor::make_token(); }
  std::unique_ptr<DeviceSums> join_sums(const std::string& token, int rank, int ranks,
                                        double deadline_seconds) override {
    return std::make_unique<RankSums>(device_, vendor::join({token, rank, ranks}, deadline_seconds / 2),
                                      deadline_seconds);
  }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    device_->capture.forbid("allocating memory");
    return std::make_unique<CudaMemory>(device_, bytes, use);
  }

  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    if (device_->capture.active()) device_->capture.require_part(stream);
    if (bytes == 0) return;
    const auto enqueue = [=, into = device_->stream(stream)] { runtime::copy(into, dst, src, bytes); };
    if (device_->capture.active())
      device_->capture.add(enqueue);
    else
      enqueue();
    if (device_->transfers.crosses(dst, src)) count_host_copy();
  }

  std::unique_ptr<Event> make_event() override {
    device_->capture.forbid("making an event");
    return std::make_unique<CudaEvent>(device_);
  }

  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    const Capture::Scope scope(device_->capture);
    device_->capture.add([] {});  // adds an empty part, after which both branches begin
    body();
    device_->capture.add([this, joins = device_->capture.has_copy_stream()] {
      if (joins) join_copies();
    });
    return make_recording(device_, branches_);
  }

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!fuses_ || graph.type({last, 0}).shape.elements() == 0) return {};
    std::vector<Region> regions = match_fused_batch_norm(graph, last, uses);
    const auto add = [&](std::vector<Region> more) { std::ranges::move(more, std::back_inserter(regions)); };
    if (graph.record(last).op->name() == "add") add(match_matmul_with_bias(graph, last, uses));
    add(match_fused_row_norm(graph, last, uses));
    add(match_cast_behind(graph, last, uses));
    add(match_chains(graph, last, uses));
    return regions;
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = library_source_.propose(query);
    const bool alone = candidates.empty();
    for (Candidate& own : propose_own(device_, query))
      if (alone || own.seconds < seconds_worth_measuring) candidates.push_back(std::move(own));
    for (Candidate& candidate : candidates) candidate = with_uses(device_, query, std::move(candidate));
    return candidates;
  }

 private:
  void count_host_copy() {
    if (device_->capture.active())
      device_->capture.count_host_copy();
    else
      device_->transfers.count_copies(1);
  }

  // Makes the compute stream wait for the copy stream. Otherwise the work captured on the copy stream would
  // not belong to the graph.
  void join_copies() {
    runtime::record(joined_.get(), device_->copy.get());
    runtime::hold(device_->compute.get(), joined_.get());
  }

  bool fuses_;
  bool branches_;
  std::shared_ptr<Device> device_;
  mutable LibrarySource library_source_;  // caches the plans of the libraries
  EventHandle joined_{runtime::make_event()};
  BackendInfo info_;
};

int number_of(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw UserError(fmt::format(
        "the option 'device' of the backend 'cuda' is '{}'; it must be the number of a GPU, from 0", text));
  return number;
}

bool flag_of(std::string_view name, std::string_view text) {
  if (text != "0" && text != "1")
    throw UserError(
        fmt::format("the option '{}' of the backend 'cuda' is '{}'; it must be 0 or 1", name, text));
  return text == "1";
}

// Returns this rank's number among the ranks that a launcher has started on this host. Returns 0 without a
// launcher.
int rank_on_host() {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* const text = std::getenv(name)) return std::max(std::atoi(text), 0);
  return 0;
}

}  // namespace

Backend* open_cuda(const BackendOptions& options) {
  std::optional<int> index;
  vendor::Options of_libraries;
  bool fuses = true;
  bool branches = true;
  for (const auto& [name, value] : options)
    if (name == "device")
      index = number_of(value);
    else if (name == "tf32")
      of_libraries.tf32 = flag_of(name, value);
    else if (name == "fuse")
      fuses = flag_of(name, value);
    else if (name == "branches")
      branches = flag_of(name, value);
    else
      throw UserError(
          fmt::format("the backend 'cuda' has no option '{}'; it has: branches, device, fuse, tf32", name));
  return new CudaBackend(index ? *index : rank_on_host() % runtime::device_count(), of_libraries, fuses,
                         branches);
}

}  // namespace plexaura::cuda
