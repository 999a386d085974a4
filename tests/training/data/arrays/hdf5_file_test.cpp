#include "training/data/arrays/hdf5_file.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

#ifdef PLEXAURA_HDF5
#include <hdf5.h>
#include <string>
#include <vector>

#include "tests/training/data/arrays/hdf5_writer.h"
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
    Hdf5Writer file(folder / "a.h5");
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
    Hdf5Writer file(folder / "a.h5", 512);
    file.write("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {6}, numbers.data());
  }
  CHECK(floats_of(Hdf5File(folder / "a.h5").open("x")) == numbers);
}

TEST_CASE("a dataset of another file, to which an external link leads, is read from that file") {
  const TemporaryFolder folder;
  {
    Hdf5Writer other(folder / "other.h5");
    other.write("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {6}, numbers.data());
    Hdf5Writer file(folder / "a.h5");
    const std::vector<float> zeros(2000);
    file.write("zeros", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {2000}, zeros.data());
    file.link("linked", "other.h5", "x");
  }
  CHECK(floats_of(Hdf5File(folder / "a.h5").open("linked")) == numbers);
}

TEST_CASE("files and datasets that cannot be read are refused in a sentence") {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
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
