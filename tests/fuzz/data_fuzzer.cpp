// Lets libFuzzer choose the bytes of files of data: see tests/fuzz/data.sh.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/support/temporary_folder.h"
#include "training/data/arrays/array_samples.h"
#include "training/data/arrays/zip_file.h"
#include "training/data/shards/shard_index.h"

namespace {

using namespace plexaura;

// Calls `use`. Ignores a UserError, which is the right answer to a wrong file.
template <class Use>
void try_to(const Use& use) {
  try {
    use();
  } catch (const UserError&) {
  }
}

void read_array(const ByteRange& file) {
  const NpyArray array(file);
  constexpr std::int64_t most = 1 << 16;
  std::vector<float> values(static_cast<std::size_t>(std::min(array.elements(), most)));
  try_to([&] { array.read_floats(0, values); });
  if (array.elements() > most) return;
  try_to([&] { array.whole_numbers(); });
  try_to([&] { array.texts(); });
  try_to([&] { read_labels(array, {}); });
  try_to([&] {
    const ArrayImages images(array, read_labels(array, {}), ChannelAxis::last);
    std::vector<std::uint8_t> sample(static_cast<std::size_t>(images.sample_shape().elements()));
    std::int64_t label = 0;
    images.read(images.size() - 1, {}, sample, label);
  });
}

// Reads an index, and the same index with the checksum that its bytes have, so that more than the checksum is tested.
void read_index(std::vector<std::uint8_t> bytes) {
  try_to([&] { read_shard_index(ByteRange("fuzz.index", bytes)); });
  if (bytes.size() < 4) return;
  const std::span<std::uint8_t> covered(bytes.data(), bytes.size() - 4);
  const std::uint32_t sum = record_checksum(std::as_bytes(covered));
  for (std::size_t i = 0; i < 4; ++i) bytes[covered.size() + i] = static_cast<std::uint8_t>(sum >> 8 * i);
  try_to([&] { read_shard_index(ByteRange("fuzz.index", bytes)); });
  try_to(
      [&] { check_shard_end(ByteRange("fuzz.shard", bytes), {.bytes = bytes.size() - 24, .identity = 1}); });
}

void read_archive(const std::vector<std::uint8_t>& bytes) {
  static const plexaura::testing::TemporaryFolder folder;
  const auto path = folder.write("fuzz.npz", bytes);
  const ZipFile archive(path);
  for (const std::string& name : archive.names()) try_to([&] { read_array(archive.open(name)); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  const std::vector<std::uint8_t> file(bytes, bytes + count);
  try_to([&] { read_array(ByteRange("fuzz.npy", file)); });
  try_to([&] { read_index(file); });
  try_to([&] { read_archive(file); });
  return 0;
}
