#include "training/files/safetensors.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <string>

#include "tests/support/error_text.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::safetensors_test {

namespace {

SafeTensors one_of_each() {
  SafeTensors contents;
  contents.tensors.emplace_back("flags", Tensor::of<bool>({3}, {true, false, true}));
  contents.tensors.emplace_back("bytes", Tensor::of<std::uint8_t>({2}, {0, 255}));
  contents.tensors.emplace_back("double", Tensor::of<double>({2, 1}, {0.1, -1e300}));
  contents.tensors.emplace_back("float",
                                Tensor::of<float>({1, 2}, {1.5F, std::numeric_limits<float>::quiet_NaN()}));
  contents.tensors.emplace_back("bfloat", Tensor::of<bfloat16>({1}, {bfloat16(3.0F)}));
  contents.tensors.emplace_back("half", Tensor::of<float16>({1}, {float16(-2.5F)}));
  contents.tensors.emplace_back("long", Tensor::scalar<std::int64_t>(-7));
  contents.tensors.emplace_back("int", Tensor::of<std::int32_t>({2}, {1, -1}));
  contents.tensors.emplace_back("empty", Tensor::of<float>({0, 4}, {}));
  contents.metadata = {{"format", "pt"}, {"note", "ü \"\n"}};
  return contents;
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (std::size_t byte = 0; byte < 8; ++byte)
    length[byte] = static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return length + header + data;
}

// Returns the error of reading such a file, without the file's name and the part that is always the same.
std::string error_of(const std::string& header, const std::string& data) {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  write_text(path, file_of(header, data));
  std::string text = user_error([&] { read_safetensors(path); });
  const std::string start = "'" + path + "': ";
  const std::string end = "; the file is damaged or not a safetensors file";
  REQUIRE(text.starts_with(start));
  text.erase(0, start.size());
  if (text.ends_with(end)) text.resize(text.size() - end.size());
  return text;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("a":{{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

std::string object(const std::string& members) { return fmt::format("{{{}}}", members); }

}  // namespace

TEST_CASE("what is written is read: names, order, types, bits, metadata") {
  const TemporaryFolder folder;
  const SafeTensors contents = one_of_each();
  write_safetensors(folder / "f", contents);
  const SafeTensors read = read_safetensors(folder / "f");
  CHECK(read.metadata == contents.metadata);
  REQUIRE(read.tensors.size() == contents.tensors.size());
  for (std::size_t index = 0; index < read.tensors.size(); ++index) {
    CHECK(read.tensors[index].first == contents.tensors[index].first);
    CHECK(read.tensors[index].second == contents.tensors[index].second);
  }
}

TEST_CASE("an empty file and a page of the web are told so") {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  write_text(path, "");
  CHECK(user_error([&] { read_safetensors(path); }) == "'" + path + "' is empty; fetch or copy it again");
  write_text(path, "<!DOCTYPE html><html>not found</html>");
  CHECK(user_error([&] { read_safetensors(path); }) ==
        "'" + path +
            "' looks like a page of the web (HTML or XML) and not like a safetensors file; fetch it again");
}

TEST_CASE("the header alone tells names, types and metadata") {
  const TemporaryFolder folder;
  const SafeTensors contents = one_of_each();
  write_safetensors(folder / "f", contents);
  const SafeTensorsHeader header = read_safetensors_header(folder / "f");
  CHECK(header.metadata == contents.metadata);
  REQUIRE(header.types.size() == contents.tensors.size());
  CHECK(header.types[2] == std::pair<std::string, TensorType>("double", {DType::float64, {2, 1}}));
}

TEST_CASE("the bytes are determined by the contents, aligned, and as the format says") {
  const TemporaryFolder folder;
  SafeTensors contents;
  contents.tensors.emplace_back("b", Tensor::of<std::uint8_t>({1}, {7}));
  contents.tensors.emplace_back("a", Tensor::of<std::int32_t>({1, 1}, {0x01020304}));
  write_safetensors(folder / "f", contents);
  write_safetensors(folder / "g", contents);
  const std::string header =
      R"({"__metadata__":{"checksum.fnv1a64":"3614ae384f78f132"},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"a":{"dtype":"I32","shape":[1,1],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(read_text(folder / "f") == file_of(padded, std::string("\x04\x03\x02\x01\x07")));
  CHECK(read_text(folder / "g") == read_text(folder / "f"));
}

TEST_CASE("a file without tensors") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", {});
  CHECK(read_text(folder / "f") ==
        file_of(R"({"__metadata__":{"checksum.fnv1a64":"cbf29ce484222325"}})", ""));
  CHECK(read_safetensors(folder / "f").tensors.empty());
}

TEST_CASE("a full disk keeps the old file") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", {});
  SafeTensors large;
  large.tensors.emplace_back("w", Tensor(TensorType{DType::float32, {10000}}));
  std::string text;
  {
    const FullDisk full(4096);
    text = user_error([&] { write_safetensors(folder / "f", large); });
  }
  CHECK(text ==
        "cannot write '" + (folder / "f").string() + "': File too large; free space or name another place");
  CHECK(read_safetensors(folder / "f").tensors.empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("names that the format cannot hold are refused before anything is written") {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  const auto error_for = [&](const std::vector<std::string>& names) {
    SafeTensors contents;
    for (const std::string& name : names) contents.tensors.emplace_back(name, Tensor());
    return user_error([&] { write_safetensors(path, contents); });
  };
  const std::string start = "cannot write '" + path + "': ";
  CHECK(error_for({"a", "b", "a"}) == start + "the tensor name 'a' is given twice");
  CHECK(error_for({"__metadata__"}) == start + "the tensor name '__metadata__' is reserved by the format");
  CHECK(error_for({"\xff"}) == start + "a tensor name or a text of its metadata is not UTF-8");
  CHECK(folder.files() == 0);
}

TEST_CASE("files that are too short or no files") {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  const std::string end = "; the file is damaged or not a safetensors file";
  CHECK(user_error([&] { read_safetensors(path); }) ==
        "cannot read '" + path + "': No such file or directory; check the path and its permissions");
  write_text(path, "1234567");
  CHECK(user_error([&] { read_safetensors(path); }) ==
        "'" + path + "' has 7 bytes, too few for a safetensors file");
  write_text(path, std::string("\x03\0\0\0\0\0\0\0{}", 10));
  CHECK(user_error([&] { read_safetensors(path); }) ==
        "'" + path + "': a header of 3 bytes does not fit in a file of 10" + end);
}

TEST_CASE("a file of another format is told so, whatever number its first bytes make") {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  for (const std::string& begin : {std::string("\x93NUMPY\x01\0v\0", 10), std::string("\x89HDF\r\n\x1a\n"),
                                   std::string("\x1f\x8b\x08\x08\x12\x34\x56\x67"),
                                   std::string("version https://git-lfs.github.com/spec/v1"),
                                   std::string("5.1,3.5,1.4,0.2,setosa"), std::string(8, '\xff')}) {
    CAPTURE(begin);
    write_text(path, begin);
    CHECK(user_error([&] { read_safetensors(path); }) ==
          "'" + path +
              "' begins with something other than a safetensors header: it is of another format or damaged; "
              "convert it to safetensors, or fetch it again");
  }
}

TEST_CASE("a file of PyTorch's own is told from a damaged one") {
  const TemporaryFolder folder;
  const std::string path = (folder / "resnet18.pth").string();
  for (const std::string& begin :
       {std::string("PK\x03\x04\0\0\x08\x08\0\0", 10), std::string("\x80\x02\x8a\nl\xfc\x9c"
                                                                   "F\xf9 j",
                                                                   11)}) {
    write_text(path, begin);
    CHECK(user_error([&] { read_safetensors(path); }) ==
          "'" + path +
              "' looks like a file of PyTorch's (.pth), not of safetensors; convert it in Python with "
              "safetensors.torch.save_file(torch.load('" +
              path + "'), '" + path + ".safetensors')");
  }
}

TEST_CASE("headers that are not the table they should be") {
  CHECK(error_of("", "") == "the header does not begin with '{'");
  CHECK(error_of("[]", "") == "the header does not begin with '{'");
  CHECK(error_of("{", "").starts_with("the header is not valid JSON ("));
  CHECK(error_of("{} x", "").starts_with("the header is not valid JSON ("));
  for (const std::string& end : {std::string(1, '\0'), std::string("\0 x", 3), std::string(" \0{}", 4)})
    CHECK(error_of("{}" + end, "") == "the header contains a zero byte");
  CHECK(error_of("{\"\xff\":1}", "").starts_with("the header is not valid JSON ("));
  CHECK(error_of(R"({"a":)" + std::string(100000, '['), "") == "the header is nested too deeply");
  CHECK(error_of(object(entry("U8", "[[8]]", "[0,8]")), "12345678") == "the header is nested too deeply");
  CHECK(error_of(R"({"__metadata__":[]})", "") == "__metadata__ is not a map of texts");
  CHECK(error_of(R"({"__metadata__":{"a":1}})", "") == "__metadata__ is not a map of texts");
  CHECK(error_of(R"({"__metadata__":{"k":"1","k":"2"}})", "") == R"(tensor "k": the name appears twice)");
  CHECK(error_of(object(entry("U8", "[0]", "[0,0]") + "," + entry("U8", "[0]", "[0,0]")), "") ==
        R"(tensor "a": the name appears twice)");
}

TEST_CASE("entries that contradict themselves or the file") {
  const auto error_for = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    const std::string text = error_of(object(entry(dtype, shape, offsets)), "12345678");
    const std::string start = R"(tensor "a": )";
    REQUIRE(text.starts_with(start));
    return text.substr(start.size());
  };
  CHECK(
      error_for("I16", "[4]", "[0,8]") ==
      R"(the dtype is "I16", not one of F64, F32, BF16, F16, I64, I32, U8, BOOL; convert the tensor to one of these)");
  CHECK(error_for("U8", "8", "[0,8]") == "the shape is not a list");
  CHECK(error_for("U8", "[-8]", "[0,8]") == "an extent is -8, not a whole number of at most 63 bits");
  CHECK(error_for("U8", "[8.0]", "[0,8]") == "an extent is 8.0, not a whole number of at most 63 bits");
  CHECK(error_for("U8", "[18446744073709551615]", "[0,8]") ==
        "an extent is 18446744073709551615, not a whole number of at most 63 bits");
  const std::string overflow = "the shape has more bytes than a 64-bit number can count";
  CHECK(error_for("U8", "[4294967296,4294967296]", "[0,8]") == overflow);
  CHECK(error_for("F64", "[0,2305843009213693952]", "[0,0]") == overflow);
  CHECK(error_for("U8", "[8]", "[0]") == "data_offsets is not a pair");
  CHECK(error_for("U8", "[8]", "[8,0]") == "the bytes 8 to 0 do not lie in the data of 8 bytes");
  CHECK(error_for("U8", "[9]", "[0,9]") == "the bytes 0 to 9 do not lie in the data of 8 bytes");
  CHECK(error_for("F32", "[3]", "[0,8]") == "float32[3] takes 12 bytes and was given 8");
  CHECK(error_for("F32", "[3]", "[4,8]") == "float32[3] takes 12 bytes and was given 4");
  CHECK(error_for("U8", "[4]", "[4,8]") == "its data begin at byte 4, but byte 0 comes next");
  CHECK(error_of(object(entry("U8", "[4]", "[0,4]")), "12345678") ==
        "8 bytes of data follow the header and its tensors take 4");
  CHECK(error_of(R"({"a":{"dtype":"U8","shape":[0]}})", "") ==
        R"(tensor "a": the entry does not consist of dtype, shape and data_offsets)");
  CHECK(error_of(R"({"a":1})", "") ==
        R"(tensor "a": the entry does not consist of dtype, shape and data_offsets)");
}

TEST_CASE("tensors that overlap") {
  CHECK(error_of(
            object(entry("U8", "[8]", "[0,8]") + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]})"),
            "12345678") == R"(tensor "b": its data begin at byte 4, but byte 8 comes next)");
}

TEST_CASE("a BOOL byte is 0 or 1") {
  CHECK(error_of(object(entry("BOOL", "[2]", "[0,2]")), std::string("\x01\x02")) ==
        "tensor 'a' is BOOL and contains a byte other than 0 and 1");
}

TEST_CASE("a file cut anywhere is refused") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", one_of_each());
  const std::string whole = read_text(folder / "f");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_text(folder / "cut", whole.substr(0, length));
    CHECK_THROWS_AS(read_safetensors(folder / "cut"), UserError);
  }
}

TEST_CASE("every changed byte of the data is noticed") {
  const TemporaryFolder folder;
  const std::string path = (folder / "f").string();
  const SafeTensors contents{
      {{"w", Tensor::of<float>({3}, {1, 2, 3})}, {"n", Tensor::scalar<std::int64_t>(4)}}, {}};
  write_safetensors(path, contents);
  const std::string whole = read_text(path);
  for (std::size_t place = whole.size() - 20; place < whole.size(); ++place) {
    std::string changed = whole;
    changed[place] = static_cast<char>(changed[place] ^ 1);
    write_text(path, changed);
    CHECK(user_error([&] { read_safetensors(path); }) ==
          "'" + path +
              "': its tensors do not give the checksum in its metadata; the file is damaged: take another "
              "copy, or, if tensors were changed on purpose, remove 'checksum.fnv1a64' from the metadata");
  }
}

TEST_CASE("a name with the character 0 is refused, and shown in full") {
  const TemporaryFolder folder;
  std::string header = object(entry("U8", "[2]", "[0,2]"));
  header.insert(header.find('"') + 1, "a\\u0000b");
  write_text(folder / "f", file_of(header, "ab"));
  const std::string said = user_error([&] { read_safetensors(folder / "f"); });
  CAPTURE(said);
  CHECK(said.find("a\\u0000b") != std::string::npos);
  CHECK(said.ends_with("the name contains the character 0; the file is damaged or not a safetensors file"));
}

TEST_CASE("files of other makers have no checksum, and an old one is replaced") {
  const TemporaryFolder folder;
  write_text(folder / "foreign", file_of(object(entry("U8", "[2]", "[0,2]")), "ab"));
  SafeTensors contents = read_safetensors(folder / "foreign");
  CHECK(contents.metadata.empty());
  contents.metadata["checksum.fnv1a64"] = "of another file";
  write_safetensors(folder / "f", contents);
  CHECK(read_safetensors(folder / "f").metadata.empty());
  CHECK(read_safetensors_header(folder / "f").metadata.empty());
}

TEST_CASE("a file with a byte changed is refused or read, and nothing worse") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", one_of_each());
  const std::string whole = read_text(folder / "f");
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (const int mask : {0x01, 0x02, 0x08, 0x10, 0x20, 0x80, 0xff}) {
      std::string changed = whole;
      changed[place] = static_cast<char>(changed[place] ^ mask);
      write_text(folder / "changed", changed);
      try {
        read_safetensors(folder / "changed");
      } catch (const UserError&) {
        // The file was refused. Any other error fails the test.
      }
    }
  }
}

TEST_CASE(
    "only the tensors that are wanted are read, and all are compared with the checksum unless that is not "
    "asked for") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", {{{"a", Tensor::scalar(1.0)}, {"b", Tensor::scalar(2.0)}}, {}});
  const auto read_a = [&](bool verifies) {
    return read_safetensors(
        folder / "f", [](const std::string& name) { return name == "a"; }, verifies);
  };
  REQUIRE(read_a(true).tensors.size() == 1);
  CHECK(read_a(true).tensors[0].second == Tensor::scalar(1.0));
  {
    std::fstream file(folder / "f", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
  }
  CHECK_THROWS_AS(read_a(true), UserError);
  CHECK(read_a(false).tensors[0].second == Tensor::scalar(1.0));
}

}  // namespace plexaura::testing::safetensors_test
