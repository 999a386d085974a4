#include "core/ops/trigonometry.h"

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// 1 - x^2, without loss of digits near 1 and -1.
Node one_minus_square(const Node& x) { return (1 - x) * (1 + x); }

// A divisor: the length of (a, b), or 1 where the length is 0.
Node length_or_one(const Node& a, const Node& b) {
  const Node length = hypot(a, b);
  return where(eq(length, 0), 1, length);
}

}  // namespace

Node sin(Operand x) {
  return unary(
      "sin", [](const Node& x, const Node&, const Node& grad) { return grad * cos(x); }, x, Precision::wide);
}

Node cos(Operand x) {
  return unary(
      "cos", [](const Node& x, const Node&, const Node& grad) { return -(grad * sin(x)); }, x,
      Precision::wide);
}

Node tan(Operand x) {
  return unary(
      "tan", [](const Node&, const Node& y, const Node& grad) { return grad * (1 + square(y)); }, x,
      Precision::wide);
}

Node asin(Operand x) {
  return unary(
      "asin", [](const Node& x, const Node&, const Node& grad) { return grad * rsqrt(one_minus_square(x)); },
      x, Precision::wide);
}

Node acos(Operand x) {
  return unary(
      "acos",
      [](const Node& x, const Node&, const Node& grad) { return -(grad * rsqrt(one_minus_square(x))); }, x,
      Precision::wide);
}

Node atan(Operand x) {
  return unary(
      "atan", [](const Node& x, const Node&, const Node& grad) { return grad / (1 + square(x)); }, x,
      Precision::wide);
}

Node sinh(Operand x) {
  return unary(
      "sinh", [](const Node& x, const Node&, const Node& grad) { return grad * cosh(x); }, x,
      Precision::wide);
}

Node cosh(Operand x) {
  return unary(
      "cosh", [](const Node& x, const Node&, const Node& grad) { return grad * sinh(x); }, x,
      Precision::wide);
}

Node asinh(Operand x) {
  return unary(
      "asinh", [](const Node& x, const Node&, const Node& grad) { return grad / hypot(x, 1); }, x,
      Precision::wide);
}

Node acosh(Operand x) {
  return unary(
      "acosh",
      [](const Node& x, const Node&, const Node& grad) { return grad / (sqrt(x - 1) * sqrt(x + 1)); }, x,
      Precision::wide);
}

Node atanh(Operand x) {
  return unary(
      "atanh", [](const Node& x, const Node&, const Node& grad) { return grad / one_minus_square(x); }, x,
      Precision::wide);
}

Node hypot(Operand a, Operand b) {
  return binary(
      "hypot",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node length = where(eq(of.y, 0), 1, of.y);
        return {grad * (of.a / length), grad * (of.b / length)};
      },
      a, b, Domain::floats, {}, Precision::wide);
}

Node atan2(Operand a, Operand b) {
  return binary(
      "atan2",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node length = length_or_one(of.a, of.b);
        const Node share = grad / length;
        return {share * (of.b / length), -(share * (of.a / length))};
      },
      a, b, Domain::floats, {}, Precision::wide);
}

}  // namespace plexaura
