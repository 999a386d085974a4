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

// What the engine and the trainer see of other ranks. All ranks call the same functions in the same order
// with the same sizes; a call that does not match is named before any data moves. Every call may wait for
// other ranks; every wait has the implementation's deadline and ends in a DeviceError (or the end of the
// process) that names `what` and the ranks that did not come, or in the error of a rank that has failed. After such an error the object is of no more
// use. `what` is a short phrase: "the loss of epoch 3", "bucket 2 of step 17". One thread at a time may call;
// the memory passed belongs to the caller and must stay until the call returns.
class PLEXAURA_API Collective {
 public:
  virtual ~Collective();

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sums `count` elements over all ranks in place. Added in an order that the number of ranks alone fixes, however
  // the data is cut into calls and wherever the ranks run. So the bits are the same on every rank and in every run.
  // (An implementation may offer faster ways that do not keep this promise, if it says so.) float64, float32, int64
  // (which wraps); UserError for other types.
  virtual void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;

  // Copies the root's bytes to everyone.
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) = 0;

  // Copies the bytes of rank `from`, which is not 0, to rank 0; `data` is theirs on both. The others give no memory, and
  // where the implementation can do without them, they return at once. Here they take part in a broadcast.
  virtual void bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what);

  // The bytes of the messages that this rank has sent in calls of this object; none where nobody counts them.
  virtual std::optional<std::int64_t> bytes_sent() const { return std::nullopt; }

  // How long a rank waits for another; infinite where no rank ever does.
  virtual double deadline_seconds() const { return std::numeric_limits<double>::infinity(); }

  // While it is on, whoever waits for other ranks in a call of any object of this process throws a DeviceError, and that
  // object is not used any more: for a thread that is to end when its work is of no use. Where waits cannot be
  // interrupted they last until their deadline. From any thread.
  virtual void interrupt_waits(bool /*on*/) {}

  // Everyone's text, in the order of ranks. Texts may differ in length.
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

// Marks an error that another rank reports. It comes mixed into an error of the same kind (see Remote), so
// handlers that catch UserError and the like, and exit_status(), work as they do where the error arose; only
// printing is left to that rank: see speaks().
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

// Whether this rank should print the error: of the ranks that end with one error, exactly one says so.
PLEXAURA_API bool speaks(const std::exception& error) noexcept;

// Ends a phase that may have failed on some ranks: where no rank brings an error, returns; otherwise throws
// on every rank. The lowest rank that failed rethrows its own error, and speaks. All others, whether they
// failed or not, throw a Remote of the same kind with that rank and its text, and do not speak; so all ranks
// leave with the same exit status. An exception that is no plexaura::Error counts as an InternalError;
// std::bad_alloc as a DeviceError.
PLEXAURA_API void agree_on_error(Collective& collective, const std::exception_ptr& mine,
                                 std::string_view what);

// While one lives, this thread runs what other ranks may have failed in: they come to no call of all ranks then.
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

// For what implements a Collective, before a call does anything: throws InternalError within a phase of this thread.
// The object is as good as before then, so that the ranks can agree on the error.
PLEXAURA_API void refuse_in_phase(std::string_view what);

// Runs a phase that some ranks may fail in, gives its result, and leaves as agree_on_error() does. The phase makes
// no call of all ranks: one that had failed before it would leave the others waiting, and they would hide why.
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
