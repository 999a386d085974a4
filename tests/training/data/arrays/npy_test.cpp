#include "training/data/arrays/npy.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/tensor/dtype.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/data/arrays/npy_text.h"

namespace plexaura::testing::npy_test {

namespace {

NpyArray array_of(const std::string& text) {
  return NpyArray(ByteRange("x.npy", std::vector<std::uint8_t>(text.begin(), text.end())));
}

std::vector<float> floats_of(const NpyArray& array) {
  std::vector<float> values(static_cast<std::size_t>(array.elements()));
  array.read_floats(0, values);
  return values;
}

std::vector<float> floats_in(const std::string& text) { return floats_of(array_of(text)); }

}  // namespace

TEST_CASE("numbers of every type are read as float32") {
  const std::vector<float> expected{1, 2};
  CHECK(floats_in(npy_of<double>("<f8", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<float>("<f4", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<float16>("<f2", "(2,)", {float16(1), float16(2)})) == expected);
  CHECK(floats_in(npy_of<std::int8_t>("|i1", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::uint8_t>("|u1", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::int16_t>("<i2", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::uint16_t>("<u2", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::int32_t>("<i4", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::uint32_t>("<u4", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::int64_t>("<i8", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<std::uint64_t>("<u8", "(2,)", {1, 2})) == expected);
  CHECK(floats_in(npy_of<bool>("|b1", "(2,)", {false, true})) == std::vector<float>{0, 1});
  CHECK(floats_in(npy_text("'>i2'", "(2,)", std::string("\0\1\0\2", 4))) == expected);
  CHECK(floats_in(npy_text("'>f4'", "(1,)", std::string("\x3f\x80\0\0", 4))) == std::vector<float>{1});
  CHECK(array_of(npy_of<std::int64_t>("<i8", "(2,)", {-5, 7})).whole_numbers() ==
        std::vector<std::int64_t>{-5, 7});
}

TEST_CASE("an array is read at its place in a file") {
  const TemporaryFolder folder;
  const std::string text = npy_of<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
  const NpyArray array(ByteRange(folder.write("a.npy", text)));
  CHECK(array.extents() == std::vector<std::int64_t>{3, 2});
  CHECK(array.elements() == 6);
  CHECK(array.row_elements() == 2);
  std::vector<float> row(2);
  array.read_floats(4, row);
  CHECK(row == std::vector<float>{5, 6});
}

TEST_CASE("text is read as UTF-8") {
  CHECK(array_of(npy_of<char>("|S3", "(2,)", {'a', 'b', 'c', 'd', 0, 0})).texts() ==
        std::vector<std::string>{"abc", "d"});
  CHECK(array_of(npy_of<std::uint32_t>("<U2", "(2,)", {'a', 0xe4, 0x20ac, 0x1f600})).texts() ==
        std::vector<std::string>{"aä", "€😀"});
}

TEST_CASE("broken arrays are refused in a sentence with file and place") {
  const auto error = [](const std::string& text) { return user_error([&] { array_of(text); }); };
  CHECK(error("no numpy") == "x.npy: does not begin as a file of numpy; save the array with numpy.save()");
  CHECK(error(npy_of<float>("<f4", "(2,)", {1}))
            .ends_with(
                "has 4 bytes of elements from offset 68 on, but its header needs 8; make or fetch it again"));
  CHECK(error(npy_of<float>("<f4", "(4611686018427387904, 4611686018427387904)", {1}))
            .find("its header needs") != std::string::npos);
  CHECK(error(npy_text("'<f4'", "(2,)").substr(0, 30)) ==
        "x.npy: ends at offset 30, within its header; make or fetch it again");
  CHECK(error(npy_text("'<f4'", "(-2,)")) == "x.npy: its header is not one of numpy");
  CHECK(error(npy_text("'<f4'", "(2,)", "", "True")).find("in Fortran's order") != std::string::npos);
  CHECK(error(npy_text("'|O'", "(2,)")).find("its header is not one of numpy") != std::string::npos);
  CHECK(error(npy_text("'|O8'", "(2,)")).find("only a pickle could restore") != std::string::npos);
  CHECK(error(npy_text("'<c8'", "(2,)")).find("its elements are '<c8'") != std::string::npos);
  CHECK(error(npy_text("[('a', '<f4')]", "(2,)")).find("records of several fields") != std::string::npos);
}

TEST_CASE("numbers that float32 cannot hold are refused with their offset") {
  const auto error = [](const std::string& text) { return user_error([&] { floats_in(text); }); };
  CHECK(error(npy_of<double>("<f8", "(2,)", {1, 1e300}))
            .find("x.npy: element 1 (offset 76) is 1e+300, which is not "
                  "finite") != std::string::npos);
  CHECK(error(npy_of<float>("<f4", "(1,)", {std::nanf("")})).find("is nan") != std::string::npos);
  CHECK(error(npy_of<std::int32_t>("<i4", "(1,)", {16777217}))
            .find("is 16777217, which float32 does not hold exactly") != std::string::npos);
  CHECK(error(npy_of<char>("|S1", "(1,)", {'a'})).find("its elements are text") != std::string::npos);
  CHECK(user_error([] {
          array_of(npy_of<float>("<f4", "(1,)", {1})).whole_numbers();
        }).find("give whole numbers") != std::string::npos);
  CHECK(user_error([] {
          array_of(npy_of<std::uint64_t>("<u8", "(1,)", {~std::uint64_t{0}})).whole_numbers();
        }).find("2^63 or more") != std::string::npos);
}

}  // namespace plexaura::testing::npy_test
