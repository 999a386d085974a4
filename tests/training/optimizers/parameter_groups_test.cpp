#include "training/optimizers/parameter_groups.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/graph/structure.h"
#include "tests/support/error_text.h"
#include "training/optimizers/optimizer_spec.h"

namespace plexaura::testing::parameter_groups_test {

namespace {

const TensorType eight{DType::float64, {8}};

ParameterSpec spec(const char* name, ParameterRole role = ParameterRole::trainable,
                   std::vector<std::string> aliases = {}) {
  return {name, eight, role, Initialiser::zeros(), std::move(aliases)};
}

const std::vector<ParameterSpec> specs{
    spec("body.weight"),
    spec("body.bias"),
    spec("head.weight", ParameterRole::trainable, {"tied.weight"}),
    spec("head.bias"),
    spec("stem.weight", ParameterRole::frozen),
    spec("running", ParameterRole::buffer),
};

Placement placement_of_trainables() {
  Placement placement;
  placement.types = ArenaTypes::all(DType::float64);
  for (const ParameterSpec& spec : specs)
    if (spec.role == ParameterRole::trainable)
      placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  return placement;
}

std::string refusal(const std::vector<ParameterGroup>& groups) {
  return user_error([&] { groups_by_name(groups, specs); });
}

std::size_t hash_of_update(const OptimizerSpec& optimizer) {
  const Placement placement = placement_of_trainables();
  Graph graph;
  build_update(graph, optimizer, placement, make_buckets(placement, 1 << 20));
  return structure_hash(graph);
}

void check_segment(const StepSegment& segment, const StepSegment& expected) {
  CHECK(segment.offset == expected.offset);
  CHECK(segment.count == expected.count);
  CHECK(segment.decay == expected.decay);
  CHECK(segment.rate == expected.rate);
}

}  // namespace

TEST_CASE("a parameter belongs to the first group that fits its name or an alias") {
  const auto groups = groups_by_name(
      std::vector<ParameterGroup>{
          {"tied.*", {.rate = 0.5}}, {"*.weight", {.rate = 2}}, {"*.bias", {.decay = 0}}},
      specs);
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].pattern == "body.weight");
  CHECK(groups[0].options.rate == 2);
  CHECK(groups[1].pattern == "body.bias");
  CHECK(groups[1].options.decay == 0);
  CHECK(groups[2].pattern == "head.weight");
  CHECK(groups[2].options.rate == 0.5);
  CHECK(!groups[2].options.decay);
}

TEST_CASE("groups without parameters, and numbers outside their ranges, are refused") {
  const std::string no_effect = " has no effect: ";
  CHECK(refusal({{"heat.bias"}}) == "the group of parameters 'heat.bias'" + no_effect +
                                        "no parameter is named like its pattern; did you mean 'head.bias'?");
  CHECK(refusal({{"stem.*"}}) == "the group of parameters 'stem.*'" + no_effect +
                                     "its pattern fits no parameter that the optimizer trains; remove it, or "
                                     "correct it");
  CHECK(refusal({{"*"}, {"head.*"}}) == "the group of parameters 'head.*'" + no_effect +
                                            "each of its parameters fits a group before it, and the first "
                                            "counts; move it forward");
  CHECK(refusal({{"*", {.rate = 0}}}).starts_with("the group of parameters '*' has rate = 0; it must be"));
  CHECK(refusal({{"*", {.rate = INFINITY}}}).find("rate = inf") != std::string::npos);
  CHECK(refusal({{"*", {.decay = -1}}}) ==
        "the group of parameters '*' has decay = -1; it must be a number from 0 on");
  CHECK(refusal({{"*", {.decay = std::nan("")}}}).find("decay = nan") != std::string::npos);
}

TEST_CASE("neighbours of one group share a segment, and segments cover their bucket") {
  const Placement placement = placement_of_trainables();
  const Bucket all{0, 32, DType::float64};
  const std::vector<ParameterGroup> head{{"head.*", {.rate = 0.5, .decay = 0}}};
  const std::vector<StepSegment> segments = segments_of(placement, all, head, 0.1);
  REQUIRE(segments.size() == 2);
  check_segment(segments[0], {0, 16, 0.1, 1});
  check_segment(segments[1], {16, 16, 0, 0.5});
  const std::vector<StepSegment> second = segments_of(placement, {16, 16, DType::float64}, head, 0.1);
  REQUIRE(second.size() == 1);
  check_segment(second[0], {0, 16, 0, 0.5});
  CHECK(segments_of(placement, all, {}, 0).empty());
  CHECK(segments_of(placement, {0, 16, DType::float64}, head, 0).empty());
}

TEST_CASE("a group that changes nothing leaves the update as it is without groups") {
  for (const auto kind : {OptimizerSpec::sgd, OptimizerSpec::adamw, OptimizerSpec::lars, OptimizerSpec::lamb,
                          OptimizerSpec::rmsprop, OptimizerSpec::adagrad}) {
    const OptimizerSpec plain{.kind = kind, .weight_decay = 0.1};
    OptimizerSpec grouped = plain;
    grouped.groups = {{"head.*"}};
    CHECK(hash_of_update(grouped) == hash_of_update(plain));
    grouped.groups = {{"head.*", {.rate = 2}}};
    CHECK(hash_of_update(grouped) != hash_of_update(plain));
  }
}

}  // namespace plexaura::testing::parameter_groups_test
