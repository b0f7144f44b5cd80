#include "core/facts/names/ignored_modules.h"

#include <algorithm>

#include "core/base/parse_text.h"

namespace shw {
namespace {

struct PatternToken {
  enum class Kind { kLiteral, kAnyOne, kAnyRun } kind = Kind::kLiteral;
  char literal = '\0';
};

struct ModuleNamePattern {
  std::vector<PatternToken> tokens;
  bool is_open = false;  // anything may follow
};

constexpr std::size_t kMaxPatternBytes = 256;
constexpr std::size_t kMinPatternLiterals = 3;

bool is_in_module_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// nullopt for an expression with any other sign.
std::optional<ModuleNamePattern> parse_expression(std::string_view text) {
  ModuleNamePattern out{.tokens = {}, .is_open = true};
  if (text.starts_with('^')) text.remove_prefix(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '$' && i + 1 == text.size()) {
      out.is_open = false;
    } else if (c == '.' && i + 1 < text.size() && text[i + 1] == '*') {
      out.tokens.push_back({PatternToken::Kind::kAnyRun});
      ++i;
    } else if (c == '.') {
      out.tokens.push_back({PatternToken::Kind::kAnyOne});
    } else if (c == '\\' && i + 1 < text.size() && text[i + 1] == '.') {
      out.tokens.push_back({PatternToken::Kind::kLiteral, '.'});
      ++i;
    } else if (is_in_module_names(c)) {
      out.tokens.push_back({PatternToken::Kind::kLiteral, c});
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<ModuleNamePattern> parse_glob(std::string_view text) {
  ModuleNamePattern out;
  for (const char c : text) {
    if (c == '*')
      out.tokens.push_back({PatternToken::Kind::kAnyRun});
    else if (c == '?')
      out.tokens.push_back({PatternToken::Kind::kAnyOne});
    else if (c == '.' || is_in_module_names(c))
      out.tokens.push_back({PatternToken::Kind::kLiteral, c});
    else
      return std::nullopt;
  }
  return out;
}

// Removes what an open end may match: "visual.*" is then "visual".
void trim_open_end(ModuleNamePattern& pattern) {
  auto& tokens = pattern.tokens;
  while (!tokens.empty() && tokens.back().kind == PatternToken::Kind::kAnyRun) {
    tokens.pop_back();
    pattern.is_open = true;
  }
  if (pattern.is_open && !tokens.empty() && tokens.back().literal == '.') tokens.pop_back();
}

bool is_token_of(const PatternToken& token, char c) {
  return token.kind == PatternToken::Kind::kAnyOne ||
         (token.kind == PatternToken::Kind::kLiteral && token.literal == c);
}

// In at most tokens * text steps: a mismatch goes back to the last run alone.
bool matches_whole(const std::vector<PatternToken>& tokens, std::string_view text) {
  std::size_t token = 0, at = 0;
  std::optional<std::size_t> run;
  std::size_t run_end = 0;
  while (at < text.size()) {
    if (token < tokens.size() && tokens[token].kind == PatternToken::Kind::kAnyRun) {
      run = token++;
      run_end = at;
    } else if (token < tokens.size() && is_token_of(tokens[token], text[at])) {
      ++token;
      ++at;
    } else if (run) {
      token = *run + 1;
      at = ++run_end;
    } else {
      return false;
    }
  }
  while (token < tokens.size() && tokens[token].kind == PatternToken::Kind::kAnyRun) ++token;
  return token == tokens.size();
}

}  // namespace

bool surely_names(std::string_view pattern, std::string_view module) {
  if (pattern.size() > kMaxPatternBytes || module.size() > kMaxPatternBytes) return false;
  constexpr std::string_view kExpression = "re:";
  auto parsed = pattern.starts_with(kExpression)
                    ? parse_expression(pattern.substr(kExpression.size()))
                    : parse_glob(pattern);
  if (!parsed) return false;
  trim_open_end(*parsed);
  const auto literals =
      std::count_if(parsed->tokens.begin(), parsed->tokens.end(), [](const PatternToken& token) {
        return token.kind == PatternToken::Kind::kLiteral && token.literal != '.';
      });
  if (literals < static_cast<std::ptrdiff_t>(kMinPatternLiterals)) return false;
  if (matches_whole(parsed->tokens, module)) return true;
  if (!parsed->is_open) return false;
  parsed->tokens.push_back({PatternToken::Kind::kLiteral, '.'});  // "visual" and "visual.*"
  parsed->tokens.push_back({PatternToken::Kind::kAnyRun});
  return matches_whole(parsed->tokens, module);
}

IgnoredModules::IgnoredModules(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string_view name = names[i];
    while (name.ends_with('.')) name.remove_suffix(1);  // "model.layers.0."
    parents_.insert(name.substr(0, name.rfind('.')));
    const auto parts = split_at(name, '.');
    if (parts.size() > kMaxParts) continue;
    NodeId node = 0;
    for (const std::string_view part : parts) {
      const auto next = static_cast<NodeId>(name_index_by_node_.size());
      const auto [child, is_new] = children_.try_emplace({node, part}, next);
      if (is_new) name_index_by_node_.emplace_back();
      node = child->second;
    }
    if (!name_index_by_node_[node]) name_index_by_node_[node] = i;
  }
}

std::optional<std::size_t> IgnoredModules::first_in(std::string_view fqn) const {
  std::optional<std::size_t> first;
  const auto parts = split_at(fqn, '.');
  for (std::size_t begin = 0; begin < parts.size(); ++begin) {
    NodeId node = 0;
    for (std::size_t at = begin; at < parts.size(); ++at) {
      const auto child = children_.find({node, parts[at]});
      if (child == children_.end()) break;
      node = child->second;
      const auto found = name_index_by_node_[node];
      if (found) first = std::min(*found, first.value_or(*found));
    }
  }
  return first;
}

}  // namespace shw
