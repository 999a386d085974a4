#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "training/files/file.h"
#include "training/files/records.h"

namespace plexaura {

// An event file of TensorBoard with the figures of a run. Its format is TFRecord, and each record is a message `Event` of
// TensorFlow's event.proto. The tags are train/loss, train/METRIC, train/learning_rate and train/samples_per_second for
// steps, and train/epoch_loss, validation/loss and validation/METRIC for epochs. TensorBoard's step is the number of
// updates so far. Figures that are not finite are written, too, except for those of a validation whose loss is NaN, as
// without validation.
// The file has a name of its own in the folder, after those of the files that are there, so that several runs may write to
// one folder. When a run is resumed, TensorBoard drops the figures of the earlier run from the first new step on.
// Each record is passed to the system before the call returns. Throws UserError if the file cannot be created or the
// disk is full, and DeviceError with the file's name if the disk fails. One thread at a time may use it.
class TensorBoardLog {
 public:
  // Creates the folder if it does not exist.
  explicit TensorBoardLog(const std::filesystem::path& folder);

  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Figure {
    std::string tag;
    double value;
  };

  void write_figures(std::int64_t step, const std::vector<Figure>& figures);
  // Writes a record: an Event with the time, this step, and the fields that `fill` writes to a WireWriter.
  template <class Fill>
  void write_event(std::int64_t step, const Fill& fill);

  std::filesystem::path path_;
  FileDescriptor file_;
  bool has_begun_ = false;  // the record that drops the figures of an earlier run was written
};

// CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum of TFRecord.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace plexaura
