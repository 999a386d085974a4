#include <doctest/doctest.h>

#include "onnx/stored_data.h"

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_signals_test {

namespace {

const Tensor& signal() {
  static const Tensor x = floats({1, 5, 1}, {1, 2, 3, 4, 5});
  return x;
}

Tensor scalar(std::int64_t value) { return Tensor::scalar(value); }

}  // namespace

TEST_CASE("a window of one element is 1, and one without elements is empty") {
  CHECK(OneNode("HannWindow", 17, {{"periodic", 0}})({scalar(1)})[0] == floats({1}, {1}));
  CHECK(OneNode("HannWindow", 17)({scalar(0)})[0].elements() == 0);
  const Tensor hamming = OneNode("HammingWindow", 17, {{"output_datatype", 11}})({scalar(2)})[0];
  CHECK(hamming.dtype() == DType::float64);
  CHECK(hamming.as<double>()[0] == doctest::Approx(4.0 / 46));
  CHECK(hamming.as<double>()[1] == doctest::Approx(1));
}

// The numbers are those of PyTorch's fft and rfft.
TEST_CASE("a transform cuts the signal to its length, or fills it up with zeros") {
  const OneNode node("DFT", 17, {{"onesided", 1}});
  CHECK(onnx::largest_distance(node({signal(), scalar(4)})[0], floats({1, 3, 2}, {10, 0, -2, 2, -2, 0})) <=
        1e-5);
  const Tensor longer = OneNode("DFT", 20)({signal(), scalar(7), scalar(-2)})[0];
  CHECK(longer.shape() == Shape{1, 7, 2});
  CHECK(longer.as<float>()[2] == doctest::Approx(-6.5293F).epsilon(1e-4));
  CHECK(longer.as<float>()[3] == doctest::Approx(-4.0546F).epsilon(1e-4));
  const Tensor back = OneNode("DFT", 17, {{"inverse", 1}})({longer})[0];
  CHECK(back.as<float>()[8] == doctest::Approx(5));
  CHECK(std::abs(back.as<float>()[13]) <= 1e-5);
}

TEST_CASE("the inverse of a onesided transform is the signal") {
  for (const std::int64_t length : {4, 5}) {
    const Tensor spectrum = OneNode("DFT", 20, {{"onesided", 1}})({signal(), scalar(length)})[0];
    const Tensor back = OneNode("DFT", 20, {{"onesided", 1}, {"inverse", 1}})({spectrum, scalar(length)})[0];
    CHECK(back.shape() == Shape{1, length, 1});
    for (std::int64_t i = 0; i < length; ++i)
      CHECK(back.as<float>()[static_cast<std::size_t>(i)] == doctest::Approx(i + 1));
  }
}

TEST_CASE("frames of a signal begin a step apart, and samples that fill no frame are not read") {
  const OneNode node("STFT", 17, {{"onesided", 0}});
  const Tensor frames = node({signal(), scalar(3), floats({2}, {1, 10})})[0];
  CHECK(onnx::largest_distance(frames, floats({1, 2, 2, 2}, {21, 0, -19, 0, 54, 0, -46, 0})) <= 1e-5);
}

TEST_CASE("sizes and axes of signals that are impossible are errors") {
  CHECK(OneNode("HannWindow", 17).error({scalar(-1)}).find("the size -1 is impossible") != std::string::npos);
  CHECK(OneNode("HannWindow", 17).error({scalar(std::int64_t{1} << 40)}).find("is impossible") !=
        std::string::npos);
  CHECK(OneNode("DFT", 17).error({signal(), scalar(0)}).find("length of the transform 0 is impossible") !=
        std::string::npos);
  CHECK(OneNode("DFT", 17).error({signal(), scalar(std::int64_t{1} << 23)}).find("is impossible") !=
        std::string::npos);
  CHECK(OneNode("DFT", 17, {{"axis", 2}}).error({signal()}).find("another axis is transformed") !=
        std::string::npos);
  CHECK(OneNode("DFT", 17, {{"onesided", 1}, {"inverse", 1}})
            .error({signal()})
            .find("whose elements have 1 parts; onesided takes elements of 1 part, or of 2 for an inverse "
                  "transform; set onesided to 0") != std::string::npos);
  CHECK(OneNode("STFT", 17).error({signal(), scalar(0)}).find("do not fit 5 samples") != std::string::npos);
  CHECK(OneNode("STFT", 17)
            .error({signal(), scalar(1), floats({2}, {1, 1}), scalar(3)})
            .find("length of a frame, 3") != std::string::npos);
  const auto mel = [](std::int64_t bands, std::int64_t rate) {
    return OneNode("MelWeightMatrix", 17)
        .error({scalar(bands), scalar(16), scalar(rate), Tensor::scalar(0.0F), Tensor::scalar(4000.0F)});
  };
  CHECK(mel(8, 8192).empty());
  CHECK(mel(0, 8192).find("is impossible") != std::string::npos);
  CHECK(mel(std::int64_t{1} << 62, 8192).find("is impossible") != std::string::npos);
  CHECK(mel(8, 0).find("must be from 0 to half of the rate") != std::string::npos);
}

}  // namespace plexaura::onnx_signals_test
