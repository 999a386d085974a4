#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/report/console.h"
#include "training/files/json_log.h"
#include "training/files/tensorboard_log.h"
#include "training/loop/trainer.h"

namespace plexaura {

// The places where the figures of a run are written. An empty path writes nothing.
struct RecordFiles {
  std::string log;          // path of the file of JSON lines
  std::string tensorboard;  // folder for event files of TensorBoard
};

// Writes the reports of a run: the output for the user, the JSON log, and the event file for TensorBoard.
// Every rank has such an object, but only one rank, the speaking one, shows and writes anything.
class RunReport final : public TrainingObserver {
 public:
  RunReport(bool speaks, const RecordFiles& files, std::int64_t epochs);
  ~RunReport() override;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  void step(const StepRecord& record, std::int64_t steps_in_epoch) override;
  void epoch(const EpochRecord& record) override;
  // Makes this rank the speaking one, because the former one was lost. If it cannot open a file, it prints an
  // error and continues without this file.
  void speak(const RecordFiles& files);
  // Shows a line, in the form that printable() returns. Ignores an empty one.
  void say(const std::string& line);
  void log(std::span<const JsonField> fields);
  void show(const std::string& text);  // shows several lines, unchanged

  // Shows the table at the end of a run.
  void summary(const TrainingResult& result, const ParameterStore& store, const std::string& log,
               const TrainerOptions& options);

 private:
  std::string progress(const StepRecord& record, std::int64_t done, std::int64_t all);

  bool speaks_;
  Console console_;
  std::size_t columns_;  // number of columns of the terminal; 0: there is no terminal
  std::optional<JsonLog> log_;
  std::optional<TensorBoardLog> tensorboard_;
  std::int64_t epochs_;
  double last_line_ = 0;
  std::int64_t shown_epoch_ = -1;  // epoch of the last line that was shown
  bool line_is_open_ = false;      // true while a progress bar is shown on a terminal
  // The epoch, step and time at which the measurement of an epoch's time began. The time left is estimated
  // from them.
  std::int64_t clocked_epoch_ = -1;
  std::int64_t clocked_step_ = 0;
  double clocked_at_ = 0;
  StepRecord last_step_;
};

// Returns a text such as "validation loss 0.1234  validation accuracy 97.00 %", or "no validation" for a loss of NaN.
std::string validation_text(double loss, const std::vector<MetricValue>& metrics);

// Returns a text such as "exchanged 41.7 MB in 521 ms (80.0 MB/s)  sent 20.9 MB  waited 104 ms  overlap 80
// %".
std::string exchange_text(const ExchangeRecord& record);

// Returns a text such as "the others waited 1.20 s for rank 3".
std::string straggler_text(const RankWaits::Straggler& straggler);

// Returns a warning about parameters that the first or the second step did not train. `dead` is
// StepRecord::dead_gradients.
std::string dead_gradients_sentence(const std::vector<std::string>& dead);

// Returns a text such as "1.25 GB".
std::string bytes_text(double bytes);

// Returns a sentence such as "op softmax runs on the host: the backend 'cuda' has no kernel for it".
std::string host_op_sentence(const std::string& op, const Backend& backend);

// Returns a text such as "12.3 ms" or "4.56 s".
std::string seconds_text(double seconds);

}  // namespace plexaura
