#include "testing/traits.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/ops/binary.h"

namespace plexaura::testing::traits_test {

namespace {

// The op that reverses the elements of a. It declares the given traits.
class Reverse final : public OpOf<Reverse> {
 public:
  explicit Reverse(OpTraits traits) : traits_(std::move(traits)) {}
  std::string_view name() const override { return "test_reverse"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OpTraits traits() const override { return traits_; }
  void compute(const HostCall& call) const {
    const double* from = call.inputs[0].as<double>();
    std::reverse_copy(from, from + call.inputs[0].elements(), call.outputs[0].as<double>());
  }

 private:
  OpTraits traits_;
};

// The op that writes the first element of its result only.
class WriteOne final : public OpOf<WriteOne> {
 public:
  std::string_view name() const override { return "test_write_one"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void compute(const HostCall& call) const { *call.outputs[0].as<double>() = 0; }
};

CaseReport check_claim(const OpTraits& traits) {
  return check_traits({"claims",
                       "test_reverse",
                       [&](Graph&, auto x) {
                         return std::vector{apply(std::make_shared<Reverse>(traits), {x[0], x[1]})};
                       },
                       {{{4}}, {{4}}},
                       {}},
                      DType::float64);
}

}  // namespace

TEST_CASE("an op that is not what it says of itself is found out") {
  const auto says = [](const CaseReport& report, const std::string& words) {
    return report.failures.find(words) != std::string::npos;
  };
  const CaseReport elementwise = check_claim({.elementwise = true});
  CHECK(says(elementwise, "test_reverse says that it is elementwise"));
  CHECK(says(elementwise, "with output 0 in the place of input 0"));
  for (const char* element :
       {"element 0", "element 2", "element 3"})  // the first, the middle and the last of 4 elements
    CHECK(says(elementwise, fmt::format("{} of input 0 changes other elements of output 0", element)));
  CHECK(says(check_claim({.view = true}), "says that it is a view"));
  CHECK(says(check_claim({.unread_inputs = {0}}), "says that no kernel reads input 0"));
}

TEST_CASE("a kernel that leaves elements of its result as they were is found") {
  const CaseReport report =
      check_traits({"leaves",
                    "test_write_one",
                    [](Graph&, auto x) { return std::vector{apply(std::make_shared<WriteOne>(), {x[0]})}; },
                    {{{4}}},
                    {}},
                   DType::float64);
  CHECK(report.failures.find("test_write_one leaves elements") != std::string::npos);
}

TEST_CASE("an op that is what it says of itself passes") {
  CHECK(check_claim({.unread_inputs = {1}}).passed());
  CHECK(check_claim({}).comparisons == 1);
  const OpCase sum{
      "a sum", "add", [](Graph&, auto x) { return std::vector{x[0] + x[1]}; }, {{{3, 4}}, {{4}}}, {}};
  const CaseReport report = check_traits(sum, DType::float32);
  CHECK(report.passed());
  // The op computes in other memory, in that of input 0, and with its first, its middle and its last element changed.
  CHECK(report.comparisons == 5);
}

}  // namespace plexaura::testing::traits_test
