// A regular expression over whole names, and what it makes of them. By PCRE2 with the options that
// make it ECMAScript's dialect: std::regex backtracks without a limit, so that "(([a-z]+\.?)+)x" in
// a plan was busy for ever.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace shw {

class NamePattern {
 public:
  // `to` with $1 to $99 for what groups matched, $& for the whole name and $$ for a dollar. kUsage
  // where `from` is no expression, or `to` names a group that it does not have.
  static Result<NamePattern> from(const std::string& from, const std::string& to);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;

  // Nothing where the name does not match. kUsage where the answer takes too many steps.
  Result<std::optional<std::string>> renamed(const std::string& name) const;

 private:
  struct Compiled;
  explicit NamePattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace shw
