#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "app/options/distributed_config.h"
#include "app/options/run_config.h"
#include "app/options/run_keys.h"
#include "tests/app/options/read_configuration.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"
#include "training/files/file.h"

namespace plexaura::testing::configuration_test {

namespace fs = std::filesystem;

TEST_CASE("every key that is read is described, with its default") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string idx = fmt::format("format: idx, path: {}", (folder / "digits").string());
  const std::string images = fmt::format("format: image_folder, path: {}", (folder / "images").string());
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  const std::set<std::string> given{"data.format",
                                    "data.path",
                                    "training.epochs",
                                    "training.batch_size",
                                    "training.optimizer.name",
                                    "training.optimizer.learning_rate",
                                    "training.optimizer.base_batch_size",
                                    "training.schedule.name"};
  const std::vector<KeyText> texts = all_key_texts();
  for (const Keys& run : {read(csv, sgd), read(idx, sgd + ", schedule: {name: cosine}"),
                          read(images, sgd + ", schedule: {name: one_cycle}")})
    for (const auto& [key, value] : run) {
      CAPTURE(key);
      if (given.contains(key)) continue;
      CHECK(std::ranges::any_of(
          texts, [&](const KeyText& text) { return text.path == key && text.otherwise == value; }));
    }
}

TEST_CASE("the default of on_loss follows from the other keys") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  const auto on_loss = [&](const std::string& distributed) {
    return read(csv, sgd, distributed).at("distributed.on_loss");
  };
  CHECK(on_loss("") == "\"exact\"");
  for (const std::string compression : {"top-k", "powersgd", "auto"})
    CHECK(on_loss("compression: " + compression) == "\"end\"");
  for (const std::string strategy : {"local", "elastic", "async-server, max_staleness: 4"})
    CHECK(on_loss("strategy: " + strategy) == "\"drop\"");
  for (const std::string strategy : {"local, delay: 1", "async-server, group: 2", "downpour, servers: 2"})
    CHECK(on_loss("strategy: " + strategy) == "\"end\"");
}

TEST_CASE("keys without effect are errors") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  CHECK(user_error([&] { read(csv + ", horizontal_flip: true", sgd); })
            .find("data.horizontal_flip has no effect here, because data.format is csv; remove it, or choose "
                  "image_folder") != std::string::npos);
  CHECK(user_error([&] {
          read(csv + ", folds: 5, validation_share: 0.5", sgd);
        }).find("validation_share and folds are both given") != std::string::npos);
  CHECK(user_error([&] { read(csv, sgd + ", schedule: {name: one_cycle, warmup_epochs: 1}"); })
            .find("training.schedule.warmup_epochs has no effect here, because training.schedule.name is "
                  "one_cycle; "
                  "remove it") != std::string::npos);
  CHECK(user_error(
            [&] { read(csv, "batch_size: 2, optimizer: {name: adam, learning_rate: 0.1, momentum: 0.9}"); })
            .find("training.optimizer.momentum has no effect here, because training.optimizer.name is adam; "
                  "remove it") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1, beta1: 0.9}");
        }).find("beta1 has no effect here, because training.optimizer.name is sgd") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: local, overlap: on");
        }).find("distributed.overlap has no effect here, because distributed.strategy is local") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: lamb, learning_rate: 0.1, trust_coefficient: 0.1}");
        }).find("trust_coefficient has no effect here, because training.optimizer.name is lamb") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd + ", schedule: {name: cosine, gamma: 0.5}");
        }).find("gamma has no effect here, because training.schedule.name is cosine") != std::string::npos);
  for (const std::string key :
       {"every: 2", "fragments: 2", "delay: 1", "first_epochs: 1", "outer: {momentum: 0.9}",
        "elasticity: 0.5", "servers: 2", "group: 2", "push_every: 2", "max_staleness: 2", "client: threaded",
        "mix: 0.5", "damping: 1"})
    CHECK(user_error([&] {
            read(csv, sgd, key);
          }).find("has no effect here, because distributed.strategy is allreduce") != std::string::npos);
  for (const std::string key : {"bucket_bytes: 2", "rebroadcast_every: 1", "verify_every: 2"})
    for (const std::string strategy : {"local", "elastic", "async-server", "downpour"})
      CHECK(user_error([&] {
              read(csv, sgd, "strategy: " + strategy + ", " + key);
            }).find("has no effect here, because distributed.strategy is " + strategy) != std::string::npos);
  for (const std::string key :
       {"verify_every: 2", "rebroadcast_every: 1", "on_loss: drop", "algorithm: tree"})
    CHECK(user_error([&] {
            read(csv, sgd, "strategy: scatter-gather, " + key);
          }).find("has no effect here, because distributed.strategy is scatter-gather") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: reduce-broadcast, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and distributed.strategy is reduce-broadcast; ") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: downpour, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and distributed.strategy is downpour; ") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "algorithm: ring, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and distributed.algorithm is ring; ") != std::string::npos);
  for (const std::string compression : {"none", "bf16"})
    CHECK(
        user_error([&] {
          read(csv, sgd, "compression_ratio: 0.1, compression: " + compression);
        }).find("compression_ratio has no effect here, because distributed.compression is " + compression) !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "compression: top-k, compression_rank: 2");
        }).find("compression_rank has no effect here, because distributed.compression is top-k") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "compression: top-k, compression_ratio: 0");
        }).find("distributed.compression_ratio is '0'; it must be") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "compression: bf16, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and distributed.compression is bf16, ") != std::string::npos);
  CHECK(user_error([&] { read(csv, sgd + ", precision: float64", "compression: fp16"); })
            .find("distributed.compression is 'fp16', which compresses float32, and training.precision is "
                  "float64; ") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "compression: auto, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and distributed.compression is auto, ") != std::string::npos);
  CHECK(user_error([&] { read(csv, sgd + ", precision: float64", "compression: auto"); })
            .find("distributed.compression is 'auto', which compresses float32, and training.precision is "
                  "float64; ") != std::string::npos);
  for (const std::string algorithm : {"ring", "tree", "mpi"})
    CHECK(user_error([&] { read(csv, sgd, "compression: auto, algorithm: " + algorithm); })
              .find("distributed.compression is 'auto', which cannot estimate what the algorithm " +
                    algorithm + " takes; remove distributed.algorithm, or name a compression") !=
          std::string::npos);
  for (const std::string compression : {"auto", "powersgd"})
    for (const std::string strategy : {"local", "elastic"})
      CHECK(user_error([&] {
              read(csv, sgd, "strategy: " + strategy + ", compression: " + compression);
            }).find("distributed.compression is '" + compression + "'; it must be") != std::string::npos);
  CHECK(user_error([&] { read(csv, sgd + ", precision: float64", "strategy: local, compression: fp16"); })
            .find("distributed.compression is 'fp16', which compresses float32, and training.precision is "
                  "float64; ") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: local, every: 10, fragments: 4");
        }).find("distributed.fragments is 4, and every is 10; give a divisor of that") != std::string::npos);
  for (const std::string keys : {"every: 8, delay: 8", "every: 8, fragments: 2, delay: 4", "delay: -1"})
    CHECK(user_error([&] { read(csv, sgd, "strategy: local, " + keys); }).find("distributed.delay is '") !=
          std::string::npos);
  CHECK(
      user_error([&] { read(csv, sgd, "strategy: local, delay: 2, on_loss: drop"); })
          .find("distributed.on_loss is 'drop', and the exchange under way would be lost with a rank, since "
                "distributed.delay is above 0; remove one of them") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: local, delay: 2, algorithm: mpi");
        }).find("distributed.delay is above 0, and distributed.algorithm is mpi; remove one of them") !=
        std::string::npos);
  CHECK(user_error([&] { read(csv, sgd, "strategy: reduce-broadcast, compression: fp16"); })
            .find("distributed.compression has no effect here, because distributed.strategy is "
                  "reduce-broadcast") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: send-recv, on_loss: drop");
        }).find("has no effect here, because distributed.strategy is send-recv, which needs its rank 0") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: local, first_epochs: 2");
        }).find("distributed.first_epochs is 2, and training.epochs is 2; give a smaller number") !=
        std::string::npos);
  for (const std::string key : {"every: 2", "algorithm: ring"})
    CHECK(user_error([&] {
            read(csv, sgd, "strategy: downpour, " + key);
          }).find("has no effect here, because distributed.strategy is downpour") != std::string::npos);
  for (const std::string key : {"push_every: 0", "push_every: epochs", "mix: 0", "mix: 1.5", "damping: -1",
                                "max_staleness: -1", "client: parallel", "servers: 0", "group: 0"}) {
    const std::string said = user_error([&] { read(csv, sgd, "strategy: async-server, " + key); });
    CAPTURE(said);
    CHECK(said.starts_with("test.yaml:3:"));
    CHECK(said.find("distributed." + key.substr(0, key.find(':')) + " is '") != std::string::npos);
  }
  const TemporaryFolder folder;
  write_images(folder / "images");
  CHECK(user_error([&] {
          read(fmt::format("format: image_folder, augment: false, horizontal_flip: true, path: {}",
                           (folder / "images").string()),
               sgd);
        }).find("horizontal_flip has no effect here, because data.augment is false") != std::string::npos);
}

TEST_CASE("a run whose ranks end with one that dies names the key by which they do") {
  const auto why = [](const std::string& distributed) {
    const Config config = Config::parse(
        fmt::format("data: {{format: csv, path: {}/models/iris.csv}}\ntraining: {{epochs: 2, batch_size: 2, "
                    "optimizer: {{name: sgd, learning_rate: 0.1}}}}\ndistributed: {{{}}}\n",
                    PLEXAURA_SOURCE, distributed),
        "test.yaml");
    const RunOptions run = read_options(config, open_data(config).train->size(), 2);
    REQUIRE(run.on_loss == OnLoss::end);
    const std::string text = why_others_end(config, run);
    const std::string begin =
        "when a rank dies, all others end, although this MPI would let them continue, because distributed.";
    CHECK(text.starts_with(begin));
    return text.substr(std::min(begin.size(), text.size()));
  };
  CHECK(why("strategy: scatter-gather") == "strategy is scatter-gather; choose allreduce");
  CHECK(why("strategy: local, delay: 2") ==
        "delay is above 0, and the exchange under way would be lost with a rank; set it to 0");
  CHECK(why("strategy: send-recv") == "strategy is send-recv; choose allreduce");
  CHECK(why("strategy: reduce-broadcast") ==
        "strategy is reduce-broadcast; choose allreduce, or set distributed.on_loss to drop");
  CHECK(why("algorithm: ring")
            .ends_with("algorithm is ring; choose one of auto, window, hierarchical, or set "
                       "distributed.on_loss to drop"));
  CHECK(why("compression: bf16") ==
        "compression is bf16, and what a lost rank owed is lost with it; choose none, or set "
        "distributed.on_loss to drop");
  CHECK(why("on_loss: end") == "on_loss is end; set it to exact or drop");
  CHECK(why("on_loss: end, strategy: downpour") == "on_loss is end; set it to drop");
  CHECK(why("servers: 2, on_loss: end, strategy: downpour") ==
        "servers is above 1, and the weights of a server would be lost with it; set it to 1");
  CHECK(why("group: 2, on_loss: end, strategy: downpour") ==
        "group is above 1, and a client would lose one of its ranks; set it to 1");
  CHECK(why("on_loss: end, algorithm: ring") == "on_loss is end; set it to drop");
  CHECK(why("on_loss: end, strategy: elastic") == "on_loss is end; set it to drop");
}

TEST_CASE("with strategies of which each rank keeps its own weights, the others go on by default") {
  for (const std::string strategy : {"local", "elastic"}) {
    const auto read = [&](const std::string& more) {
      const Config config = Config::parse(
          fmt::format(
              "data: {{format: csv, path: {}/models/iris.csv}}\ntraining: {{epochs: 2, batch_size: 2, "
              "optimizer: {{name: sgd, learning_rate: 0.1}}}}\ndistributed: {{strategy: {}{}}}\n",
              PLEXAURA_SOURCE, strategy, more),
          "test.yaml");
      return read_options(config, open_data(config).train->size(), 2).on_loss;
    };
    CHECK(read("") == OnLoss::drop);
    CHECK(read(", on_loss: end") == OnLoss::end);
    CHECK(user_error([&] { read(", on_loss: exact"); })
              .ends_with("distributed.on_loss is 'exact' and distributed.strategy is " + strategy +
                         "; choose allreduce, or drop"));
  }
}

TEST_CASE("the size of buckets is looked for where allreduce is given none") {
  const auto read_buckets = [](const std::string& distributed) {
    const Config config = Config::parse(
        fmt::format("training: {{epochs: 2, batch_size: 2, optimizer: {{name: sgd, learning_rate: 0.1}}}}\n"
                    "distributed: {{{}}}\n",
                    distributed),
        "test.yaml");
    const RunOptions run = read_options(config, 4, 2);
    return std::pair(run.finds_buckets, run.trainer.bucket_bytes);
  };
  CHECK(read_buckets("") == std::pair(true, std::int64_t{25 << 20}));
  CHECK(read_buckets("bucket_bytes: auto") == std::pair(true, std::int64_t{25 << 20}));
  CHECK(read_buckets("bucket_bytes: 5") == std::pair(false, std::int64_t{5}));
  CHECK(read_buckets("strategy: send-recv") == std::pair(false, std::int64_t{25 << 20}));
}

TEST_CASE("a rate names its key, and the peak where it is above that") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const auto refusal = [&](const std::string& training) {
    return user_error([&] { read(csv, "batch_size: 2, " + training); });
  };
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 0.1}, schedule: {name: cosine, floor: 5}")
            .ends_with(
                "training.schedule.floor is 5, above the peak: training.optimizer makes the learning rate "
                "0.1; give at most that"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 0.1}, goal: {metric: coverage}")
            .ends_with(
                "training.goal.mode is missing, and does not follow from the name 'coverage' of the metric; "
                "give max if larger values are better, and otherwise min"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 0.1}, goal: {patience: 3}")
            .find("training.goal.patience has no effect here") != std::string::npos);
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e-46}")
            .ends_with(
                "training.optimizer.learning_rate is 1e-46, which is 0 in float32; give a larger number"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e39}")
            .ends_with("is 1e+39, which is infinite in float32; give a smaller number"));
  CHECK(refusal("precision: float64, optimizer: {name: sgd, learning_rate: 1e-46}").empty());
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e308, base_batch_size: 1}")
            .ends_with(
                "training.optimizer.learning_rate is 1e+308, which is infinite in float32; give a smaller "
                "number"));
  CHECK(refusal("precision: float64, optimizer: {name: sgd, learning_rate: 1e308, base_batch_size: 1}") ==
        "test.yaml:2:120: training.optimizer.base_batch_size is 1 and the batch has 2 samples, so that the "
        "learning rate 1e+308 becomes inf, which is infinite in float64; give a larger number");
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e-36, base_batch_size: 1000}")
            .ends_with("becomes 2e-39, which is 0 in float32; give a smaller number"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e39, base_batch_size: 1000}").empty());
}

TEST_CASE("each precision has its arenas, and another one is refused") {
  const auto types = [&](const std::string& precision) {
    const Config config = Config::parse(
        fmt::format("training: {{precision: {}, epochs: 2, batch_size: 2, optimizer: {{name: sgd, "
                    "learning_rate: 0.1}}}}",
                    precision),
        "test.yaml");
    return read_options(config, 0, 1).types;
  };
  CHECK(types("float64") == ArenaTypes::all(DType::float64));
  CHECK(types("bfloat16") == ArenaTypes::mixed(DType::bfloat16));
  CHECK(types("float16") == ArenaTypes::mixed(DType::float16));
  const std::string text = user_error([&] { types("half"); });
  CHECK(text.starts_with("test.yaml:1:23: training.precision"));
  CHECK(text.find("one of float32, float64, bfloat16, float16") != std::string::npos);
}

TEST_CASE("float16 is for strategies whose ranks share a loss scale, without compression") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string training =
      "precision: float16, batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  const auto refusal = [&](const std::string& distributed) {
    return user_error([&] { read(csv, training, distributed); });
  };
  for (const std::string strategy : {"scatter-gather", "local", "elastic", "async-server", "downpour"}) {
    const std::string text = refusal("strategy: " + strategy);
    CHECK(text.starts_with("test.yaml:3:25: distributed.strategy is '" + strategy + "', and "));
    CHECK(text.find("precision is float16, for whose loss scale all ranks have to ") != std::string::npos);
  }
  CHECK(refusal("compression: bf16")
            .find("distributed.compression is 'bf16', and gradients of training.precision float16 may be "
                  "infinite, which compression spreads; ") != std::string::npos);
  CHECK(refusal("strategy: reduce-broadcast").empty());
}

TEST_CASE("averages of weights are for strategies whose ranks update alike") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const auto refusal = [&](const std::string& ema, const std::string& strategy) {
    return user_error([&] {
      read(csv, fmt::format("ema: {}, batch_size: 2, optimizer: {{name: sgd, learning_rate: 0.1}}", ema),
           "strategy: " + strategy);
    });
  };
  for (const std::string strategy : {"scatter-gather", "local", "elastic", "async-server", "downpour"})
    CHECK(refusal("0.9", strategy) ==
          "test.yaml:3:25: distributed.strategy is '" + strategy +
              "', and training.ema averages the weights over updates, which all ranks have to make alike; "
              "remove training.ema, or choose the strategy allreduce");
  for (const std::string strategy : {"allreduce", "reduce-broadcast", "send-recv"})
    CHECK(refusal("0.9", strategy).empty());
  for (const std::string ema : {"0", "1", "-0.5", "nan", "often"})
    CHECK(refusal(ema, "allreduce").find("training.ema is ") != std::string::npos);
}

TEST_CASE("a number of the optimizer that is lost in the precision names its key") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const auto refusal = [&](const std::string& precision, const std::string& optimizer) {
    return user_error([&] {
      read(csv, fmt::format("precision: {}, batch_size: 2, optimizer: {{learning_rate: 0.1, {}}}", precision,
                            optimizer));
    });
  };
  for (const auto& [optimizer, key] :
       std::map<std::string, std::string>{{"name: lars", "trust_coefficient"},
                                          {"name: adam", "epsilon"},
                                          {"name: sgd", "weight_decay"},
                                          {"name: lamb", "max_gradient_norm"},
                                          {"name: rmsprop", "epsilon"},
                                          {"name: adagrad", "initial_accumulator"}}) {
    const auto with = [&](const std::string& value) {
      return fmt::format("{}, {}: {}", optimizer, key, value);
    };
    CAPTURE(key);
    const std::string said = refusal("float32", with("1e-39"));
    CHECK(said.starts_with("test.yaml:2:"));
    CHECK(said.ends_with(
        fmt::format("training.optimizer.{} is 1e-39, which is 0 in float32; give a larger number", key)));
    CHECK(refusal("float64", with("1e-320")).ends_with("which is 0 in float64; give a larger number"));
    CHECK(refusal("float32", with("1e39"))
              .ends_with("is 1e+39, which is infinite in float32; give a smaller number"));
    for (const char* kept : {"1e-37", "3.4028235e38", "1.17549435e-38"})
      CHECK(refusal("float32", with(kept)).empty());
    CHECK(refusal("float64", with("1e-39")).empty());
  }
}

TEST_CASE("the learning rate for a base batch grows with the batch") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const auto rate = [&](const std::string& batch, const std::string& optimizer) {
    const Config config = Config::parse(
        fmt::format(
            "data: {{{}}}\ntraining: {{epochs: 2, {}, optimizer: {{name: sgd, learning_rate: 0.1{}}}}}\n",
            csv, batch, optimizer),
        "test.yaml");
    return read_options(config, open_data(config).train->size(), 2).trainer.learning_rate.learning_rate(0);
  };
  CHECK(rate("batch_size: 3", "") == 0.1);
  CHECK(rate("batch_size: 8", ", base_batch_size: 2") == doctest::Approx(0.4));
  CHECK(rate("batch_size: 1000", ", base_batch_size: 60") == doctest::Approx(0.2));  // there are 120 samples
  CHECK(rate("batch_per_rank: 8", ", base_batch_size: 4") == doctest::Approx(0.4));
}

TEST_CASE("sizes have bounds, and each error names its key") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string idx = fmt::format("format: idx, path: {}", (folder / "digits").string());
  const std::string optimizer = "optimizer: {name: sgd, learning_rate: 0.1}";
  const auto check = [](const std::string& data, const std::string& training, const std::string& wanted) {
    const std::string text = user_error([&] { read(data, training); });
    CAPTURE(text);
    CAPTURE(wanted);
    CHECK(text.starts_with("test.yaml:"));
    CHECK(text.find(wanted) != std::string::npos);
  };
  const std::string sgd = "batch_size: 2, " + optimizer;
  check(csv, "batch_size: 2147483649, " + optimizer,
        "training.batch_size is '2147483649'; it must be a whole number >= 1 and <= 2147483648");
  check(csv, "batch_per_rank: 1073741825, " + optimizer,
        "training.batch_per_rank is '1073741825'; it must be a whole number >= 1 and <= 1073741824");
  check(csv, "batch_size: 2, batch_per_rank: 1, " + optimizer,
        "training.batch_size and batch_per_rank are both given; give one of them");
  check(csv, optimizer,
        "training.batch_size is missing; give the samples of a step over all ranks, or those of one rank as "
        "batch_per_rank");
  check(csv, sgd + ", micro_batches: 3",
        "training.micro_batches is '3'; it must be a whole number >= 1 and <= 2");
  check(csv, "batch_size: 1000, micro_batches: 121, " + optimizer,
        "training.micro_batches is '121'; it must be a whole number >= 1 and <= 120");
  check(csv, sgd + ", schedule: {name: step, every_epochs: 1e300}",
        "training.schedule.every_epochs is '1e300'");
  check(csv, sgd + "}\ndistributed: {deadline_seconds: 1e10",
        "distributed.deadline_seconds is '1e10'; it must be a number >= 0.1 and <= 1000000");
  check(csv + ", validation_share: 0.999999", sgd,
        "data.validation_share is 0.999999, which leaves 0 of the 150 samples to train on and none of the "
        "class '");
  check(csv + ", folds: 151", sgd,
        "data.folds is 151 and there are 150 samples; give at most one part a sample");
  check(idx + ", classes: 9999999999", sgd,
        "data.classes is '9999999999'; it must be a whole number >= 2 and <= 1000000");
  check(idx + ", stddev: 1e-300", sgd,
        "data.stddev is '1e-300'; it must be a number >= 1e-06 and <= 1000000");
  check(idx + ", mean: 1e300", sgd, "data.mean is '1e300'; it must be a number >= -1000000 and <= 1000000");
  CHECK_NOTHROW(read(csv + ", folds: 150", "batch_size: 2147483648, micro_batches: 120, " + optimizer));
}

TEST_CASE("a checkpoint is no folder of checkpoints") {
  const TemporaryFolder folder;
  write_text(folder / "state.safetensors", "");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}}\noutput: {dir: " +
                        folder.path().string());
        }) == "test.yaml:3:15: output.dir '" + folder.path().string() +
                  "' is a checkpoint; name the folder that contains it");
}

}  // namespace plexaura::testing::configuration_test
