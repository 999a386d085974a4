#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/exchange/collective.h"
#include "core/exchange/exchange_record.h"
#include "core/exchange/weights_immigration.h"

namespace plexaura {

// Measures the exchanges of a strategy for Strategy::take_exchange_record(). One thread may exchange while
// another one waits.
class ExchangeMeter {
 public:
  // `ranks` are the ranks that exchange, and must outlive this object. `clock` returns seconds.
  explicit ExchangeMeter(const Collective& ranks, double (*clock)() = seconds_now)
      : ranks_(ranks), clock_(clock) {}

  // While an object of this class lives, an exchange is under way, to which this rank contributes `bytes`.
  // Only one may live at a time.
  class Exchange {
   public:
    Exchange(ExchangeMeter& meter, std::int64_t bytes);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

   private:
    ExchangeMeter& meter_;
    std::int64_t bytes_;
    std::int64_t sent_before_;
  };

  // Adds bytes that the present exchange has sent by other means than `ranks`.
  void add_sent(std::int64_t bytes);

  // While an object of this class lives, the training thread waits for an exchange, which another thread may
  // make. Time in which no exchange is under way does not count as waiting.
  class Wait {
   public:
    explicit Wait(ExchangeMeter& meter) : meter_(meter), before_(meter.seconds_so_far()) {}
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    ExchangeMeter& meter_;
    double before_;
  };

  // Returns the exchanges since the last call. Must be called while no exchange is under way. Without
  // `overlaps` the training thread makes the exchanges itself, and their whole time counts as waiting.
  // Returns nothing if nothing was exchanged with other ranks.
  std::optional<ExchangeRecord> take(bool overlaps);

 private:
  double seconds_so_far();
  std::int64_t sent_so_far() const { return ranks_.bytes_sent().value_or(0); }

  const Collective& ranks_;
  double (*clock_)();
  std::mutex mutex_;  // guards the members below
  std::optional<double> began_;
  bool has_exchanged_ = false;  // true if something was exchanged with other ranks
  std::int64_t bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  double seconds_ = 0;
  double waited_seconds_ = 0;
};

// Returns the size of the parameters in each bucket, without padding and without the tail.
std::vector<std::int64_t> parameter_bytes(const WeightsImmigration& border);

// Returns the size of the weights and buffers, for strategies that exchange these instead of gradients.
std::int64_t weight_bytes(const WeightsImmigration& border);

}  // namespace plexaura
