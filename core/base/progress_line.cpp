#include "core/base/progress_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace shw {
namespace {

constexpr std::array<std::pair<Phase, std::string_view>, 10> kTitles{{
    {Phase::kIdle, "Waiting"},
    {Phase::kOpening, "Reading metadata"},
    {Phase::kCheckingMetadata, "Checking metadata"},
    {Phase::kReadingHeaders, "Reading headers"},
    {Phase::kReadingBytes, "Reading bytes"},
    {Phase::kPlanning, "Planning"},
    {Phase::kCopying, "Copying"},
    {Phase::kWritingMetadata, "Writing metadata"},
    {Phase::kVerifying, "Verifying"},
    {Phase::kReporting, "Writing the report"},
}};

bool skip_text(std::string_view& line, std::string_view text) {
  if (!line.starts_with(text)) return false;
  line.remove_prefix(text.size());
  return true;
}

bool skip_number(std::string_view& line, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return true;
}

}  // namespace

std::string_view phase_title(Phase phase) {
  const auto* found = std::find_if(kTitles.begin(), kTitles.end(),
                                   [&](const auto& row) { return row.first == phase; });
  return found == kTitles.end() ? "" : found->second;
}

std::string progress_line(Phase phase, std::uint64_t done, std::uint64_t total, bool in_bytes) {
  return fmt::format(
      "{{\"progress\": {{\"phase\": \"{}\", \"done\": {}, \"total\": {}, \"unit\": \"{}\"}}}}\n",
      phase_title(phase), done, total, in_bytes ? "bytes" : "items");
}

bool read_progress_line(std::string_view line, Progress& progress) {
  if (!skip_text(line, "{\"progress\": {\"phase\": \"")) return false;
  const auto* found = std::find_if(kTitles.begin(), kTitles.end(), [&](const auto& row) {
    return line.starts_with(row.second) && line.substr(row.second.size()).starts_with('"');
  });
  if (found == kTitles.end()) return false;
  line.remove_prefix(found->second.size());
  std::uint64_t done = 0, total = 0;
  if (!skip_text(line, "\", \"done\": ") || !skip_number(line, done) ||
      !skip_text(line, ", \"total\": ") || !skip_number(line, total))
    return false;
  const bool in_bytes = skip_text(line, ", \"unit\": \"bytes\"");
  progress.total = total;
  progress.in_bytes = in_bytes;
  progress.phase = found->first;
  progress.done = std::min(done, total == 0 ? done : total);
  return true;
}

}  // namespace shw
