#include "core/maps/size_expression.h"

#include <charconv>

#include "core/base/checked.h"

namespace shw {
namespace {

using Size = std::optional<std::int64_t>;

constexpr int kDeepestExpression = 16;
constexpr std::size_t kLongestExpression = 1024;

class SizeReader {
 public:
  SizeReader(std::string_view text, const SizeNames& names) : text_(text), names_(names) {}

  Size read() {
    if (text_.size() > kLongestExpression) return wrong();
    const Size value = sum(0);
    skip();
    return at_ == text_.size() ? value : wrong();
  }
  bool is_wrong() const { return is_wrong_; }

 private:
  Size wrong() {
    is_wrong_ = true;
    return std::nullopt;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Size sum(int depth) {
    Size value = product(depth);
    while (!is_wrong_) {
      if (take('+')) {
        const Size next = product(depth);
        value = value && next ? checked_add(*value, *next) : std::nullopt;
      } else if (take('-')) {
        const Size next = product(depth);
        value = value && next ? checked_sub(*value, *next) : std::nullopt;
      } else {
        break;
      }
      if (value && *value < 0) value.reset();
    }
    return value;
  }
  Size product(int depth) {
    Size value = factor(depth);
    while (!is_wrong_) {
      if (take('*')) {
        const Size next = factor(depth);
        value = value && next ? checked_mul(*value, *next) : std::nullopt;
      } else if (take('/')) {
        const Size next = factor(depth);
        const bool is_whole = value && next && *next != 0 && *value % *next == 0;
        value = is_whole ? Size(*value / *next) : std::nullopt;
      } else {
        break;
      }
    }
    return value;
  }
  Size factor(int depth) {
    skip();
    if (depth == kDeepestExpression || at_ == text_.size()) return wrong();
    if (take('(')) {
      const Size value = sum(depth + 1);
      return take(')') ? value : wrong();
    }
    return text_[at_] >= '0' && text_[at_] <= '9' ? number() : named();
  }
  Size number() {
    std::int64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    at_ = static_cast<std::size_t>(end - text_.data());
    return code == std::errc{} ? Size(value) : wrong();
  }
  Size named() {
    const std::size_t first = at_;
    auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(first, at_ - first);
    if (name.empty()) return wrong();
    if (!take('(')) return names_.value(name);
    const std::size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) return wrong();
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return names_.call(name, inside);
  }

  std::string_view text_;
  const SizeNames& names_;
  std::size_t at_ = 0;
  bool is_wrong_ = false;
};

}  // namespace

Size size_of_expression(std::string_view text, const SizeNames& names) {
  return SizeReader(text, names).read();
}

bool is_size_expression(std::string_view text) {
  const SizeNames none{[](std::string_view) { return Size(); },
                       [](std::string_view, std::string_view) { return Size(); }};
  SizeReader reader(text, none);
  reader.read();
  return !reader.is_wrong();
}

}  // namespace shw
