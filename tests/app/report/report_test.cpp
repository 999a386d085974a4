#include "app/report/report.h"

#include <doctest/doctest.h>

namespace plexaura::testing::report_test {

TEST_CASE("report: what was exchanged, with what is known of it") {
  ExchangeRecord record{.bytes = 41'700'000, .seconds = 0.521, .waited_seconds = 0.521};
  CHECK(exchange_text(record) == "exchanged 41.7 MB in 521 ms (80.0 MB/s)  overlap off");
  record.sent_bytes = 0;
  CHECK(exchange_text(record) == "exchanged 41.7 MB in 521 ms (80.0 MB/s)  sent nothing  overlap off");
  record.sent_bytes = 20'900'000;
  record.overlaps = true;
  record.waited_seconds = 0.1042;
  CHECK(exchange_text(record) ==
        "exchanged 41.7 MB in 521 ms (80.0 MB/s)  sent 20.9 MB  waited 104 ms  overlap 80 %");
  record.seconds = 0.01;
  record.waited_seconds = 0.00002;
  CHECK(exchange_text(record) ==
        "exchanged 41.7 MB in 10 ms (4.17 GB/s)  sent 20.9 MB  waited 0.02 ms  overlap 100 %");
  record.seconds = 2;
  record.waited_seconds.reset();
  CHECK(exchange_text(record) == "exchanged 41.7 MB in 2.00 s (20.8 MB/s)  sent 20.9 MB  overlap on");
}

TEST_CASE("report: parameters that are not trained are named, if there are many only the first") {
  CHECK(dead_gradients_sentence({"'a' is zero everywhere", "'b' has NaN at element 2"}) ==
        "some parameters are not trained: the gradient of 'a' is zero everywhere, of 'b' has NaN at element "
        "2; --check-gradients names the ops that make them so");
  const std::vector<std::string> many(7, "'c' is zero everywhere");
  CHECK(dead_gradients_sentence(many).find("everywhere, and 2 more; --check") != std::string::npos);
}

TEST_CASE("report: for whom the others waited") {
  CHECK(straggler_text({.number = 3, .seconds = 1.2}) == "the others waited 1.20 s for rank 3");
}

}  // namespace plexaura::testing::report_test
