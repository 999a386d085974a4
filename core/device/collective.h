#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/export.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// What the engine and the trainer see of other ranks. All ranks call the same functions in the same order. Every call may
// wait for other ranks; every wait has the implementation's deadline and ends in a DeviceError (or the end of the process)
// that names `what` and the ranks that did not come. `what` is a short phrase: "the loss of epoch 3", "bucket 2 of step 17".
class PLEXAURA_API Collective {
 public:
  virtual ~Collective();

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sums `count` elements over all ranks in place. Added in the order of ranks: the same bits on every rank and in every run.
  // float64, float32, int64.
  virtual void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) = 0;

  // Copies the root's bytes to everyone.
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) = 0;

  // Everyone's text, in the order of ranks.
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

// Ends a phase that may have failed on some ranks: where no rank brings an error, returns; otherwise throws on every rank. The
// ranks that failed rethrow their own error; the others throw one of the same kind that names the first failed rank and its
// text. Of all ranks one should print: the one for which `speaks_for_error` is true.
PLEXAURA_API void agree_on_error(Collective& collective, std::exception_ptr mine, std::string_view what);

}  // namespace plexaura
