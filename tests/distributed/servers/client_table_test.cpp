#include "distributed/servers/client_table.h"

#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

namespace plexaura::testing::client_table_test {

namespace {

ClientTable table_of(const std::vector<int>& clients) {
  ClientTable table;
  for (const int client : clients) table.add(client);
  return table;
}

}  // namespace

TEST_CASE("client table: a row for each client, and the staleness of all pushes in classes") {
  ClientTable table = table_of({1, 2});
  table.add_push(1, 16, 0);
  table.add_push(1, 4, 1);
  for (const std::int64_t staleness : {2, 3, 4, 9}) table.add_push(2, 2, staleness);
  table.set_times(1, 1, 8);
  CHECK(table.to_text() ==
        "  rank    steps   pushes   mean staleness   idle\n"
        "     1       20        2             0.50 12.5 %\n"
        "     2        8        4             4.50  0.0 %\n"
        "  pushes by staleness   0: 1  1: 1  2 to 3: 2  4 to 7: 1  8 to 15: 1\n");
}

TEST_CASE("client table: a run without a step has empty rows") {
  ClientTable table = table_of({1});
  table.set_times(1, 5, 0);
  CHECK(table.to_text() ==
        "  rank    steps   pushes   mean staleness   idle\n"
        "     1        0        0             0.00  0.0 %\n"
        "  pushes by staleness \n");
}

TEST_CASE("client table: clients that are no ranks, and one that has come back") {
  ClientTable table = table_of({1});
  table.note_death(1);
  table.add(1);
  CHECK(table.to_text("client") ==
        "  client    steps   pushes   mean staleness   idle\n"
        "       1        0        0             0.00  0.0 %\n"
        "  pushes by staleness \n");
}

TEST_CASE("client table: clients that have died keep their rows") {
  const std::string head = "  rank    steps   pushes   mean staleness   idle\n";
  const std::string end = "  pushes by staleness   0: 1\n";
  ClientTable table = table_of({1, 2, 3});
  table.add_push(2, 16, 0);
  table.note_death(3);
  CHECK(table.to_text() == head +
                               "     1        0        0             0.00  0.0 %\n"
                               "     2       16        1             0.00  0.0 %\n"
                               "     3        0        0             0.00  0.0 %  has died\n" +
                               end);
  table.keep_alive({1}, 0);
  CHECK(table.to_text() == head +
                               "     1        0        0             0.00  0.0 %\n"
                               "     2       16        1             0.00  0.0 %  has died\n"
                               "     3        0        0             0.00  0.0 %  has died\n" +
                               end);
}

TEST_CASE("client table: another server goes on with it, which was a client") {
  ClientTable former = table_of({1, 2, 3});
  former.add_push(1, 16, 3);
  former.add_push(2, 8, 9);
  former.set_times(1, 1, 8);
  std::istringstream packed(former.pack() + "and more");
  ClientTable table = table_of({7});
  table.unpack(packed);
  CHECK(table.to_text() == former.to_text());
  table.keep_alive({3}, 1);
  CHECK(table.to_text() ==
        "  rank    steps   pushes   mean staleness   idle\n"
        "     1       16        1             3.00 12.5 %  has taken over as server\n"
        "     2        8        1             9.00  0.0 %  has died\n"
        "     3        0        0             0.00  0.0 %\n"
        "  pushes by staleness   2 to 3: 1  8 to 15: 1\n");
}

}  // namespace plexaura::testing::client_table_test
