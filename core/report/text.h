// A check as a person reads it at a terminal (spec/look.md). Plain UTF-8; colour only when asked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw {

struct TextOptions {
  bool colour = false;
  std::size_t width = 100;           // columns at which sentences wrap
  std::string checkpoint;            // as the person typed it: for the command to type next
  std::string spec;                  // likewise, may be empty
  std::string mesh;                  // likewise
  std::string against;               // likewise
  std::optional<Depth> depth = {};   // likewise
  bool all_subjects = false;         // otherwise 8 a finding, and how many more
  Severity least = Severity::kInfo;  // findings below are only counted
};

// "DCP, torch 2.14 · 1,142 tensors · 64 ranks · 3.02 GB"
std::string headline(const Checkpoint& checkpoint);
// "coverage has gaps, files are gone"; empty where every tile and its bytes are there as recorded.
std::string unchecked_coverage_text(const CheckReport& report);
// Headline with the coverage, findings, and the closing line.
std::string check_to_text(const Checkpoint& checkpoint, const CheckReport& report,
                          const TextOptions& options);
// An error that ends a run: "step_9000/.metadata: cut off at byte 48,213: ...", and what to do.
std::string error_to_text(const Error& error, const TextOptions& options = {});
// `explain ID`.
std::string rule_to_text(const Rule& rule, const TextOptions& options = {});

}  // namespace shw
