#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/report/console.h"
#include "training/files/json_log.h"
#include "training/loop/trainer.h"

namespace plexaura {

// What a person sees of a run, and the JSON log beside it. Made on every rank; only the one that speaks shows
// anything.
class RunReport final : public TrainingObserver {
 public:
  // `log`: a file of JSON lines, empty for none.
  RunReport(bool speaks, const std::string& log, std::int64_t epochs);
  ~RunReport() override;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  void step(const StepRecord& record, std::int64_t steps_in_epoch) override;
  void epoch(const EpochRecord& record) override;
  // From now on this rank is the one that speaks: another one did before, and was lost. Where it cannot open the log it says so, and
  // goes on without.
  void speak(const std::string& log);
  void say(const std::string& line);  // as printable() shows it
  void log(std::span<const JsonField> fields);
  void show(const std::string& text);  // several lines, as they are

  // The table at the end.
  void summary(const TrainingResult& result, const ParameterStore& store, const std::string& log,
               const std::string& checkpoints);

 private:
  std::string progress(const StepRecord& record, std::int64_t done, std::int64_t all);

  bool speaks_;
  Console console_;
  std::size_t columns_;  // of the terminal; 0: there is none
  std::optional<JsonLog> log_;
  std::int64_t epochs_;
  double last_line_ = 0;
  std::int64_t shown_epoch_ = -1;  // of the last line
  bool line_is_open_ = false;      // on a terminal, with a progress bar
  // Where the clock of an epoch was started, to tell the time left.
  std::int64_t clocked_epoch_ = -1;
  std::int64_t clocked_step_ = 0;
  double clocked_at_ = 0;
  StepRecord last_step_;
};

// "validation loss 0.1234  validation accuracy 97.00 %"
std::string validation_text(double loss, const std::vector<MetricValue>& metrics);

// "exchanged 41.7 MB in 521 ms (80.0 MB/s)  sent 20.9 MB  waited 104 ms  overlap 80 %"
std::string exchange_text(const ExchangeRecord& record);

// "the others waited 1.20 s for rank 3"
std::string straggler_text(const RankWaits::Straggler& straggler);

// "1.25 GB"
std::string bytes_text(double bytes);

// "12.3 ms" or "4.56 s"
std::string seconds_text(double seconds);

}  // namespace plexaura
