#include "core/base/progress_line.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("progress_line: a line is read back with phase, amount and unit") {
  for (int phase = 0; phase <= static_cast<int>(Phase::kReporting); ++phase) {
    for (bool in_bytes : {false, true}) {
      Progress progress;
      const auto of = static_cast<Phase>(phase);
      const std::string line = progress_line(of, 3, 70, in_bytes);
      REQUIRE(line.ends_with("}}\n"));
      CHECK(read_progress_line(line, progress));
      CHECK(progress.phase == of);
      CHECK(progress.done == 3);
      CHECK(progress.total == 70);
      CHECK(progress.in_bytes == in_bytes);
    }
  }
}

TEST_CASE("progress_line: other lines change nothing") {
  Progress progress;
  progress.begin(Phase::kCopying, 5, true);
  for (const char* line :
       {"", "{\"progress\": {\"phase\": \"Dancing\", \"done\": 1, \"total\": 2}}",
        "{\"progress\": {\"phase\": \"Copying\", \"done\": -1, \"total\": 2}}",
        "{\"progress\": {\"phase\": \"Copying\", \"done\": 99999999999999999999, \"total\": 2}}",
        "{\"progress\": {\"phase\": \"Copying\"", "permission denied"}) {
    CAPTURE(line);
    CHECK_FALSE(read_progress_line(line, progress));
  }
  CHECK(progress.total == 5);
  CHECK(progress.phase == Phase::kCopying);
}
