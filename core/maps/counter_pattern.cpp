#include "core/maps/counter_pattern.h"

#include <algorithm>
#include <charconv>

#include "core/base/checked.h"
#include "core/base/letter_case.h"

namespace shw {
namespace {

constexpr std::size_t kMaxSlots = 32;
constexpr std::size_t kLongestPattern = 1024;

// Parses the number at the start of a text; nullopt if there is none or it is too large.
std::optional<std::int64_t> number_at(std::string_view text, std::size_t& length) {
  length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::int64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + length, number);
  return code == std::errc{} ? std::optional(number) : std::nullopt;
}

std::size_t leading_zero_count(std::string_view digits) {
  std::size_t zeros = 0;
  while (zeros + 1 < digits.size() && digits[zeros] == '0') ++zeros;
  return zeros;
}

tl::unexpected<Error> counter_pattern_error(std::string_view text, const char* why) {
  return fail(ErrorKind::kDamaged, "\"" + std::string(text) + "\" is not a pattern: " + why);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

struct KeyOfName {
  std::string key;
  std::vector<std::int64_t> numbers;
};

// Numbers with leading zeros stay text, because counters have none. nullopt for a name with '#',
// which marks numbers in keys.
std::optional<KeyOfName> key_of_name(std::string_view name) {
  KeyOfName out;
  if (name.find('#') != std::string_view::npos) return std::nullopt;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      out.key += name[i++];
      continue;
    }
    std::size_t length = 0;
    const auto number = number_at(name.substr(i), length);
    const std::string_view digits = name.substr(i, length);
    if (!number || out.numbers.size() == kMaxSlots) return std::nullopt;
    out.key.append(leading_zero_count(digits), '0') += '#';
    out.numbers.push_back(*number);
    i += length;
  }
  return out;
}

}  // namespace

bool CounterPattern::has(std::string_view counter) const {
  return std::any_of(slots.begin(), slots.end(),
                     [&](const Slot& slot) { return slot.counter == counter; });
}

Result<CounterPattern> parse_counter_pattern(std::string_view text) {
  if (text.empty() || text.size() > kLongestPattern)
    return counter_pattern_error(text.substr(0, 40), "it is empty or longer than 1,024 bytes");
  if (text.find('#') != std::string_view::npos) return counter_pattern_error(text, "it has a #");
  CounterPattern out{std::string(text), {}, {}};
  for (std::size_t i = 0; i < text.size();) {
    if (out.slots.size() > kMaxSlots)
      return counter_pattern_error(text, "it has more than 32 numbers");
    if (text[i] == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) return counter_pattern_error(text, "a { is not closed");
      const std::string_view inside = text.substr(i + 1, end - i - 1);
      const std::size_t plus = inside.find('+');
      CounterPattern::Slot slot{std::string(inside.substr(0, plus))};
      if (plus != std::string_view::npos) slot.plus = inside.substr(plus + 1);
      if (!is_word(slot.counter) || (plus != std::string_view::npos && !is_word(slot.plus)))
        return counter_pattern_error(text, "a counter is written {l} or {m+layers}");
      out.slots.push_back(std::move(slot));
      out.key += '#';
      i = end + 1;
    } else if (is_digit(text[i])) {
      std::size_t length = 0;
      const auto number = number_at(text.substr(i), length);
      if (!number) return counter_pattern_error(text, "a number in it is too large");
      const std::size_t zeros = leading_zero_count(text.substr(i, length));
      out.slots.push_back({{}, {}, *number, zeros});
      out.key.append(zeros, '0') += '#';
      i += length;
    } else {
      out.key += text[i++];
    }
  }
  return out;
}

std::vector<std::string> counters_in(const CounterPattern& pattern) {
  std::vector<std::string> out;
  for (const CounterPattern::Slot& slot : pattern.slots) {
    if (!slot.counter.empty() && std::find(out.begin(), out.end(), slot.counter) == out.end())
      out.push_back(slot.counter);
  }
  return out;
}

std::optional<std::string> name_of(const CounterPattern& pattern, const Counters& counters,
                                   const LookUpValue& value) {
  std::string out;
  std::size_t next = 0;
  for (char c : pattern.key) {
    if (c != '#') {
      out += c;
      continue;
    }
    const CounterPattern::Slot& slot = pattern.slots[next++];
    std::int64_t number = slot.number;
    if (!slot.counter.empty()) {
      auto found = counters.find(slot.counter);
      if (found == counters.end()) return std::nullopt;
      number = found->second;
      if (!slot.plus.empty()) {
        const auto more = value(slot.plus);
        const auto sum = more ? checked_add(number, *more) : std::nullopt;
        if (!sum) return std::nullopt;
        number = *sum;
      }
    }
    out += std::to_string(number);
  }
  return out;
}

void NumberedNames::add(std::string_view name, std::size_t index) {
  by_name_.emplace(name, index);
  auto key = key_of_name(name);
  if (key) by_key_[std::move(key->key)].push_back({std::move(key->numbers), index});
}

std::optional<std::size_t> NumberedNames::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

// Counter values of a name whose key equals the pattern's; nullopt if its numbers contradict.
std::optional<Counters> counters_from_numbers(const CounterPattern& pattern,
                                              const std::vector<std::int64_t>& numbers,
                                              const LookUpValue& value) {
  Counters out;
  for (std::size_t i = 0; i < pattern.slots.size(); ++i) {
    const CounterPattern::Slot& slot = pattern.slots[i];
    if (slot.counter.empty()) {
      if (slot.number != numbers[i]) return std::nullopt;
      continue;
    }
    std::int64_t counter = numbers[i];
    if (!slot.plus.empty()) {
      const auto less = value(slot.plus);
      if (!less || *less > counter) return std::nullopt;
      counter -= *less;
    }
    auto [found, is_new] = out.emplace(slot.counter, counter);
    if (!is_new && found->second != counter) return std::nullopt;
  }
  return out;
}

}  // namespace

std::vector<NumberedNames::Match> NumberedNames::matches(const CounterPattern& pattern,
                                                         const LookUpValue& value) const {
  std::vector<Match> out;
  auto found = by_key_.find(pattern.key);
  if (found == by_key_.end()) return out;
  for (const Named& named : found->second) {
    if (auto counters = counters_from_numbers(pattern, named.numbers, value))
      out.push_back({std::move(*counters), named.index});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Match& a, const Match& b) { return a.counters < b.counters; });
  return out;
}

std::vector<std::size_t> NumberedNames::indices(const CounterPattern& pattern,
                                                const LookUpValue& value) const {
  std::vector<std::size_t> out;
  auto found = by_key_.find(pattern.key);
  if (found == by_key_.end()) return out;
  for (const Named& named : found->second) {
    if (counters_from_numbers(pattern, named.numbers, value)) out.push_back(named.index);
  }
  return out;
}

}  // namespace shw
