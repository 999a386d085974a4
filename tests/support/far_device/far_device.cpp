// The far device: a plugin that checks if the engine follows the rules of core/device/backend.h. It computes
// with the portable kernels, but otherwise behaves like a device with its own memory, only stricter: its
// addresses fault on the host, it has two asynchronous streams that may be lazy, its own layout, and
// recordings. Options, and the variables that set them if they are not given:
//   lazy     PLEXAURA_FAR_LAZY     "1": no work starts until somebody waits for it
//   regions  PLEXAURA_FAR_REGIONS  "1": offers regions of two nodes
//   lacks    PLEXAURA_FAR_LACKS    "exp+log": has no kernels for these ops; "*": for none but reorder

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/device/plugin.h"
#include "core/host/host_adapter.h"
#include "tests/support/far_device/device_sums.h"
#include "tests/support/far_device/far_memory.h"
#include "tests/support/far_device/recorder.h"
#include "tests/support/far_device/regions.h"
#include "tests/support/far_device/streams.h"

namespace plexaura::far_device {

namespace {

// The state that all objects of one far device share.
struct Device {
  explicit Device(bool lazy) : streams(lazy) {}

  void launch(std::shared_ptr<Job> job) {
    if (recorder.active())
      recorder.launch(std::move(job));
    else
      streams.enqueue(Lane::compute, std::move(job));
  }

  std::byte* real(const std::byte* address, std::size_t bytes) const {
    if (bytes == 0 || memory->is_staging(address, bytes)) return const_cast<std::byte*>(address);
    return memory->resolve(address, bytes);
  }

  void copy(Lane lane, Address dst, const std::byte* src, std::size_t bytes) {
    streams.enqueue(lane, Copy{real(dst, bytes), real(src, bytes), bytes});
  }

  std::shared_ptr<FarMemoryMap> memory = std::make_shared<FarMemoryMap>();
  Recorder recorder;
  Streams streams;
};

// Returns a layout with channels last, padded to 8, for values that may be images or filters.
Layout preferred_layout(const TensorType& type) {
  if (type.shape.rank() == 4 && is_floating(type.dtype)) return Layout({0, 2, 3, 1}, {{1, 8}});
  return row_major_layout(type);
}

class FarEvent final : public Event {
 public:
  explicit FarEvent(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void record(Stream stream) override {
    if (device_->recorder.active())
      device_->recorder.record(state_, stream);
    else
      device_->streams.record(state_, lane_of(stream));
  }
  void signal() override {
    device_->recorder.forbid("signalling an event");
    device_->streams.signal(*state_);
  }
  void reset() override {
    device_->recorder.forbid("resetting an event");
    device_->streams.reset(*state_);
  }
  void hold(Stream stream) override {
    if (device_->recorder.active())
      device_->recorder.hold(state_, stream);
    else
      device_->streams.hold(state_, lane_of(stream));
  }
  bool passed() const override {
    device_->recorder.forbid("a query of an event");
    return device_->streams.passed(*state_);
  }
  void wait() override {
    device_->recorder.forbid("waiting");
    device_->streams.wait(*state_);
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

class KernelJob final : public Job {
 public:
  KernelJob(std::unique_ptr<Launch> launch, std::string name)
      : launch_(std::move(launch)), name_(std::move(name)) {}

  void run() override {
    try {
      launch_->run();
    } catch (const std::exception& error) {
      throw DeviceError(fmt::format("{}: {}", name_, error.what()));
    }
  }

 private:
  std::unique_ptr<Launch> launch_;
  std::string name_;
};

class FarLaunch final : public Launch {
 public:
  FarLaunch(std::shared_ptr<Device> device, std::shared_ptr<Job> job)
      : device_(std::move(device)), job_(std::move(job)) {}
  void run() override { device_->launch(job_); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Job> job_;
};

// The sizes in bytes of the operands of a binding.
struct Sizes {
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
};

// A host kernel whose operands have addresses of the far device.
class FarKernel final : public Kernel {
 public:
  FarKernel(std::shared_ptr<Device> device, std::shared_ptr<const Kernel> host, Sizes sizes)
      : device_(std::move(device)), host_(std::move(host)), sizes_(std::move(sizes)) {}

  std::size_t workspace() const override { return host_->workspace(); }

  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    Binding real{unwrap(binding.inputs, sizes_.inputs), unwrap(binding.outputs, sizes_.outputs),
                 device_->memory->resolve(binding.workspace, workspace()), binding.name};
    std::string name = binding.name == nullptr ? "a kernel without a name" : *binding.name;
    return std::make_unique<FarLaunch>(device_,
                                       std::make_shared<KernelJob>(host_->bind(real), std::move(name)));
  }

 private:
  std::vector<Address> unwrap(const std::vector<Address>& addresses,
                              const std::vector<std::size_t>& sizes) const {
    std::vector<Address> real;
    for (std::size_t i = 0; i < addresses.size(); ++i)
      real.push_back(addresses[i] == nullptr ? nullptr : device_->memory->resolve(addresses[i], sizes[i]));
    return real;
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Kernel> host_;
  Sizes sizes_;
};

class FarRecording final : public Recording {
 public:
  FarRecording(std::shared_ptr<Device> device, std::vector<Recorded> recorded)
      : device_(std::move(device)), recorded_(std::move(recorded)) {}

  void replay() override {
    device_->recorder.forbid("replaying");
    for (const Recorded& item : recorded_)
      std::visit([&](const auto& what) { enqueue(item.lane, what); }, item.what);
  }

 private:
  void enqueue(Lane lane, const std::shared_ptr<Job>& job) { device_->streams.enqueue(lane, job); }
  void enqueue(Lane lane, const RecordedCopy& copy) { device_->copy(lane, copy.dst, copy.src, copy.bytes); }
  void enqueue(Lane lane, const RecordedEvent& recorded) { device_->streams.record(recorded.event, lane); }
  void enqueue(Lane lane, const RecordedHold& hold) { device_->streams.hold(hold.event, lane); }

  std::shared_ptr<Device> device_;
  std::vector<Recorded> recorded_;
};

class FarSums final : public DeviceSums {
 public:
  FarSums(std::shared_ptr<Device> device, std::shared_ptr<SharedSums> shared, double deadline_seconds)
      : device_(std::move(device)), shared_(std::move(shared)), deadline_(deadline_seconds) {}
  ~FarSums() override { FarSums::give_up(); }
  FarSums(const FarSums&) = delete;
  FarSums& operator=(const FarSums&) = delete;

  void sum(DType dtype, Address data, std::int64_t count) override {
    device_->recorder.forbid("summing over ranks");
    check();
    std::byte* const place = device_->real(data, static_cast<std::size_t>(count) * size_of(dtype));
    device_->streams.enqueue(Lane::copy, std::make_shared<SumJob>(shared_, dtype, place, count, deadline_));
  }
  void check() const override {
    if (shared_->has_given_up()) throw DeviceError("the sums over ranks were given up");
  }
  void give_up() noexcept override { shared_->give_up(); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<SharedSums> shared_;
  double deadline_;
};

struct Options {
  bool lazy = false;
  bool regions = false;
  std::string lacks;  // names of ops, joined by '+'
};

class FarBackend final : public Backend, public SumsOnDevices {
 public:
  explicit FarBackend(Options options)
      : info_{"far", "a simulated device for tests, with addresses and streams of its own", false},
        options_(options),
        device_(std::make_shared<Device>(options.lazy)) {}

  const BackendInfo& info() const override { return info_; }

  std::string sums_library() const override { return "the far device"; }
  std::string device_identity() const override { return fmt::format("{} {}", getpid(), number_); }
  std::string make_sums_token() override { return SharedSums::make_token(); }
  std::unique_ptr<DeviceSums> join_sums(const std::string& token, int rank, int ranks,
                                        double deadline_seconds) override {
    auto shared = std::make_shared<SharedSums>(token, rank, ranks, deadline_seconds / 2);
    return std::make_unique<FarSums>(device_, std::move(shared), deadline_seconds);
  }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    device_->recorder.forbid("allocating memory");
    return std::make_unique<FarMemory>(device_->memory, bytes, use);
  }

  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    if (!device_->recorder.active()) return device_->copy(lane_of(stream), dst, src, bytes);
    device_->real(dst, bytes);  // throws for memory that does not belong to the device
    device_->real(src, bytes);
    device_->recorder.copy(stream, {dst, src, bytes});
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<FarEvent>(device_); }

  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    return std::make_unique<FarRecording>(device_, device_->recorder.capture(body));
  }

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    return options_.regions ? match_sums(graph, last, uses) : std::vector<Region>{};
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (lacks_op_of(query)) return {};
    std::vector<Candidate> candidates = propose_host_kernel(query, preferred_layout);
    for (Candidate& candidate : candidates)
      candidate.make = [device = device_, make_host = std::move(candidate.make),
                        sizes = Sizes{bytes_of(query, query.region.inputs, candidate.inputs),
                                      bytes_of(query, query.region.outputs, candidate.outputs)}] {
        return std::make_shared<FarKernel>(device, make_host(), sizes);
      };
    return candidates;
  }

 private:
  bool lacks_op_of(const RegionQuery& query) const {
    return std::ranges::any_of(query.region.nodes, [&](NodeId node) {
      const std::string name(query.graph.record(node).op->name());
      if (options_.lacks == "*") return name != "reorder";
      return ("+" + options_.lacks + "+").find("+" + name + "+") != std::string::npos;
    });
  }

  static std::vector<std::size_t> bytes_of(const RegionQuery& query, const std::vector<Value>& values,
                                           const std::vector<Layout>& layouts) {
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < values.size(); ++i)
      bytes.push_back(static_cast<std::size_t>(layouts[i].bytes(query.type(values[i]))));
    return bytes;
  }

  BackendInfo info_;
  Options options_;
  std::shared_ptr<Device> device_;
  int number_ = [] {
    static std::atomic<int> opened = 0;
    return ++opened;
  }();
};

bool is_on(std::string_view name, std::string_view value) {
  if (value != "0" && value != "1")
    throw UserError(fmt::format("the option '{}' of the far device is '{}'; it must be 0 or 1", name, value));
  return value == "1";
}

bool is_on_in_environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && is_on(variable, value);
}

Backend* open_far_device(const BackendOptions& given) {
  const char* const lacks = std::getenv("PLEXAURA_FAR_LACKS");
  Options options{is_on_in_environment("PLEXAURA_FAR_LAZY"), is_on_in_environment("PLEXAURA_FAR_REGIONS"),
                  lacks == nullptr ? "" : lacks};
  for (const auto& [name, value] : given)
    if (name == "lazy")
      options.lazy = is_on(name, value);
    else if (name == "regions")
      options.regions = is_on(name, value);
    else if (name == "lacks")
      options.lacks = value;
    else
      throw UserError(fmt::format("the far device has no option '{}'; it has: lazy, regions, lacks", name));
  return new FarBackend(options);
}

}  // namespace

}  // namespace plexaura::far_device

PLEXAURA_PLUGIN(plexaura::far_device::open_far_device)
