#pragma once

#include "testing/op_case.h"

namespace plexaura::testing {

// What the op of a case says of itself (OpTraits) against what its reference kernel does, bit by bit, on values
// of the types that it has in the case:
//   elementwise    each output may lie where an input of its type lies, and one element of an input of the
//                  result's shape changes no other element of the result;
//   view           output 0 has the bytes of input 0;
//   unread_inputs  other values of these inputs change nothing.
// Compares nothing for an op that says nothing, and for one without a reference kernel.
CaseReport check_traits(const OpCase& op_case, DType dtype);

}  // namespace plexaura::testing
