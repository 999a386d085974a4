// Functions of the elements of one or two values.

#include "onnx/export/export_table.h"

#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

// Adds a node that multiplies the input by itself. Returns the name of the product.
Names square_of(ExportCall& call, const ExportRow&) { return {call.add("Mul", {call[0], call[0]})}; }
Names cube_of(ExportCall& call, const ExportRow&) {
  return {call.add("Mul", {call.add("Mul", {call[0], call[0]}), call[0]})};
}

Names inverse_root(ExportCall& call, const ExportRow&) {
  return {call.add("Reciprocal", {call.add("Sqrt", {call[0]})})};
}

Names power_of_two(ExportCall& call, const ExportRow&) {
  return {call.add("Pow", {call.number(2), call[0]})};
}

Names exponential_minus_one(ExportCall& call, const ExportRow&) {
  return {call.add("Sub", {call.add("Exp", {call[0]}), call.number(1)})};
}

Names logarithm_of_one_plus(ExportCall& call, const ExportRow&) {
  return {call.add("Log", {call.add("Add", {call[0], call.number(1)})})};
}

// A logarithm to another base is the natural one divided by that of the base.
template <int base>
Names logarithm_to(ExportCall& call, const ExportRow&) {
  const std::string of_base = call.number(base == 2 ? 0.69314718055994531 : 2.3025850929940457);
  return {call.add("Div", {call.add("Log", {call[0]}), of_base})};
}

Names whole_part(ExportCall& call, const ExportRow&) {
  const TensorType condition{DType::boolean, call.type().shape};
  const std::string is_negative = call.add("Less", {call[0], call.number(0)}, condition);
  return {call.add("Where", {is_negative, call.add("Ceil", {call[0]}), call.add("Floor", {call[0]})})};
}

Names weighted(ExportCall& call, const ExportRow&) {
  const std::string a = call.add("Mul", {call[0], call.number(call.real("weight_a"))}, call.input_type(0));
  const std::string b = call.add("Mul", {call[1], call.number(call.real("weight_b"))}, call.input_type(1));
  return {call.add("Add", {a, b})};
}

// (c / divisor) (d - c / 2), where d is the difference and c is d clipped.
Names huber_of(ExportCall& call, const ExportRow&) {
  const double delta = call.real("delta");
  const std::string difference = call.add("Sub", {call[0], call[1]});
  const std::string capped = call.add("Clip", {difference, call.number(-delta), call.number(delta)});
  const std::string half = call.add("Mul", {capped, call.number(0.5)});
  const double divisor = call.real("divisor");
  const std::string factor = divisor == 1 ? capped : call.add("Div", {capped, call.number(divisor)});
  return {call.add("Mul", {factor, call.add("Sub", {difference, half})})};
}

Names product_without_nan(ExportCall& call, const ExportRow&) {
  const TensorType condition{DType::boolean, call.input_type(0).shape};
  const std::string is_zero = call.add("Equal", {call[0], call.number(0)}, condition);
  return {call.add("Where", {is_zero, call[0], call.add("Mul", {call[0], call[1]})})};
}

// Returns the remainder of a division, with the sign of the divisor. The standard's Mod has this sign for integers only.
std::string rest_of(ExportCall& call) {
  if (!is_floating(call.type().dtype)) return call.add("Mod", {call[0], call[1]});
  const std::string zero = call.number(0);
  const std::string rest = call.add("Mod", {call[0], call[1]}, {{"fmod", std::int64_t{1}}});
  const TensorType whole{DType::boolean, call.type().shape};
  const std::string is_zero = call.add("Equal", {rest, zero}, whole);
  const std::string divisor_sign =
      call.add("Less", {call[1], zero}, {DType::boolean, call.input_type(1).shape});
  const std::string differs = call.add("Xor", {call.add("Less", {rest, zero}, whole), divisor_sign}, whole);
  const std::string moves = call.add("And", {differs, call.add("Not", {is_zero}, whole)}, whole);
  return call.add("Where", {moves, call.add("Add", {rest, call[1]}), rest});
}

Names remainder_of(ExportCall& call, const ExportRow&) { return {rest_of(call)}; }

// (a - rest) / b is a whole number, except for rounding errors. A float divided by 0 is infinite or NaN.
Names whole_quotient(ExportCall& call, const ExportRow&) {
  const std::string quotient = call.add("Div", {call.add("Sub", {call[0], rest_of(call)}), call[1]});
  if (!is_floating(call.type().dtype)) return {quotient};
  const TensorType condition{DType::boolean, call.input_type(1).shape};
  const std::string is_zero = call.add("Equal", {call[1], call.number(0)}, condition);
  const std::string by_zero = call.add("Div", {call[0], call[1]});
  return {call.add("Where", {is_zero, by_zero, call.add("Round", {quotient})})};
}

Names shifted_bits(ExportCall& call, const ExportRow& row) {
  if (call.type().dtype != DType::uint8)
    call.refuse(std::string(row.op) + " of " + std::string(name_of(call.type().dtype)));
  return {call.add("BitShift", {call[0], call[1]},
                   {{"direction", std::string(row.op == "left_shift" ? "LEFT" : "RIGHT")}})};
}

// Casts bools and bytes to int32: the standard compares no bools, and runtimes compare no bytes.
Names comparison(ExportCall& call, const ExportRow& row) {
  Names operands = call.inputs();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = call.input_type(i);
    if (type.dtype == DType::boolean || type.dtype == DType::uint8)
      operands[i] = call.add("Cast", {operands[i]}, {DType::int32, type.shape},
                             {{"to", static_cast<std::int64_t>(ElementType::int32)}});
  }
  return {call.add(row.onnx, std::move(operands))};
}

// Runtimes have Where for numbers, but not for bools, so bools are chosen by And and Or.
Names chosen(ExportCall& call, const ExportRow&) {
  if (call.type().dtype != DType::boolean) return {call.add("Where", call.inputs())};
  const TensorType& condition = call.input_type(0);
  const auto both = [&](const std::string& holds, std::size_t i) {
    const Shape shape = broadcast(condition.shape, call.input_type(i).shape);
    return call.add("And", {holds, call[i]}, {DType::boolean, shape});
  };
  const std::string otherwise = call.add("Not", {call[0]}, condition);
  return {call.add("Or", {both(call[0], 1), both(otherwise, 2)})};
}

Names inequality(ExportCall& call, const ExportRow&) {
  return {call.add("Not", {call.add("Equal", {call[0], call[1]})})};
}

Names converted(ExportCall& call, const ExportRow&) {
  return {
      call.add("Cast", {call[0]}, {{"to", static_cast<std::int64_t>(element_type_of(call.type().dtype))}})};
}

// (x / 255 - mean) / stddev, with numbers for each channel.
Names normalised_image(ExportCall& call, const ExportRow&) {
  const TensorType& type = call.type();
  if (type.dtype != DType::float32 && type.dtype != DType::float64)
    call.refuse("normalise_image to " + std::string(name_of(type.dtype)));
  const auto by_channel = [&](std::string_view option) {
    const auto& fields = call.options().fields();
    std::vector<double> values;
    for (const auto& [name, value] : fields)
      if (name == option) values = std::get<std::vector<double>>(value);
    std::vector<std::int64_t> extents(static_cast<std::size_t>(type.shape.rank() - 1), 1);
    extents[0] = std::ssize(values);
    return call.constant(Tensor::of(Shape(extents), values).cast(type.dtype));
  };
  const std::string bytes =
      call.add("Cast", {call[0]}, {{"to", static_cast<std::int64_t>(element_type_of(type.dtype))}});
  const std::string unit = call.add("Div", {bytes, call.number(255)});
  return {call.add("Div", {call.add("Sub", {unit, by_channel("mean")}), by_channel("stddev")})};
}

constexpr ExportRow elementwise_export[] = {
    {"abs", export_same, "Abs"},
    {"acos", export_same, "Acos"},
    {"acosh", export_same, "Acosh"},
    {"add", export_same, "Add"},
    {"asin", export_same, "Asin"},
    {"asinh", export_same, "Asinh"},
    {"atan", export_same, "Atan"},
    {"atanh", export_same, "Atanh"},
    {"bitwise_and", export_same, "BitwiseAnd"},
    {"bitwise_or", export_same, "BitwiseOr"},
    {"bitwise_xor", export_same, "BitwiseXor"},
    {"cast", converted, "Cast"},
    {"ceil", export_same, "Ceil"},
    {"cos", export_same, "Cos"},
    {"cosh", export_same, "Cosh"},
    {"cube", cube_of},
    {"div", export_same, "Div"},
    {"eq", export_same, "Equal"},
    {"erf", export_same, "Erf"},
    {"exp", export_same, "Exp"},
    {"exp2", power_of_two},
    {"expm1", exponential_minus_one},
    {"floor", export_same, "Floor"},
    {"floor_div", whole_quotient},
    {"ge", comparison, "GreaterOrEqual"},
    {"gt", comparison, "Greater"},
    {"le", comparison, "LessOrEqual"},
    {"huber", huber_of},
    {"left_shift", shifted_bits, "BitShift"},
    {"log", export_same, "Log"},
    {"log10", logarithm_to<10>},
    {"log1p", logarithm_of_one_plus},
    {"log2", logarithm_to<2>},
    {"lt", comparison, "Less"},
    {"maximum", export_same, "Max"},
    {"minimum", export_same, "Min"},
    {"mod", remainder_of, "Mod"},
    {"mul", export_same, "Mul"},
    {"mul_no_nan", product_without_nan},
    {"ne", inequality},
    {"neg", export_same, "Neg"},
    {"normalise_image", normalised_image},
    {"pow", export_same, "Pow"},
    {"right_shift", shifted_bits, "BitShift"},
    {"round", export_same, "Round"},
    {"rsqrt", inverse_root},
    {"sign", export_same, "Sign"},
    {"sin", export_same, "Sin"},
    {"sinh", export_same, "Sinh"},
    {"sqrt", export_same, "Sqrt"},
    {"square", square_of},
    {"stop_gradient", export_same, "Identity"},
    {"sub", export_same, "Sub"},
    {"tan", export_same, "Tan"},
    {"trunc", whole_part},
    {"weighted_sum", weighted},
    {"where", chosen, "Where"},
};

}  // namespace

std::span<const ExportRow> exported_elementwise() { return elementwise_export; }

}  // namespace plexaura::onnx
