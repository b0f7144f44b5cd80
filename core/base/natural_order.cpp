#include "core/base/natural_order.h"

#include "core/base/letter_case.h"

namespace shw {
namespace {

std::string_view consume_digits(std::string_view& text) {
  std::size_t zeros = 0;
  while (zeros < text.size() && text[zeros] == '0') ++zeros;
  text.remove_prefix(zeros);
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view left = a, right = b;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      std::string_view x = consume_digits(left), y = consume_digits(right);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.size() != right.size()) return left.empty();
  return a < b;  // "01" and "1" are equal numbers; any fixed order will do
}

}  // namespace shw
