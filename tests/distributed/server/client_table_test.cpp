#include "distributed/server/client_table.h"

#include <doctest/doctest.h>

namespace plexaura::testing::client_table_test {

TEST_CASE("client table: a row for each client, and the staleness of all pushes in classes") {
  ClientTable table(2);
  table.add_push(0, 16, 0);
  table.add_push(0, 4, 1);
  for (const std::int64_t staleness : {2, 3, 4, 9}) table.add_push(1, 2, staleness);
  table.set_times(0, 1, 8);
  CHECK(table.to_text() ==
        "  rank    steps   pushes   mean staleness   idle\n"
        "     1       20        2             0.50 12.5 %\n"
        "     2        8        4             4.50  0.0 %\n"
        "  pushes by staleness   0: 1  1: 1  2 to 3: 2  4 to 7: 1  8 to 15: 1\n");
}

TEST_CASE("client table: a run without a step has empty rows") {
  ClientTable table(1);
  table.set_times(0, 5, 0);
  CHECK(table.to_text() ==
        "  rank    steps   pushes   mean staleness   idle\n"
        "     1        0        0             0.00  0.0 %\n"
        "  pushes by staleness \n");
}

}  // namespace plexaura::testing::client_table_test
