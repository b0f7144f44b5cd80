#include "core/transform/name_pattern.h"

#include <doctest/doctest.h>

#include <regex>
#include <string>

using namespace shw;

namespace {

std::string renamed(const std::string& from, const std::string& to, const std::string& name) {
  auto pattern = NamePattern::from(from, to);
  if (!pattern) return "refused: " + pattern.error().message;
  auto after = pattern->renamed(name);
  if (!after) return "stopped: " + after.error().message;
  return after->value_or("kept");
}

}  // namespace

TEST_CASE("a regular expression renames as the C++ library would") {
  const std::string names[] = {"model.layers.10.mlp.up.weight",
                               "module.head",
                               "a",
                               "",
                               "x.y.z",
                               "layers.3.w\n",
                               "layers.07.bias"};
  const char* patterns[] = {
      "(.*)\\.(.*)",       "module\\.(.*)",          "[^.]*",
      "(a)|(.*)",          "(.*)\\.(\\d+)\\.(.*)",   "model\\.(?=layers)(.*)",
      "(?:x|y)\\.(.)\\..", "(\\w+)\\.(\\w+)\\.\\w+", "layers\\.0*(\\d+)\\..*"};
  const char* news[] = {"new", "$&", "<$1>", "$$$1", "$1.$1", "a$", "$x", "$1$$"};
  for (const char* pattern : patterns) {
    const std::regex slow(pattern, std::regex::ECMAScript);
    for (const char* to : news) {
      CAPTURE(pattern);
      CAPTURE(to);
      for (const std::string& name : names) {
        std::smatch match;
        const bool matches = std::regex_match(name, match, slow);
        const bool has_groups =
            slow.mark_count() > 0 || std::string(to).find("$1") == std::string::npos;
        if (has_groups) CHECK(renamed(pattern, to, name) == (matches ? match.format(to) : "kept"));
      }
    }
  }
}

TEST_CASE("two digits are a group where there is one, and else a group and a digit") {
  CHECK(renamed("(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "$10-$1", "abcdefghij") == "j-a");
  CHECK(renamed("(.)b", "$10", "ab") == "a0");
  CHECK(renamed("(.)b", "$01", "ab") == "a");
}

TEST_CASE("a new name that asks for a group that is not there is refused") {
  CHECK(renamed("(.*)\\.w", "$2", "a.w") ==
        "refused: \"$2\" asks for group 2, and the regular expression has 1 group");
  CHECK(renamed("a", "$1", "a") ==
        "refused: \"$1\" asks for group 1, and the regular expression has none");
  CHECK(renamed("a", "$0", "a").starts_with("refused: "));
}

TEST_CASE("a text that is not a regular expression is refused with where it goes wrong") {
  CHECK(
      renamed("a(b", "x", "ab") ==
      "refused: \"a(b\" is not a regular expression: missing closing parenthesis, at character 4");
  CHECK(renamed(std::string(1000, '('), "x", "ab").starts_with("refused: "));
  CHECK(renamed("((((a{1000}){1000}){1000}){1000})", "x", "ab").starts_with("refused: "));
}

TEST_CASE("an expression that would go back for ever is stopped and named") {
  // Each name ends with the last letter of the expression, for which PCRE2 searches first.
  const std::string many(200, 'a');
  const std::pair<std::string, std::string> cases[] = {
      {"(([a-z0-9_]+\\.?)+)\\.scale", "model.layers.10.self_attn.qkv_projection.weight.scale_e"},
      {"(.*)*(.*)*(.*)*X", "X" + many},
      {"((a|aa)+)+b", many + "bc"},
      {"(a+)+\\1b", many + "bc"}};
  for (const auto& [pattern, name] : cases) {
    CAPTURE(pattern);
    CHECK(renamed(pattern, "b", name) ==
          "stopped: \"" + pattern + "\" cannot be matched: match limit exceeded");
  }
  CHECK(renamed("(([a-z0-9_]+\\.?)+)\\.scale", "$1.s", "model.layers.10.scale") ==
        "model.layers.10.s");
}

TEST_CASE("a name as long as any is matched whole") {
  const std::string name = std::string(100'000, 'a') + ".weight";
  CHECK(renamed("(.*)\\.weight", "$1.w", name) == std::string(100'000, 'a') + ".w");
}
