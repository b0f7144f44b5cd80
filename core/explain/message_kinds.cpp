#include "core/explain/message_kinds.h"

#include <algorithm>
#include <set>

namespace shw {
namespace {

// Words of at least four letters, without names and numbers.
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    char c = i < text.size() ? text[i] : ' ';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    if (word.size() >= 4 && word.size() <= 40 && word != "error" && word != "name")
      words.insert(word);
    word.clear();
  }
  return words;
}

}  // namespace

std::vector<const MessageKind*> message_kinds() {
  std::vector<const MessageKind*> all;
  for (const MessageGroup& group : message_groups()) {
    for (const MessageKind& kind : group.kinds) all.push_back(&kind);
  }
  return all;
}

const MessageKind* nearest_kind(std::string_view text) {
  constexpr std::size_t kMostText = 4096;  // the end, where a traceback has its error
  constexpr std::size_t kFewest = 3;       // any sentence about loading shares two words
  if (text.size() > kMostText) text.remove_prefix(text.size() - kMostText);
  const std::set<std::string> said = words_of(text);
  const MessageKind* nearest = nullptr;
  double best = 0.4;
  for (const MessageKind* kind : message_kinds()) {
    const std::set<std::string> words = words_of(kind->example);
    auto shared = std::count_if(words.begin(), words.end(),
                                [&](const std::string& word) { return said.count(word) != 0; });
    double share =
        static_cast<double>(shared) / static_cast<double>(std::max<std::size_t>(1, words.size()));
    if (static_cast<std::size_t>(shared) < kFewest || share <= best) continue;
    best = share;
    nearest = kind;
  }
  return nearest;
}

}  // namespace shw
