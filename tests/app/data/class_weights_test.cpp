#include "app/data/class_weights.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::class_weights_test {

namespace {

// Samples without numbers that have these labels.
class Labelled final : public DatasetOf<float> {
 public:
  explicit Labelled(std::vector<std::int64_t> labels) : labels_(std::move(labels)) {}

  std::int64_t size() const override { return std::ssize(labels_); }
  Shape sample_shape() const override { return Shape{0}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, const SampleContext&, std::span<float>, std::int64_t& label) const override {
    label = this->label(index);
  }

 private:
  std::vector<std::int64_t> labels_;
  std::vector<std::string> names_{"a", "b", "c"};
};

std::vector<double> weights(std::vector<std::int64_t> labels) {
  const Config config = Config::parse("model: {class_weights: balanced}\n", "x.yaml");
  return balanced_weights(config.section("model"), Labelled(std::move(labels)));
}

}  // namespace

TEST_CASE("balanced weights give all classes the same weight in a sum") {
  CHECK(weights({0, 1, 1, 2, 1, 1}) == std::vector<double>{2, 0.5, 2});
  CHECK(weights({2, 1, 0}) == std::vector<double>{1, 1, 1});
}

TEST_CASE("balanced weights need a sample of each class") {
  CHECK(user_error([] {
          weights({0, 0, 2});
        }) ==
        "x.yaml:1:24: model.class_weights is balanced, and there is no sample of the class 'b' to train on; "
        "list the "
        "weights, or add samples of that class");
}

}  // namespace plexaura::testing::class_weights_test
