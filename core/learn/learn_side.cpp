#include "core/learn/learn_side.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "core/base/hash.h"
#include "core/maps/bind_map.h"

namespace shw {
namespace {

// The tensor with the shorter name represents the others.
bool is_representative(const LearnSide& side, std::size_t a, std::size_t b) {
  if (side.names[a].size() != side.names[b].size())
    return side.names[a].size() < side.names[b].size();
  return side.names[a] < side.names[b];
}

std::string content_of(const LearnSide& side, std::size_t i) {
  const LineHashes& rows = side.rows[i];
  RunningHash hash;
  hash.add(std::as_bytes(std::span(rows.hashes)));
  return hash.text() + to_text(side.shapes[i]) + std::string(name(side.dtypes[i]));
}

void index_equal_tensors(LearnSide& side) {
  std::map<std::string, std::size_t> first;
  std::vector<std::string> contents(side.size());
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (!has_distinctive_lines(side, i)) continue;
    contents[i] = content_of(side, i);
    auto [at, is_new] = first.try_emplace(contents[i], i);
    if (!is_new && is_representative(side, i, at->second)) at->second = i;
  }
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (!contents[i].empty()) side.same_as[i] = first[contents[i]];
  }
}

std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (char c : name + ".") {
    const bool is_letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_letter) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

}  // namespace

bool has_distinctive_lines(const LearnSide& side, std::size_t tensor) {
  const std::vector<std::uint64_t>& lines = side.rows[tensor].hashes;
  return std::any_of(lines.begin(), lines.end(),
                     [](std::uint64_t line) { return !is_constant_line(line); });
}

std::string numbered_prefix(const std::string& name) {
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    const bool is_number =
        dot > begin && dot < name.size() && name.find_first_not_of("0123456789", begin) >= dot;
    if (is_number) end = dot + 1;
    begin = dot + 1;
  }
  return name.substr(0, end);
}

std::size_t name_similarity(const std::string& a, const std::string& b) {
  const std::set<std::string> words_a = words_of(a), words_b = words_of(b);
  std::size_t likeness = 0;
  for (const std::string& word : words_a) likeness += words_b.contains(word) ? 16U : 0U;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) break;
    ++likeness;
  }
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[a.size() - 1 - i] != b[b.size() - 1 - i]) break;
    ++likeness;
  }
  return likeness;
}

Result<LearnSide> learn_side(std::shared_ptr<const Checkpoint> checkpoint, bool is_source,
                             Progress* progress) {
  LearnSide side;
  side.checkpoint = checkpoint;
  std::vector<LineQuery> asked;
  for (TensorId tensor : checkpoint->tensors()) {
    const std::string fqn(checkpoint->fqn(tensor));
    side.names.push_back(is_source ? map_input_name(fqn) : fqn);
    // A name with braces, brackets or a hash sign cannot be a pattern, so it stays unexplained.
    const bool is_plain = side.names.back().find_first_of("{}[]") == std::string::npos;
    auto pattern = parse_counter_pattern(side.names.back());
    side.patterns.push_back(is_plain && pattern ? std::move(*pattern) : CounterPattern{});
    side.shapes.push_back(copy_of(checkpoint->shape(tensor)));
    side.dtypes.push_back(checkpoint->dtype(tensor));
    side.ndims.push_back(side.shapes.back().size());
    asked.push_back({tensor, Dtype::kUnknown, LineKind::kRows});
  }
  SHW_TRY(side.rows, line_hashes(*checkpoint, asked, progress));
  side.explained.assign(side.size(), false);
  for (std::size_t i = 0; i < side.size(); ++i) {
    side.same_as.push_back(i);
    if (side.patterns[i].text.empty()) side.rows[i] = {};
  }
  index_equal_tensors(side);
  return side;
}

}  // namespace shw
