// Sums over processes by NCCL. No call of NCCL blocks: unfinished ones are polled until the deadline. The
// library is opened when it is first used, since most programs have one process.

#include <charconv>
#include <chrono>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <nccl.h>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "backends/cuda/vendor/sums.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura::cuda::vendor {

namespace {

constexpr std::chrono::microseconds nap{100};

// The functions of NCCL that are used. All pointers are null if NCCL cannot be opened, or lacks one of the
// functions.
struct Library {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclGetErrorString) error_text = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
};

void* open_library() {
  void* const as_built = dlopen(PLEXAURA_NCCL, RTLD_NOW | RTLD_LOCAL);
  return as_built != nullptr ? as_built : dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
}

Library load_library() {
  void* const opened = open_library();
  Library library;
  bool is_whole = opened != nullptr;
  const auto find = [&](auto& function, const char* name) {
    if (is_whole)
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened, name));
    is_whole = is_whole && function != nullptr;
  };
  find(library.get_version, "ncclGetVersion");
  find(library.get_unique_id, "ncclGetUniqueId");
  find(library.init_rank, "ncclCommInitRankConfig");
  find(library.get_async_error, "ncclCommGetAsyncError");
  find(library.abort, "ncclCommAbort");
  find(library.finalize, "ncclCommFinalize");
  find(library.destroy, "ncclCommDestroy");
  find(library.all_reduce, "ncclAllReduce");
  find(library.error_text, "ncclGetErrorString");
  find(library.last_error, "ncclGetLastError");
  return is_whole ? library : Library{};
}

const Library& nccl() {
  static const Library library = load_library();
  return library;
}

[[noreturn]] void fail(ncclResult_t result, const char* call) {
  throw DeviceError(fmt::format("NCCL: {} failed: {}", call, nccl().error_text(result)));
}

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess && result != ncclInProgress) fail(result, call);
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return ncclFloat64;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float16:
      return ncclFloat16;
    default:
      return ncclFloat32;
  }
}

std::string to_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof id.internal)
    throw InternalError(fmt::format("a token of NCCL has {} digits", text.size()));
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    unsigned byte = 0;
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, byte, 16);
    id.internal[i] = static_cast<char>(byte);
  }
  return id;
}

// Calls ncclCommAbort on a separate thread, and waits at most `seconds`: the call may wait for threads of the
// library that never end.
void abort_within(ncclComm_t comm, double seconds) noexcept {
  try {
    std::promise<void> done;
    const std::future<void> returned = done.get_future();
    std::thread([comm, done = std::move(done)]() mutable {
      nccl().abort(comm);
      done.set_value();
    }).detach();
    returned.wait_for(std::chrono::duration<double>(seconds));
  } catch (const std::system_error&) {  // no thread can be started: aborts in this one, without a limit
    nccl().abort(comm);
  }
}

class Nccl final : public Sums {
 public:
  Nccl(const Membership& membership, double deadline_seconds) : deadline_(deadline_seconds) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(nccl().init_rank(&comm_, membership.ranks, from_hex(membership.token), membership.rank, &config),
          "ncclCommInitRankConfig");
    try {
      await("ncclCommInitRankConfig");
    } catch (...) {
      Nccl::give_up();
      throw;
    }
  }
  ~Nccl() override { Nccl::give_up(); }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  void sum(runtime::Stream* stream, DType dtype, Address data, std::int64_t count) override {
    {
      const std::lock_guard lock(mutex_);
      require();
      check(nccl().all_reduce(data, data, static_cast<std::size_t>(count), type_of(dtype), ncclSum, comm_,
                              reinterpret_cast<cudaStream_t>(stream)),
            "ncclAllReduce");
    }
    await("ncclAllReduce");  // waits, so that work enqueued after this call runs after the sum
  }

  std::string failure() override {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return {};
    const ncclResult_t state = state_now();
    if (state == ncclSuccess || state == ncclInProgress) return {};
    return fmt::format("NCCL: {}: {}", nccl().error_text(state), nccl().last_error(comm_));
  }

  void give_up() noexcept override {
    if (const ncclComm_t comm = take_comm(); comm != nullptr) abort_within(comm, deadline_);
  }

  // Leaves the group. Aborts only if that fails, because ncclCommAbort frees memory that other processes may still
  // use.
  void end() noexcept override {
    try {
      {
        const std::lock_guard lock(mutex_);
        if (comm_ == nullptr) return;
        check(nccl().finalize(comm_), "ncclCommFinalize");
      }
      await("ncclCommFinalize");
      if (const ncclComm_t comm = take_comm(); comm != nullptr) nccl().destroy(comm);
    } catch (const DeviceError&) {
      Nccl::give_up();
    }
  }

 private:
  ncclComm_t take_comm() {
    const std::lock_guard lock(mutex_);
    return std::exchange(comm_, nullptr);
  }

  void require() const {
    if (comm_ == nullptr) throw DeviceError("NCCL: the sums over ranks were given up");
  }

  ncclResult_t state_now() {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = nccl().get_async_error(comm_, &state);
    return result == ncclSuccess ? state : result;
  }

  bool is_done(const char* call) {
    const std::lock_guard lock(mutex_);
    require();
    const ncclResult_t state = state_now();
    check(state, call);
    return state == ncclSuccess;
  }

  void await(const char* call) {
    const double begin = seconds_now();
    while (!is_done(call)) {
      if (seconds_now() - begin > deadline_)
        throw DeviceError(fmt::format("NCCL: {} was not done within {:.3g} s", call, deadline_));
      std::this_thread::sleep_for(nap);
    }
  }

  double deadline_;
  std::mutex mutex_;  // guards the members below
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::string sums_version() {
  int version = 0;
  if (nccl().get_version == nullptr || nccl().get_version(&version) != ncclSuccess) return "";
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string make_token() {
  ncclUniqueId id{};
  if (const ncclResult_t result = nccl().get_unique_id(&id); result != ncclSuccess)
    fail(result, "ncclGetUniqueId");
  return to_hex(id);
}

std::unique_ptr<Sums> join(const Membership& membership, double deadline_seconds) {
  return std::make_unique<Nccl>(membership, deadline_seconds);
}

}  // namespace plexaura::cuda::vendor
