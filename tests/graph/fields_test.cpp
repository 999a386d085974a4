#include "core/graph/fields.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/ops/window.h"

namespace plexaura::testing::fields_test {

namespace {

struct BaseOptions {
  std::int64_t axis = 3;

  static void fields(auto& self, auto& visitor) { visitor("axis", self.axis); }
};

struct AllOptions : BaseOptions {
  bool is_even = true;
  bool is_centred = false;
  double scale = 1;
  std::string mode = "mean";
  std::optional<std::int64_t> limit = {};
  std::vector<std::int64_t> axes = {};
  std::vector<double> weights = {};
  DType dtype = DType::float32;
  Shape shape = {};
  Size2d window = {};
  std::shared_ptr<const Tensor> table = {};

  static void fields(auto& self, auto& visitor) {
    BaseOptions::fields(self, visitor);
    visitor("is_even", self.is_even, true);
    visitor("is_centred", self.is_centred);
    visitor("scale", self.scale);
    visitor("mode", self.mode);
    visitor("limit", self.limit);
    visitor("axes", self.axes);
    visitor("weights", self.weights);
    visitor("dtype", self.dtype);
    visitor("shape", self.shape);
    visitor("window", self.window);
    visitor("table", self.table);
  }
};

AllOptions other_options() {
  AllOptions options;
  options.axis = -1;
  options.is_even = false;
  options.is_centred = true;
  options.scale = 1e-300;
  options.mode = "sum";
  options.limit = 9;
  options.axes = {1, 2};
  options.weights = {0.1, -2};
  options.dtype = DType::boolean;
  options.shape = {4, 0};
  options.window = {2, 5};
  options.table = std::make_shared<const Tensor>(Tensor::scalar(2.5));
  return options;
}

AllOptions read(std::string key, Description::Value value) {
  return options_from<AllOptions>(Description().add(std::move(key), std::move(value)), "pad");
}

std::string refusal(const std::string& key, const Description::Value& value) {
  try {
    read(key, value);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fields are written in their order, those of the base where it is called") {
  CHECK(to_string(description_of(other_options())) ==
        "axis=-1, is_even=false, is_centred=true, scale=1e-300, mode=sum, limit=9, axes=[1,2], "
        "weights=[0.1,-2], dtype=bool, shape=[4,0], window=[2,5], table=2.5");
}

TEST_CASE("an empty field and one of its unwritten value are left out") {
  AllOptions options = other_options();
  options.limit = {};
  options.is_even = true;
  const std::string text = to_string(description_of(options));
  CHECK(text.find("limit") == std::string::npos);
  CHECK(text.find("is_even") == std::string::npos);
}

TEST_CASE("what is written can be read") {
  const Description description = description_of(other_options());
  CHECK(description_of(options_from<AllOptions>(description, "pad")) == description);
}

TEST_CASE("fields that are not named stay as they are") {
  const AllOptions options = options_from(Description().add("axis", 7), "pad", other_options());
  CHECK(options.axis == 7);
  CHECK(options.limit == 9);
  CHECK(!options.is_even);
}

TEST_CASE("a text stands for the value that prints so, and an integer for a floating number") {
  CHECK(read("axis", "-12").axis == -12);
  CHECK(read("is_centred", "true").is_centred);
  CHECK(read("scale", "-inf").scale < 0);
  CHECK(read("scale", 4).scale == 4);
  CHECK(read("limit", "5").limit == 5);
  CHECK(read("axes", "[]").axes.empty());
  CHECK(read("axes", "[3, -1]").axes == std::vector<std::int64_t>{3, -1});
  CHECK(read("weights", "[1e-3,2]").weights == std::vector<double>{1e-3, 2});
  CHECK(read("weights", std::vector<std::int64_t>{1, 2}).weights == std::vector<double>{1, 2});
  CHECK(read("window", "[3,2]").window == Size2d{3, 2});
}

TEST_CASE("a value of a wrong type is refused with the option, its owner and the rule") {
  CHECK(refusal("axis", 1.5) == "the option 'axis' of pad must be an integer, not '1.5'");
  CHECK(refusal("axis", "two") == "the option 'axis' of pad must be an integer, not 'two'");
  CHECK(refusal("axis", "99999999999999999999") ==
        "the option 'axis' of pad must be an integer, not '99999999999999999999'");
  CHECK(refusal("is_even", 1) == "the option 'is_even' of pad must be true or false, not '1'");
  CHECK(refusal("scale", true) == "the option 'scale' of pad must be a number, not 'true'");
  CHECK(refusal("scale", (std::int64_t{1} << 53) + 1) ==
        "the option 'scale' of pad must be a number, not '9007199254740993'");
  CHECK(refusal("mode", 1) == "the option 'mode' of pad must be a text, not '1'");
  for (const char* list : {"", "1,2", "[1,]", "[1,2", "[,]", "[a]"})
    CHECK(refusal("axes", list) ==
          "the option 'axes' of pad must be a list of integers, not '" + std::string(list) + "'");
  CHECK(refusal("weights", true) == "the option 'weights' of pad must be a list of numbers, not 'true'");
  CHECK(refusal("table", 1) == "the option 'table' of pad must be a tensor, not '1'");
}

TEST_CASE("a value that a type does not have is refused with the rule") {
  CHECK(refusal("dtype", "int65") ==
        "the option 'dtype' of pad must be one of float64, float32, bfloat16, float16, int64, int32, uint8, "
        "bool, not 'int65'");
  CHECK(refusal("window", "[1,2,3]") ==
        "the option 'window' of pad must be two numbers, along H and along W, not 3");
  CHECK(refusal("shape", "[-1]") ==
        "the option 'shape' of pad is wrong: the shape [-1] has a negative extent; extents are 0 or more");
}

TEST_CASE("an option that is not there is refused with those that are") {
  CHECK(refusal("limits", 1) ==
        "pad has no option 'limits'; its options are axis, is_even, is_centred, scale, mode, limit, axes, "
        "weights, dtype, shape, window, table; did you mean 'limit'?");
  CHECK_THROWS_WITH_AS(options_from<AllOptions>(Description().add("axis", 1).add("axis", 2), "pad"),
                       "the option 'axis' of pad is given twice; leave one out", UserError);
}

}  // namespace plexaura::testing::fields_test
