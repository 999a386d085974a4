#include "core/params/name_pattern.h"

#include <doctest/doctest.h>

namespace plexaura::testing::name_pattern_test {

TEST_CASE("a star stands for any letters, a question mark for one") {
  for (const char* pattern : {"layer1.0.weight", "*", "layer1.*", "*.weight", "l*0*t", "layer?.?.weight",
                              "*layer1.0.weight", "layer1.0.weight**", "*.?.*"}) {
    CAPTURE(pattern);
    CHECK(is_named_like("layer1.0.weight", pattern));
  }
  for (const char* pattern :
       {"", "layer1", "layer2.*", "*.bias", "?ayer1.0.weigh", "layer1.0.weight?", "*0", "*0*e*t.*"}) {
    CAPTURE(pattern);
    CHECK(!is_named_like("layer1.0.weight", pattern));
  }
  CHECK(is_named_like("", "*"));
  CHECK(!is_named_like("", "?"));
}

TEST_CASE("other letters of a pattern stand for themselves") {
  CHECK(!is_named_like("fc.weight", "[a-f]c.*"));
  CHECK(!is_named_like("fc.weight", "fc\\.weight"));
  CHECK(is_named_like("[a]", "[a]"));
}

TEST_CASE("a pattern of many stars takes no longer for that") {
  CHECK(!is_named_like(std::string(2000, 'a'), "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"));
}

TEST_CASE("a tied parameter is named like each of its names") {
  const ParameterSpec spec{
      "encoder.weight", {}, ParameterRole::trainable, Initialiser::zeros(), {"decoder.weight"}};
  CHECK(is_named_like(spec, "encoder.*"));
  CHECK(is_named_like(spec, "decoder.*"));
  CHECK(!is_named_like(spec, "other.*"));
}

}  // namespace plexaura::testing::name_pattern_test
