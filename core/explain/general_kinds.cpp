#include "core/explain/general_kinds.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shw {
namespace {

std::vector<const MessageKind*> rows_of_words() {
  std::vector<const MessageKind*> rows = message_kinds();
  std::erase_if(rows, [](const MessageKind* kind) { return kind->words == nullptr; });
  return rows;
}

}  // namespace

const MessageKind* general_kind(std::string_view sentence) {
  static const std::vector<const MessageKind*> rows = rows_of_words();
  std::string text(sentence);
  std::replace(text.begin(), text.end(), '\n', ' ');
  auto has_one = [&](const std::vector<std::string_view>& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != text.npos; });
  };
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MessageKind* kind) {
    const MessageWords& words = *kind->words;
    return std::all_of(words.all.begin(), words.all.end(), has_one) && !has_one(words.none);
  });
  return found == rows.end() ? nullptr : *found;
}

}  // namespace shw
