// Final reports of several ranks, some with errors.
#include "core/cluster/rank_report.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

RankReport met(const std::string& message, const std::string& file = "") {
  return {Error{ErrorKind::kIo, message, {file}, ""}};
}

using ByRank = std::vector<std::optional<RankReport>>;

}  // namespace

TEST_CASE("what all workers met is said once and by nobody's name") {
  auto said = group_errors(ByRank(512, met("is not there", "ck")));
  REQUIRE(said.size() == 1);
  CHECK(said[0].of_all);
  CHECK(said[0].report.error->message == "is not there");
}

TEST_CASE("what one worker met is said by its name and what others heard of it is not") {
  auto said = group_errors({RankReport{}, met("worker 2 stopped: ck: is not there"),
                            met("is not there", "ck"), met("worker 2 stopped: ck: is not there")});
  REQUIRE(said.size() == 1);
  CHECK_FALSE(said[0].of_all);
  CHECK(rank_list_text(said[0]) == "worker 2");
  CHECK(said[0].report.error->place.file == "ck");
}

TEST_CASE("workers that met different things are all named") {
  ByRank report(9, met("a"));
  report[3] = met("a", "in a file");
  report[5] = RankReport{};
  report[7] = std::nullopt;  // never heard
  report[8] = RankReport{Error{ErrorKind::kIo, "a"}, "as it was put there"};
  auto said = group_errors(report);
  REQUIRE(said.size() == 3);
  CHECK(rank_list_text(said[0]) == "workers 0, 1, 2 and 2 more");
  CHECK(rank_list_text(said[1]) == "worker 3");
  CHECK(rank_list_text(said[2]) == "worker 8");
  for (const ErrorGroup& one : said) CHECK_FALSE(one.of_all);
  CHECK(rank_list_text({{1, 4}, false, {}}) == "workers 1 and 4");
  CHECK(rank_list_text({{1, 4, 6}, false, {}}) == "workers 1, 4 and 6");
}

TEST_CASE("where the one that stopped is gone what was heard of it is said") {
  auto said = group_errors({met("worker 3 stopped: lost its disk"),
                            met("worker 3 stopped: lost its disk"), std::nullopt, std::nullopt});
  REQUIRE(said.size() == 1);
  CHECK(said[0].of_all);
  CHECK(said[0].report.error->message == "worker 3 stopped: lost its disk");
  CHECK(group_errors(ByRank(4, RankReport{})).empty());
}

TEST_CASE("what to do now is said by whoever met what and known to the one who cleared away") {
  RankReport first = met("worker 2 stopped: ck: is full");
  first.error->advice = "go on with it";
  auto said = group_errors({first, RankReport{}, met("is full", "ck"), met("is full", "ck")});
  REQUIRE(said.size() == 1);
  CHECK(said[0].report.error->message == "is full");
  CHECK(said[0].report.error->advice == "go on with it");
  RankReport named = met("is full", "ck");
  named.error->advice = "make room; go on with it";
  said = group_errors({first, named});
  REQUIRE(said.size() == 1);
  CHECK(said[0].report.error->advice == named.error->advice);
}

TEST_CASE("last words come out of a message as they went in") {
  RankReport report{Error{ErrorKind::kUsage, "no such option", {"f", 12, "t"}, "try --help"},
                    "raw"};
  const Bytes bytes = packed(report);
  auto back = decode_rank_report(bytes);
  REQUIRE(back.has_value());
  CHECK(back->error->kind == ErrorKind::kUsage);
  CHECK(back->error->message == "no such option");
  CHECK(back->error->place.offset == 12);
  CHECK(back->error->advice == "try --help");
  CHECK(back->text == "raw");
  CHECK_FALSE(decode_rank_report(packed(RankReport{}))->error.has_value());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(decode_rank_report(BytesView(bytes).first(length)).has_value());
}
