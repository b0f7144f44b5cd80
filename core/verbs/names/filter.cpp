#include "core/verbs/names/filter.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "core/base/parse_text.h"
#include "core/base/spelling.h"
#include "core/rules/damage.h"
#include "core/rules/rules.h"
#include "core/tensor/dtype.h"
#include "core/verbs/names/fuzzy_match.h"

namespace shw {
namespace {

bool contains_ignoring_case(std::string_view text, std::string_view lowered_word) {
  auto equal = [](char a, char b) { return lower(a) == b; };
  return std::search(text.begin(), text.end(), lowered_word.begin(), lowered_word.end(), equal) !=
         text.end();
}

// A predicate on tensors, built once per filter.
using TermTest = std::function<bool(TensorId)>;

TermTest matches_nothing() {
  return [](TensorId) { return false; };
}

// "finding:*" or "finding:coverage-gap".
TermTest parse_finding_term(const Checkpoint& checkpoint, const CheckReport* report,
                            std::string_view rule) {
  std::vector<bool> marked(checkpoint.tensor_count(), false);
  FindingPlaces places(checkpoint);
  for (const Finding& finding : report == nullptr ? std::vector<Finding>{} : report->findings) {
    bool wanted = rule == "*" ? finding.severity != Severity::kInfo
                              : finding.rule.find(rule) != std::string::npos;
    if (!wanted) continue;
    for (TensorId tensor : places.tensors(finding)) marked[index_of(tensor)] = true;
  }
  return [marked = std::move(marked)](TensorId tensor) {
    return static_cast<bool>(marked[index_of(tensor)]);
  };
}

TermTest written_by(const Checkpoint& checkpoint, std::string_view text) {
  const auto rank = parse_number<std::uint32_t>(text);
  if (!rank) return matches_nothing();
  return [&checkpoint, rank = *rank](TensorId tensor) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (checkpoint.writer(chunk) == rank) return true;
    }
    return false;
  };
}

// * matches any extent; nullopt if a part is neither a number nor *.
struct WantedShape {
  std::vector<std::optional<std::int64_t>> extents;
  bool open = false;  // "[288,": incomplete input
};
std::optional<WantedShape> parse_shape(std::string_view text) {
  WantedShape wanted;
  bool bracket = text.starts_with('[');
  if (bracket) text.remove_prefix(1);
  if (bracket && text.ends_with(']'))
    text.remove_suffix(1);
  else
    wanted.open = bracket;
  while (!text.empty()) {
    std::size_t end = std::min(text.find_first_of(",x"), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto extent = parse_number<std::int64_t>(part);
    if (!extent && part != "*") return std::nullopt;
    wanted.extents.push_back(extent);
  }
  return wanted;
}

TermTest parse_shape_term(const Checkpoint& checkpoint, std::string_view text) {
  auto parsed = parse_shape(text);
  if (!parsed) return matches_nothing();
  return [&checkpoint, wanted = std::move(*parsed)](TensorId tensor) {
    ExtentsView shape = checkpoint.shape(tensor);
    bool fits =
        wanted.open ? wanted.extents.size() <= shape.size() : wanted.extents.size() == shape.size();
    if (!fits) return false;
    for (std::size_t d = 0; d < wanted.extents.size(); ++d) {
      if (wanted.extents[d] && *wanted.extents[d] != shape[d]) return false;
    }
    return true;
  };
}

// A dtype by name. "float8" and "fp8" mean several: their common name part is
// compared.
struct WantedDtype {
  std::optional<Dtype> one;
  std::string part;
};
std::optional<WantedDtype> parse_dtype(std::string_view text) {
  if (auto dtype = dtype_from_user_text(text)) return WantedDtype{dtype, {}};
  std::string word = lowered(text);
  std::string part = word.starts_with("fp") ? "float" + word.substr(2) : word;
  for (std::size_t i = 1; i < static_cast<std::size_t>(Dtype::kCount); ++i) {
    if (name(static_cast<Dtype>(i)).find(part) != std::string_view::npos)
      return WantedDtype{std::nullopt, std::move(part)};
  }
  return std::nullopt;
}

TermTest parse_dtype_term(const Checkpoint& checkpoint, std::string_view text) {
  auto parsed = parse_dtype(text);
  if (!parsed) return matches_nothing();
  return [&checkpoint, wanted = std::move(*parsed)](TensorId tensor) {
    Dtype dtype = checkpoint.dtype(tensor);
    return wanted.one ? dtype == *wanted.one
                      : name(dtype).find(wanted.part) != std::string_view::npos;
  };
}

bool is_fuzzy_word(std::string_view word) {
  return word.size() > 1 && word[0] == '~';
}

// "*.weight": a pattern for the whole name.
bool is_glob(std::string_view word) {
  return word.find_first_of("*?") != std::string_view::npos;
}

// "key:value"; key is empty for plain words.
struct Term {
  std::string_view key, value;
};
Term split(std::string_view word) {
  std::size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon + 1 == word.size()) return {{}, word};
  return {word.substr(0, colon), word.substr(colon + 1)};
}

TermTest parse_word_term(const Checkpoint& checkpoint, std::string_view word,
                         const FoldedNames* names) {
  if (is_fuzzy_word(word)) {
    if (names != nullptr) {
      auto letters = std::make_shared<LettersInNames>(word.substr(1), *names);
      return [letters](TensorId tensor) { return letters->in(static_cast<std::uint32_t>(tensor)); };
    }
    auto letters = std::make_shared<const FuzzyMatcher>(word.substr(1));
    return [&checkpoint, letters](TensorId tensor) { return letters->in(checkpoint.fqn(tensor)); };
  }
  if (is_glob(word)) {
    return [&checkpoint, pattern = std::string(word)](TensorId tensor) {
      return matches_pattern(pattern, std::string(checkpoint.fqn(tensor)));
    };
  }
  if (names != nullptr)
    return [names, wanted = lowered(word)](TensorId tensor) {
      return names->of(static_cast<std::uint32_t>(tensor)).find(wanted) != std::string_view::npos;
    };
  return [&checkpoint, wanted = lowered(word)](TensorId tensor) {
    return contains_ignoring_case(checkpoint.fqn(tensor), wanted);
  };
}

constexpr std::array<std::string_view, 5> kTerms = {"finding", "dtype", "rank", "ndim", "shape"};
bool is_term(std::string_view word) {
  return std::find(kTerms.begin(), kTerms.end(), split(word).key) != kTerms.end();
}

TermTest make_test(const Checkpoint& checkpoint, const CheckReport* report, std::string_view word,
                   const FoldedNames* names) {
  auto [key, value] = split(word);
  if (key == "finding") return parse_finding_term(checkpoint, report, value);
  if (key == "rank") return written_by(checkpoint, value);
  if (key == "shape") return parse_shape_term(checkpoint, value);
  if (key == "dtype") return parse_dtype_term(checkpoint, value);
  if (key != "ndim") return parse_word_term(checkpoint, word, names);
  const auto ndim = parse_number<std::size_t>(value);
  if (!ndim) return matches_nothing();
  return [&checkpoint, ndim = *ndim](TensorId tensor) {
    return checkpoint.shape(tensor).size() == ndim;
  };
}

std::string advice_or_default(std::string advice, const char* otherwise) {
  return advice.empty() ? otherwise : std::move(advice);
}

// An invalid term and a suggestion.
struct InvalidTerm {
  std::string message, advice;
};

std::optional<InvalidTerm> problem_of_finding(std::string_view value) {
  std::vector<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    if (value == "*" || rule.id.find(value) != std::string_view::npos) return std::nullopt;
    ids.push_back(rule.id);
  }
  return InvalidTerm{
      "unknown rule \"" + std::string(value) + "\"",
      advice_or_default(did_you_mean_text(did_you_mean(value, ids)),
                        "`shardwright explain` lists the rules; finding:* is all of them.")};
}

std::optional<InvalidTerm> problem_of_dtype(std::string_view value) {
  if (parse_dtype(value)) return std::nullopt;
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < static_cast<std::size_t>(Dtype::kCount); ++i)
    names.push_back(name(static_cast<Dtype>(i)));
  return InvalidTerm{"unknown dtype \"" + std::string(value) + "\"",
                     advice_or_default(did_you_mean_text(did_you_mean(lowered(value), names)),
                                       "Examples: dtype:bfloat16, dtype:bf16, dtype:float32.")};
}

std::optional<InvalidTerm> invalid_term_of_word(const Checkpoint& checkpoint,
                                                std::string_view word) {
  auto [key, value] = split(word);
  if (key.empty()) return std::nullopt;
  if (key == "finding") return problem_of_finding(value);
  if (key == "dtype") return problem_of_dtype(value);
  if (key == "shape" && (!parse_shape(value) || parse_shape(value)->open))
    return InvalidTerm{"\"" + std::string(value) + "\" is not a shape",
                       "shape:[288,*,640] is one."};
  if ((key == "rank" || key == "ndim") && !parse_number<std::uint32_t>(value))
    return InvalidTerm{"\"" + std::string(value) + "\" is not a number",
                       std::string(key) + ":3 is one."};
  if (is_term(word)) return std::nullopt;
  // Names may contain a colon.
  TermTest named = parse_word_term(checkpoint, word, nullptr);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    if (named(TensorId{t})) return std::nullopt;
  }
  return InvalidTerm{"unknown term \"" + std::string(key) + ":\", and no name contains it",
                     advice_or_default(did_you_mean_text(did_you_mean(key, kTerms)),
                                       "The terms are finding:, dtype:, rank:, ndim: and shape:.")};
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    std::size_t space = std::min(text.find(' '), text.size());
    if (space > 0) words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

}  // namespace

Result<std::vector<std::uint32_t>> filter_tensors(const Checkpoint& checkpoint,
                                                  const CheckReport* report, std::string_view text,
                                                  Progress* progress, const FilterHelp& help) {
  if (is_cancelled(progress)) return cancelled_error();
  std::vector<std::string_view> words = words_of(text);
  std::vector<std::uint32_t> all;
  const std::vector<std::uint32_t>* among = help.among;
  auto wide = std::find_if(words.begin(), words.end(), [](std::string_view word) {
    return !is_term(word) && !is_fuzzy_word(word) && !is_glob(word);
  });
  if (among == nullptr && help.names != nullptr && wide != words.end()) {
    all = tensors_with_word(*help.names, lowered(*wide));
    words.erase(wide);
    among = &all;
  }
  std::vector<TermTest> tests;
  for (std::string_view word : words)
    tests.push_back(make_test(checkpoint, report, word, help.names));
  std::vector<std::uint32_t> passed;
  std::size_t count = among != nullptr ? among->size() : checkpoint.tensor_count();
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 4096 == 0 && is_cancelled(progress)) return cancelled_error();
    std::uint32_t t = among != nullptr ? (*among)[i] : static_cast<std::uint32_t>(i);
    if (std::all_of(tests.begin(), tests.end(),
                    [&](const TermTest& test) { return test(TensorId{t}); }))
      passed.push_back(t);
  }
  return passed;
}

std::string as_fuzzy_filter(std::string_view text) {
  std::string instead;
  bool changed = false;
  for (std::string_view word : words_of(text)) {
    bool plain = !is_term(word) && !is_fuzzy_word(word) && !is_glob(word) && word != "~";
    changed = changed || plain;
    instead += (instead.empty() ? "" : " ") + std::string(plain ? "~" : "");
    instead += word;
  }
  return changed ? instead : "";
}

bool is_narrower(std::string_view text, std::string_view before) {
  std::vector<std::string_view> now = words_of(text), then = words_of(before);
  if (now.size() < then.size()) return false;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (now[i] == then[i]) continue;
    bool words = !is_term(now[i]) && !is_term(then[i]);
    // A single "~" is an ordinary character.
    bool alike = is_fuzzy_word(now[i]) == is_fuzzy_word(then[i]);
    if (is_glob(now[i]) || is_glob(then[i])) return false;
    if (!words || !alike || !now[i].starts_with(then[i])) return false;
  }
  return true;
}

Status check_filter(const Checkpoint& checkpoint, std::string_view text) {
  for (std::string_view word : words_of(text)) {
    if (auto problem = invalid_term_of_word(checkpoint, word))
      return fail(ErrorKind::kUsage, problem->message, {}, problem->advice);
  }
  return {};
}

std::vector<std::uint32_t> filter_objects(const Checkpoint& checkpoint, std::string_view text) {
  std::vector<std::uint32_t> passed;
  auto words = words_of(text);
  for (std::uint32_t i = 0; i < checkpoint.objects().size(); ++i) {
    bool fits = std::all_of(words.begin(), words.end(), [&](std::string_view word) {
      const std::string& fqn = checkpoint.objects()[i].fqn;
      if (is_fuzzy_word(word)) return FuzzyMatcher(word.substr(1)).in(fqn);
      if (!is_term(word) && is_glob(word)) return matches_pattern(std::string(word), fqn);
      return !is_term(word) && contains_ignoring_case(fqn, lowered(word));
    });
    if (fits) passed.push_back(i);
  }
  return passed;
}

}  // namespace shw
