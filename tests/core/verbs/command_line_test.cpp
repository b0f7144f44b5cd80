#include "core/verbs/command_line.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

VerbOptions all_said() {
  return {.checkpoint = "runs/step 9",
          .spec = "spec.json",
          .against = "it's",
          .mesh = "dp=4,tp=2",
          .depth = Depth::kData,
          .fill = "from:old",
          .plan = "",
          .out = "mended",
          .in_place = false};
}

}  // namespace

TEST_CASE("a command is quoted as a shell reads it and says all that the verb takes") {
  CHECK(command_line("check", all_said()) ==
        "shardwright check 'runs/step 9' --spec spec.json --against 'it'\\''s' --mesh dp=4,tp=2 "
        "--data");
  CHECK(command_line("repair", all_said()) ==
        "shardwright repair 'runs/step 9' --spec spec.json --against 'it'\\''s' --mesh dp=4,tp=2 "
        "--data --fill from:old --out mended");
  CHECK(command_line("gui", all_said()) ==
        "shardwright gui 'runs/step 9' --spec spec.json --against 'it'\\''s' --mesh dp=4,tp=2");
  CHECK(command_line("verify", all_said()) == "shardwright verify 'runs/step 9'");
}

TEST_CASE("a repair of a format without a writer ends with a conversion") {
  VerbOptions options;
  options.checkpoint = "run";
  CHECK(repair_command_line(Checkpoint(), options) == "shardwright repair run --then convert:dcp");
  options.then = {"cast:bf16"};
  CHECK(repair_command_line(Checkpoint(), options) == "shardwright repair run --then cast:bf16");
}

TEST_CASE("a plan from a file says by itself what is expected and filled") {
  VerbOptions options = all_said();
  options.plan = "plan.json";
  options.in_place = true;
  options.out.clear();
  CHECK(command_line("repair", options) ==
        "shardwright repair 'runs/step 9' --plan plan.json --in-place");
}

TEST_CASE("a check and a report are made again with what was known and is required") {
  VerbOptions options;
  options.checkpoint = "c";
  options.baseline = "a b.json";
  options.policy = "p";
  CHECK(command_line("check", options) == "shardwright check c --baseline 'a b.json' --policy p");
  CHECK(command_line("report", options) == "shardwright report c --baseline 'a b.json' --policy p");
  CHECK(command_line("repair", options) == "shardwright repair c");
}
