// A regular expression over whole names with a replacement. Uses PCRE2 with the options of
// ECMAScript's dialect, because std::regex backtracks without a limit: "(([a-z]+\.?)+)x" in a plan
// never finished.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace shw {

class NamePattern {
 public:
  // In `to`, $1 to $99 are groups, $& is the whole name and $$ a dollar. kUsage if `from` is not a
  // valid expression or `to` has an unknown group.
  static Result<NamePattern> from(const std::string& from, const std::string& to);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;

  // The new name; nullopt if the name does not match. kUsage if matching takes too many steps.
  Result<std::optional<std::string>> renamed(const std::string& name) const;

 private:
  struct Compiled;
  explicit NamePattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace shw
