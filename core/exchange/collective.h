#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/events.h"
#include "core/base/export.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// The calls between ranks that the engine and the trainer use. All ranks must call the same functions in the same order
// with the same sizes; a call that does not match is reported before any data moves. Every call may wait for other ranks.
// Every wait has the implementation's deadline, and then ends in a DeviceError (or the end of the process) that names
// `what` and the missing ranks. If another rank has failed, the wait ends with that rank's error. After such an error the
// object must not be used any more. `what` is a short phrase: "the loss of epoch 3", "bucket 2 of step 17". Only one
// thread at a time may call. The memory passed belongs to the caller, and must stay until the call returns.
class PLEXAURA_API Collective {
 public:
  virtual ~Collective();

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sums `count` elements over all ranks in place. The order of additions depends only on the number of
  // ranks, not on how the data is cut into calls or where the ranks run. So the bits are the same on every
  // rank and in every run. (An implementation may offer faster ways without this promise, if it says so.)
  // Supports float64, float32 and int64, which wraps; throws UserError for other types.
  virtual void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;

  // Copies the root's bytes to all ranks.
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) = 0;

  // Copies `bytes` bytes from rank `from`, which is not 0, to rank 0. Only these two ranks use `data`. The
  // others return at once if the implementation does not need them; this implementation is a broadcast in
  // which all take part.
  virtual void bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what);

  // Returns the bytes of all messages that this rank has sent in calls of this object, or nothing if they are
  // not counted.
  virtual std::optional<std::int64_t> bytes_sent() const { return std::nullopt; }

  // Returns how long a rank waits for another one; infinite if it never waits.
  virtual double deadline_seconds() const { return std::numeric_limits<double>::infinity(); }

  // While interruption is on, every wait for other ranks in a call of any object of this process throws a
  // DeviceError, and that object must not be used any more. This ends a thread whose work is no longer
  // needed. If an implementation cannot interrupt waits, they last until their deadline. Any thread may call
  // it.
  virtual void interrupt_waits(bool /*on*/) {}

  // Returns the texts of all ranks, in the order of ranks. They may differ in length.
  virtual std::vector<std::string> gather_all(const std::string& mine, std::string_view what) = 0;
};

// The collective of a program that runs alone: every function returns at once.
class PLEXAURA_API SingleProcess final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(DType, std::byte*, std::int64_t, std::string_view) override {}
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override { return {mine}; }
};

// Marks an error that another rank reports. A Remote derives from it and from an error of the same kind, so that handlers
// of UserError and the like, and exit_status(), work as on the rank where the error arose. Only the reporting rank prints
// it: see speaks().
class PLEXAURA_API RemoteError {
 public:
  explicit RemoteError(int reporting_rank) : reporting_rank_(reporting_rank) {}
  virtual ~RemoteError();
  int reporting_rank() const { return reporting_rank_; }

 private:
  int reporting_rank_;
};

// A UserError, DeviceError or InternalError whose sentence `reporting_rank` prints.
template <class Kind>
class Remote final : public Kind, public RemoteError {
 public:
  Remote(int reporting_rank, const std::string& text) : Kind(text), RemoteError(reporting_rank) {}
};

// True if this rank should print the error. Of all ranks that end with the same error, exactly one prints it.
PLEXAURA_API bool speaks(const std::exception& error) noexcept;

// Ends a phase in which some ranks may have failed. Returns if no rank passes an error; otherwise throws on
// every rank. The lowest rank that failed rethrows its own error, and prints it. All other ranks, failed or
// not, throw a Remote of the same kind with that rank's number and text, and do not print it. So all ranks
// end with the same exit status. An exception that is no plexaura::Error counts as an InternalError, and
// std::bad_alloc as a DeviceError.
PLEXAURA_API void agree_on_error(Collective& collective, const std::exception_ptr& mine,
                                 std::string_view what);

// Marks, while it lives, that this thread runs a phase in which ranks may fail. Ranks that have failed make
// no calls of all ranks until the phase ends.
class PLEXAURA_API PhaseMark {
 public:
  explicit PhaseMark(std::string_view what);
  ~PhaseMark();
  PhaseMark(const PhaseMark&) = delete;
  PhaseMark& operator=(const PhaseMark&) = delete;

 private:
  EventSpan span_;
  std::string_view outer_;
};

// Throws InternalError if this thread is in a phase. Implementations of Collective call it at the start of
// each call. The object remains usable, so that the ranks can agree on the error.
PLEXAURA_API void refuse_in_phase(std::string_view what);

// Runs a phase in which some ranks may fail. Returns its result, or throws as agree_on_error() does. The
// phase must make no call of all ranks: if a rank fails before such a call, the others wait for it, and their
// timeouts hide the cause.
template <class Phase>
auto together(Collective& collective, std::string_view what, Phase&& phase) {
  using Result = std::invoke_result_t<Phase>;
  std::exception_ptr failure;
  if constexpr (std::is_void_v<Result>) {
    try {
      const PhaseMark mark(what);
      phase();
    } catch (...) {
      failure = std::current_exception();
    }
    agree_on_error(collective, failure, what);
  } else {
    std::optional<Result> result;
    try {
      const PhaseMark mark(what);
      result.emplace(phase());
    } catch (...) {
      failure = std::current_exception();
    }
    agree_on_error(collective, failure, what);
    return Result(std::move(*result));
  }
}

}  // namespace plexaura
