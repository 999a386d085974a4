#include "training/data/images/cifar.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::cifar_test {

namespace {

constexpr std::size_t pixels = 3072;

std::string record(const std::string& labels, char value) { return labels + std::string(pixels, value); }

void write_ten(const TemporaryFolder& folder) {
  folder.write("batches.meta.txt", "airplane\nautomobile\n\n");
  for (const char batch : {'1', '2', '3', '4', '5'})
    folder.write(std::string("data_batch_") + batch + ".bin", record({'\1'}, batch));
  folder.write("test_batch.bin", record({'\0'}, 't') + record({'\1'}, 'u'));
}

std::string error_of(const TemporaryFolder& folder, CifarLabels labels = CifarLabels::fine) {
  return user_error([&] { CifarDataset(folder.path(), CifarPart::train, labels); });
}

}  // namespace

TEST_CASE("CIFAR-10 is read from its batches") {
  const TemporaryFolder folder;
  write_ten(folder);
  const CifarDataset train(folder.path(), CifarPart::train);
  CHECK(train.size() == 5);
  CHECK(train.class_names() == std::vector<std::string>{"airplane", "automobile"});
  std::vector<std::uint8_t> sample(pixels);
  std::int64_t label = -1;
  train.read(2, {}, sample, label);
  CHECK(label == 1);
  CHECK(sample == std::vector<std::uint8_t>(pixels, '3'));
  CHECK(labels_of(CifarDataset(folder.path(), CifarPart::test)) == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("CIFAR-100 has fine and coarse labels") {
  const TemporaryFolder folder;
  folder.write("coarse_label_names.txt", "fish\nflowers\n");
  folder.write("fine_label_names.txt", "orchid\nray\nrose\n");
  folder.write("train.bin", record({'\1', '\2'}, 'x'));
  const CifarDataset fine(folder.path(), CifarPart::train);
  CHECK(fine.class_names()[static_cast<std::size_t>(fine.label(0))] == "rose");
  const CifarDataset coarse(folder.path(), CifarPart::train, CifarLabels::coarse);
  CHECK(coarse.class_names()[static_cast<std::size_t>(coarse.label(0))] == "flowers");
}

TEST_CASE("broken files of CIFAR are refused in a sentence with file, record and offset") {
  const TemporaryFolder folder;
  CHECK(contains(error_of(folder), "has neither data_batch_1.bin (CIFAR-10) nor train.bin (CIFAR-100)"));
  folder.write("train/a/1.png", "");
  CHECK(contains(error_of(folder),
                 "has a folder 'train' and no file of CIFAR; for images in train/CLASS set "
                 "data.format to image_folder"));
  std::filesystem::remove_all(folder / "train");
  folder.write("data_batch_1", "a pickle");
  CHECK(contains(error_of(folder), "in the version for Python, whose pickles are not read"));
  write_ten(folder);
  CHECK(contains(error_of(folder, CifarLabels::coarse), "has CIFAR-10, which has no coarse labels"));
  folder.write("data_batch_4.bin", record({'\0'}, 'x') + record({'\7'}, 'y'));
  CHECK(contains(error_of(folder),
                 "data_batch_4.bin: record 1 (offset 3073) has label 7, but there are names of 2"));
  folder.write("data_batch_4.bin", record({'\0'}, 'x').substr(1));
  CHECK(contains(error_of(folder),
                 "data_batch_4.bin: has 3072 bytes, which is no whole number of records of 3073"));
  folder.write("batches.meta.txt", "\n");
  CHECK(contains(error_of(folder), "batches.meta.txt: has no name of a class"));
}

}  // namespace plexaura::testing::cifar_test
