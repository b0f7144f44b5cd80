// The text of a check for terminals. Plain UTF-8; colour only if requested.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/model/checkpoint.h"
#include "core/rules/check.h"
#include "core/rules/unjudged.h"

namespace shw {

struct TextOptions {
  bool colour = false;
  std::size_t width = 100;  // columns at which sentences wrap
  std::string checkpoint;   // as typed by the user: for the suggested command
  std::string spec;         // as typed; may be empty
  std::string mesh;         // as typed; may be empty
  std::string against;      // as typed; may be empty
  std::string then;         // last step of a repair in suggested commands; set by check_to_text()
  std::optional<Depth> depth = {};  // as typed
  // False if tensors of missing files have unknown shapes, so that nothing can fill them; set by
  // check_to_text().
  bool can_fill = true;
  bool all_subjects = false;         // false: at most 8 per finding, and the number of others
  Severity least = Severity::kInfo;  // findings below it are only counted
};

// "DCP, torch 2.14 · 1,142 tensors · 64 ranks · 3.02 GB"
std::string headline(const Checkpoint& checkpoint);
// "coverage has gaps, files are gone"; empty if all tiles and their bytes exist as recorded.
std::string unchecked_coverage_text(const CheckReport& report);
// "not checked:", and a line per need; no newline at the end.
std::string not_checked_text(std::span<const Unjudged> unjudged, std::size_t width);
// Headline with the coverage, findings, and the closing line.
std::string check_to_text(const Checkpoint& checkpoint, const CheckReport& report,
                          const TextOptions& options);
// Text of an error that ends a run: "step_9000/.metadata: cut off at byte 48,213: ...", with
// advice.
std::string error_to_text(const Error& error, const TextOptions& options = {});
// Text of `explain ID`.
std::string rule_to_text(const Rule& rule, const TextOptions& options = {});

}  // namespace shw
