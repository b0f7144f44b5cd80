#include "core/mesh/split_lint.h"

#include <doctest/doctest.h>

#include <vector>

using namespace shw;
using Outcome = SplitForecast::Outcome;

namespace {

SplitForecast of(const std::vector<std::int64_t>& rows, std::int64_t tp) {
  auto forecast = forecast_local_split(rows, tp);
  REQUIRE(forecast.has_value());
  return *forecast;
}

// The rule of failures.md 3.a as written there, for splits whose rows are all even.
bool is_silent(const std::vector<std::int64_t>& rows, std::int64_t tp) {
  std::size_t first = 0;
  while (rows[first] == 0) ++first;
  bool equal = true;
  for (std::size_t f = first; f < rows.size(); ++f) equal = equal && rows[f] == rows[first];
  if (tp == 1) return equal && rows.size() - first >= 2;
  return equal && first == 0 && rows[0] % (2 * tp) == 0;
}

}  // namespace

TEST_CASE("F2.4: what a split will come to is known before it is saved") {
  CHECK(to_text(of({4, 8}, 1)) == "stops at rank 1: bounds, off 2+4>4");
  CHECK(to_text(of({5, 7}, 1)) == "stops at rank 0: 5 rows cannot be halved");
  CHECK(of({0, 4, 4}, 1).outcome == Outcome::kSilentLoss);
  CHECK(of({0, 4, 4}, 1).ratio == 2);
  CHECK(of({2, 2, 2, 2}, 1).outcome == Outcome::kSilentLoss);
  CHECK(of({2, 2, 2, 2}, 1).ratio == 4);
  CHECK(of({0, 0, 8}, 1).outcome == Outcome::kHarmless);
  CHECK(of({4, 4}, 2).outcome == Outcome::kSilentLoss);
  CHECK(of({4, 4}, 2).ratio == 4);
  CHECK(of({6, 6}, 2).outcome == Outcome::kReshape);
  CHECK(of({0, 8}, 2).outcome == Outcome::kBounds);
  // A single owner, and the one uneven split that is silently lost.
  CHECK(to_text(of({8}, 2)) == "silent: 1 row of 2 is saved, the others are lost without an error");
  CHECK(of({4, 8}, 2).ratio == 6);
  CHECK(to_text(of({2, 2, 4}, 1)) == "stops at rank 2: boundary, ends at 1 of 2");
}

TEST_CASE("every even split of 8 and of 12 rows comes to what the report found") {
  for (std::int64_t item : {8, 12}) {
    for (std::int64_t tp : {1, 2}) {
      for (std::int64_t a = 0; a <= item; a += 2) {
        for (std::int64_t b = 0; a + b <= item; b += 2) {
          for (std::int64_t c = 0; a + b + c <= item; c += 2) {
            std::vector<std::int64_t> rows{a, b, c, item - a - b - c};
            CAPTURE(tp);
            CAPTURE(a);
            CAPTURE(b);
            CAPTURE(c);
            SplitForecast forecast = of(rows, tp);
            CHECK(forecast.loses_rows_silently() == is_silent(rows, tp));
            if (tp == 1) CHECK((forecast.outcome == Outcome::kHarmless) == (rows[3] == item));
          }
        }
      }
    }
  }
}

TEST_CASE("what is not a split is refused") {
  CHECK_FALSE(forecast_local_split(std::vector<std::int64_t>{}, 1).has_value());
  CHECK_FALSE(forecast_local_split(std::vector<std::int64_t>{0, 0}, 1).has_value());
  CHECK_FALSE(forecast_local_split(std::vector<std::int64_t>{4, -4}, 1).has_value());
  CHECK_FALSE(forecast_local_split(std::vector<std::int64_t>{4, 4}, 0).has_value());
  CHECK_FALSE(
      forecast_local_split(std::vector<std::int64_t>{std::int64_t{1} << 62, 2}, 1).has_value());
}

TEST_CASE("rows are read as a person types them") {
  CHECK(parse_rows("4,8").value() == std::vector<std::int64_t>{4, 8});
  CHECK(parse_rows("12").value() == std::vector<std::int64_t>{12});
  for (const char* wrong : {"", ",", "4,", ",4", "4 8", "4,+8", "4;8", "99999999999999999999"})
    CHECK_FALSE(parse_rows(wrong).has_value());
  CHECK(parse_rows("-4,8").has_value());  // a number but not a split: the forecast refuses it
}
