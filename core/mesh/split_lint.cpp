#include "core/mesh/split_lint.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "core/base/parse_text.h"

namespace shw {
namespace {

using Outcome = SplitForecast::Outcome;

// A limit of more rows than any weight has, and small enough for 64-bit arithmetic.
constexpr std::int64_t kMost = std::int64_t{1} << 40;

std::int64_t overlap(std::int64_t a_begin, std::int64_t a_end, std::int64_t b_begin,
                     std::int64_t b_end) {
  return std::max<std::int64_t>(0, std::min(a_end, b_end) - std::max(a_begin, b_begin));
}

// Rows in units of 1/(2 T), so that half of the wrong length is an integer.
struct Split {
  std::span<const std::int64_t> rows;
  std::int64_t tp;
  std::int64_t unit() const { return 2 * tp; }

  // Rows that FSDP rank f, whose rows begin at `begin`, contributes to a half: its rows inside the
  // half of an item that it assumes to be rows[f] / T long.
  std::int64_t part(std::size_t f, std::int64_t begin, bool second) const {
    std::int64_t from = second ? rows[f] : 0;
    return overlap(begin * unit(), (begin + rows[f]) * unit(), from, from + rows[f]);
  }
  // Rows of the half over all T ranks, as rank f computes them.
  std::int64_t claimed(std::size_t f) const { return rows[f] / unit() * tp; }
};

// Checks one half: chunks follow each other by FSDP rank within each tensor-parallel rank, and none
// may end after the size that its own rank claims.
std::optional<SplitForecast> bounds(const Split& split, const std::vector<std::int64_t>& parts) {
  std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  for (std::int64_t t : {std::int64_t{0}, split.tp - 1}) {  // the last one reaches furthest
    std::int64_t offset = t * all;
    for (std::size_t f = 0; f < parts.size(); ++f) {
      if (offset + parts[f] > split.claimed(f))
        return SplitForecast{Outcome::kBounds, 1, f, offset, parts[f], split.claimed(f), 0};
      offset += parts[f];
    }
  }
  return std::nullopt;
}

// Checks whether one half ends before the last rank's claim; only with one tensor-parallel rank.
std::optional<SplitForecast> boundary(const Split& split, const std::vector<std::int64_t>& parts) {
  std::size_t last = parts.size() - 1;
  std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  if (split.tp != 1 || all == split.claimed(last)) return std::nullopt;
  return SplitForecast{Outcome::kBoundary, 1, last, all, 0, split.claimed(last), 0};
}

}  // namespace

Result<SplitForecast> forecast_local_split(std::span<const std::int64_t> rows,
                                           std::int64_t tensor_parallel) {
  std::int64_t item = 0;
  bool sane = tensor_parallel >= 1 && tensor_parallel <= (1 << 16) && rows.size() <= (1 << 16);
  for (std::int64_t count : rows) {
    sane = sane && count >= 0 && count <= kMost / (1 << 16);
    if (sane) item += count;
  }
  if (!sane || item == 0 || item % 2 != 0)
    return fail(ErrorKind::kUsage,
                "a split names the rows of each rank, none below zero and an "
                "even number in all, and at least one tensor-parallel rank");
  Split split{rows, tensor_parallel};
  for (std::size_t f = 0; f < rows.size(); ++f) {
    if (rows[f] % 2 != 0) return SplitForecast{Outcome::kOddRows, 1, f, 0, 0, 0, rows[f]};
  }
  std::vector<std::int64_t> halves[2];
  std::int64_t begin = 0;
  for (std::size_t f = 0; f < rows.size(); ++f) {
    for (bool second : {false, true}) {
      std::int64_t part = split.part(f, begin, second);
      if (part % split.unit() != 0) return SplitForecast{Outcome::kReshape, 1, f, 0, 0, 0, 0};
      halves[second ? 1 : 0].push_back(part / split.unit());
    }
    begin += rows[f];
  }
  for (const auto& parts : halves) {
    if (auto stops = bounds(split, parts)) return *stops;
  }
  for (const auto& parts : halves) {
    if (auto stops = boundary(split, parts)) return *stops;
  }
  std::int64_t saved =
      tensor_parallel * (std::accumulate(halves[0].begin(), halves[0].end(), std::int64_t{0}) +
                         std::accumulate(halves[1].begin(), halves[1].end(), std::int64_t{0}));
  SplitForecast forecast;
  forecast.ratio = saved == 0 ? 1 : tensor_parallel * item / saved;
  forecast.outcome = forecast.ratio == 1 ? Outcome::kHarmless : Outcome::kSilentLoss;
  return forecast;
}

std::string_view name(SplitForecast::Outcome outcome) {
  switch (outcome) {
    case Outcome::kHarmless:
      return "harmless";
    case Outcome::kSilentLoss:
      return "silent";
    case Outcome::kOddRows:
      return "odd-rows";
    case Outcome::kReshape:
      return "reshape";
    case Outcome::kBounds:
      return "bounds";
    case Outcome::kBoundary:
      break;
  }
  return "boundary";
}

Result<std::vector<std::int64_t>> parse_rows(std::string_view text) {
  std::vector<std::int64_t> rows;
  while (true) {
    std::size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    const auto count = parse_number<std::int64_t>(one);
    if (!count)
      return fail(ErrorKind::kUsage, "\"" + std::string(one) + "\" is not a number of rows", {},
                  "Rows are given for each FSDP rank, in rank order: --rows 4,8");
    rows.push_back(*count);
    if (comma == std::string_view::npos) return rows;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(const SplitForecast& forecast) {
  switch (forecast.outcome) {
    case Outcome::kHarmless:
      return "harmless: every row is saved in its place";
    case Outcome::kSilentLoss:
      return fmt::format("silent: 1 row of {} is saved, the others are lost without an error",
                         forecast.ratio);
    case Outcome::kOddRows:
      return fmt::format("stops at rank {}: {} rows cannot be halved", forecast.rank, forecast.odd);
    case Outcome::kReshape:
      return fmt::format("stops at rank {}: its half is not a whole number of rows", forecast.rank);
    case Outcome::kBoundary:
      return fmt::format("stops at rank {}: boundary, ends at {} of {}", forecast.rank,
                         forecast.offset, forecast.limit);
    case Outcome::kBounds:
      break;
  }
  return fmt::format("stops at rank {}: bounds, off {}+{}>{}", forecast.rank, forecast.offset,
                     forecast.rows, forecast.limit);
}

}  // namespace shw
