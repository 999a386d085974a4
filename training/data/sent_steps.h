#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/courier.h"
#include "training/data/loader.h"

namespace plexaura {

// A stream of a courier. The destructor closes it, also after an error.
class SampleStream {
 public:
  // `courier` is null if each rank reads its own samples.
  SampleStream(Courier* courier, Courier::Stream stream) : courier_(courier), stream_(stream) {}
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  bool has_courier() const { return courier_ != nullptr; }
  // Forwards to Courier::send().
  void send(int to, std::span<const std::byte> parcel) { courier_->send(stream_, to, parcel); }
  std::optional<std::vector<std::byte>> receive(std::string_view what);
  // Closes the stream. Called on rank 0.
  void close();

 private:
  Courier* courier_;
  Courier::Stream stream_;
  bool closed_ = false;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

// Returns this rank's source of steps: a Loader if the stream has no courier. Otherwise rank 0 reads the
// parts of all ranks, one step ahead of its own, and sends them; on other ranks, `samples` only describes the
// samples, and none is read from it. If rank 0 cannot read a sample, next() throws on all ranks in the same
// step, and rank 0 reports the reason. The stream must outlive the source.
std::unique_ptr<StepSource> make_steps(std::shared_ptr<const SampleSource> samples,
                                       const LoaderOptions& options, SampleStream& stream);

}  // namespace plexaura
