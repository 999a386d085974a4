#include "training/data/arrays/hdf5_file.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

#ifdef PLEXAURA_HDF5
#include <hdf5.h>
#include <string>
#include <vector>
#endif

namespace plexaura::testing::hdf5_file_test {

#ifndef PLEXAURA_HDF5

TEST_CASE("a build without HDF5 says which package it lacks") {
  CHECK(user_error([] {
          Hdf5File("mine.h5");
        }).starts_with("mine.h5: this build cannot read HDF5; install libhdf5-dev"));
}

#else

namespace {

// An HDF5 file that a test writes.
class WrittenFile {
 public:
  explicit WrittenFile(const std::filesystem::path& path, hsize_t user_block = 0) {
    const hid_t plan = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(plan, user_block);
    file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, plan, H5P_DEFAULT);
    H5Pclose(plan);
  }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  ~WrittenFile() { H5Fclose(file_); }

  // Writes elements of the type `memory` as `stored`, in chunks that are compressed if `chunk` is not empty.
  void write(const std::string& name, hid_t stored, hid_t memory, const std::vector<hsize_t>& extents,
             const void* values, const std::vector<hsize_t>& chunk = {}) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty()) {
      H5Pset_chunk(plan, static_cast<int>(chunk.size()), chunk.data());
      H5Pset_deflate(plan, 4);
    }
    const hid_t groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(groups, 1);
    const hid_t dataset = H5Dcreate2(file_, name.c_str(), stored, space, groups, plan, H5P_DEFAULT);
    if (values != nullptr) H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Pclose(groups);
    H5Pclose(plan);
    H5Sclose(space);
  }

 private:
  hid_t file_;
};

const std::vector<float> numbers{1, 2, 3, 4, 5, 6};

std::vector<float> floats_of(const NpyArray& array) {
  std::vector<float> values(static_cast<std::size_t>(array.elements()));
  array.read_floats(0, values);
  return values;
}

hid_t text_type() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  return type;
}

}  // namespace

TEST_CASE("datasets are read as arrays, in chunks or not, in either byte order") {
  const TemporaryFolder folder;
  {
    WrittenFile file(folder / "a.h5");
    const std::vector<std::uint8_t> bytes{1, 2, 3, 4};
    const std::vector<const char*> texts{"red", "blue", ""};
    file.write("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {3, 2}, numbers.data());
    file.write("group/swapped", H5T_IEEE_F64BE, H5T_NATIVE_FLOAT, {6}, numbers.data());
    file.write("whole", H5T_STD_I16BE, H5T_NATIVE_FLOAT, {6}, numbers.data());
    file.write("chunks", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {3, 2}, numbers.data(), {2, 2});
    file.write("images", H5T_STD_U8LE, H5T_NATIVE_UINT8, {1, 2, 2}, bytes.data());
    const hid_t text = text_type();
    file.write("texts", text, text, {3}, texts.data());
    H5Tclose(text);
  }
  const Hdf5File file(folder / "a.h5");
  CHECK(file.open("x").extents() == std::vector<std::int64_t>{3, 2});
  for (const char* name : {"x", "group/swapped", "whole", "chunks"})
    CHECK(floats_of(file.open(name)) == numbers);
  CHECK(file.open("whole").type().descr == ">i2");
  CHECK(file.open("images").type().descr == "|u1");
  CHECK(file.open("texts").texts() == std::vector<std::string>{"red", "blue", ""});
}

TEST_CASE("datasets after a user block are read at their places") {
  const TemporaryFolder folder;
  {
    WrittenFile file(folder / "a.h5", 512);
    file.write("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {6}, numbers.data());
  }
  CHECK(floats_of(Hdf5File(folder / "a.h5").open("x")) == numbers);
}

TEST_CASE("files and datasets that cannot be read are refused in a sentence") {
  const TemporaryFolder folder;
  {
    WrittenFile file(folder / "a.h5");
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    file.write("pairs", pair, pair, {1}, nullptr);
    H5Tclose(pair);
    file.write("huge", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {hsize_t{1} << 35}, nullptr, {1 << 10});
    file.write("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {6}, numbers.data());
  }
  const Hdf5File file(folder / "a.h5");
  CHECK(user_error([&] { file.open("y"); }).ends_with("a.h5: has no dataset 'y'; it has huge, pairs, x"));
  CHECK(user_error([&] { file.open("pairs"); }).find("a.h5:pairs: its elements are neither numbers") !=
        std::string::npos);
  CHECK(user_error([&] { file.open("huge"); })
            .ends_with("a.h5:huge: has 137438953472 bytes of elements, of which the file stores 0; write all "
                       "of them"));
  const auto refusal = [&](const std::string& text) {
    folder.write("b.h5", text);
    return user_error([&] { Hdf5File(folder / "b.h5"); });
  };
  CHECK(refusal("x,y\n1,2\n")
            .ends_with("b.h5: is no HDF5 file; name another file, or set data.format to that of its data"));
  std::ifstream whole(folder / "a.h5", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  CHECK(refusal(bytes.substr(0, bytes.size() - 20)).find("b.h5: is cut off or damaged") != std::string::npos);
  CHECK(user_error([&] { Hdf5File(folder / "none.h5"); }).find("none.h5") != std::string::npos);
}

#endif

}  // namespace plexaura::testing::hdf5_file_test
