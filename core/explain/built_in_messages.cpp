#include <algorithm>

#include "core/explain/message_files.h"

namespace shw {
namespace {

// One text per file of assets/messages, which the build includes here.
constexpr std::string_view kMessageTexts[] = {
#include "messages.inc"
};

}  // namespace

const std::vector<MessageGroup>& message_groups() {
  static const std::vector<MessageGroup> groups = [] {
    std::vector<MessageGroup> all;
    for (std::string_view text : kMessageTexts) {
      auto group = message_group_from_json(text, "messages of this program");
      if (group) all.push_back(std::move(*group));
    }
    std::stable_sort(all.begin(), all.end(), [](const MessageGroup& a, const MessageGroup& b) {
      return a.order < b.order;
    });
    return all;
  }();
  return groups;
}

}  // namespace shw
