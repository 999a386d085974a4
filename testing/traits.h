#pragma once

#include "testing/op_case.h"

namespace plexaura::testing {

// Compares the traits that the op of a case declares (OpTraits) with what its reference kernel does, bit by
// bit, with `dtype` for the inputs of the case that name no dtype:
//   elementwise    each output may be computed in the memory of an input of its type, and an element of an
//                  input of the result's shape changes no other element of the result;
//   view           output 0 has the bytes of input 0;
//   unread_inputs  the values of these inputs change nothing.
// Also checks that the kernel writes all elements of its results. Compares nothing if the op has no reference kernel.
CaseReport check_traits(const OpCase& op_case, DType dtype);

}  // namespace plexaura::testing
