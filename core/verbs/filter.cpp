#include "core/verbs/filter.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>

#include "core/tensor/dtype.h"

namespace shw {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool contains_ignoring_case(std::string_view text, std::string_view lowered_word) {
  auto equal = [](char a, char b) { return lower(a) == b; };
  return std::search(text.begin(), text.end(), lowered_word.begin(), lowered_word.end(), equal) !=
         text.end();
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size();
}

// A test of one tensor, made once per filter text.
using Test = std::function<bool(TensorId)>;

Test never() {
  return [](TensorId) { return false; };
}

// "finding:*" or "finding:coverage-gap".
Test has_finding(const Checkpoint& checkpoint, const CheckReport* report, std::string_view rule) {
  std::vector<bool> marked(checkpoint.tensor_count(), false);
  for (const Finding& finding : report == nullptr ? std::vector<Finding>{} : report->findings) {
    bool wanted = rule == "*" ? finding.severity != Severity::kInfo
                              : finding.rule.find(rule) != std::string::npos;
    if (!wanted) continue;
    for (const std::string& subject : finding.subjects) {
      if (auto tensor = checkpoint.find(subject)) marked[index_of(*tensor)] = true;
    }
  }
  return [marked = std::move(marked)](TensorId tensor) {
    return static_cast<bool>(marked[index_of(tensor)]);
  };
}

Test written_by(const Checkpoint& checkpoint, std::string_view text) {
  std::uint32_t rank = 0;
  if (!parse_number(text, rank)) return never();
  return [&checkpoint, rank](TensorId tensor) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (checkpoint.writer(chunk) == rank) return true;
    }
    return false;
  };
}

// "[288,*,640]" or "288,*,640": a star stands for any extent; fewer numbers than dimensions match
// the leading ones.
Test has_shape(const Checkpoint& checkpoint, std::string_view text) {
  std::vector<std::optional<std::int64_t>> wanted;
  std::string number;
  auto take = [&] {
    std::int64_t value = 0;
    if (!number.empty())
      wanted.push_back(parse_number(number, value) ? std::optional(value) : std::nullopt);
    number.clear();
  };
  for (char c : text) {
    if (c == ',' || c == 'x')
      take();
    else if (c != '[' && c != ']')
      number += c;
  }
  take();
  return [&checkpoint, wanted = std::move(wanted)](TensorId tensor) {
    ExtentsView shape = checkpoint.shape(tensor);
    if (wanted.size() > shape.size()) return false;
    for (std::size_t d = 0; d < wanted.size(); ++d) {
      if (wanted[d] && *wanted[d] != shape[d]) return false;
    }
    return true;
  };
}

Test make_test(const Checkpoint& checkpoint, const CheckReport* report, std::string_view word) {
  std::size_t colon = word.find(':');
  std::string_view key = word.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1);
  if (!value.empty()) {
    if (key == "finding") return has_finding(checkpoint, report, value);
    if (key == "rank") return written_by(checkpoint, value);
    if (key == "shape") return has_shape(checkpoint, value);
    if (key == "dtype") {
      return [&checkpoint, wanted = std::string(value)](TensorId tensor) {
        return name(checkpoint.dtype(tensor)).find(wanted) != std::string_view::npos;
      };
    }
    if (key == "ndim") {
      std::size_t ndim = 0;
      if (!parse_number(value, ndim)) return never();
      return
          [&checkpoint, ndim](TensorId tensor) { return checkpoint.shape(tensor).size() == ndim; };
    }
  }
  std::string lowered(word);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return [&checkpoint, lowered](TensorId tensor) {
    return contains_ignoring_case(checkpoint.fqn(tensor), lowered);
  };
}

}  // namespace

Result<std::vector<std::uint32_t>> filter_tensors(const Checkpoint& checkpoint,
                                                  const CheckReport* report, std::string_view text,
                                                  Progress* progress) {
  std::vector<Test> tests;
  while (!text.empty()) {
    std::size_t space = std::min(text.find(' '), text.size());
    if (space > 0) tests.push_back(make_test(checkpoint, report, text.substr(0, space)));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  std::vector<std::uint32_t> passed;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    if (t % 4096 == 0 && is_cancelled(progress)) return cancelled_error();
    if (std::all_of(tests.begin(), tests.end(),
                    [&](const Test& test) { return test(TensorId{t}); }))
      passed.push_back(t);
  }
  return passed;
}

}  // namespace shw
