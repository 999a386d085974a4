#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/exchange/collective.h"
#include "core/exchange/weights_immigration.h"

namespace plexaura {

// Counts what a strategy exchanges, for Strategy::take_exchange_record(). One thread may exchange while another one waits.
class ExchangeMeter {
 public:
  // `ranks`: with whom it exchanges; it must outlive this. `clock` gives seconds.
  explicit ExchangeMeter(const Collective& ranks, double (*clock)() = seconds_now)
      : ranks_(ranks), clock_(clock) {}

  // While one lives, an exchange is under way, to which this rank brings so many bytes. One at a time.
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

  // Beside what `ranks` has sent: bytes of the exchange that is under way.
  void add_sent(std::int64_t bytes);

  // While one lives, the thread that trains waits for an exchange that another thread makes. What it waits before the
  // exchange begins does not count.
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

  // Since the last call, while nothing is under way. Where it does not overlap, the thread that trains makes the exchange itself,
  // and waits all the time. None where nothing was exchanged with other ranks.
  std::optional<ExchangeRecord> take(bool overlaps);

 private:
  double seconds_so_far();
  std::int64_t sent_so_far() const { return ranks_.bytes_sent().value_or(0); }

  const Collective& ranks_;
  double (*clock_)();
  std::mutex mutex_;  // of what follows
  std::optional<double> began_;
  bool has_exchanged_ = false;  // with others
  std::int64_t bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  double seconds_ = 0;
  double waited_seconds_ = 0;
};

// Of each bucket what it holds of parameters: without padding, and without the tail.
std::vector<std::int64_t> parameter_bytes(const WeightsImmigration& border);

// The same of the weights and buffers that are exchanged in the place of gradients.
std::int64_t weight_bytes(const WeightsImmigration& border);

}  // namespace plexaura
