#include "core/cluster/last_words.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/packed.h"
#include "core/cluster/transport.h"

namespace shw {
namespace {

bool is_same(const LastWords& a, const LastWords& b) {
  return a.text == b.text && a.error->kind == b.error->kind &&
         a.error->message == b.error->message && a.error->advice == b.error->advice &&
         a.error->place.file == b.error->place.file &&
         a.error->place.tensor == b.error->place.tensor &&
         a.error->place.offset == b.error->place.offset;
}

}  // namespace

Bytes packed(const LastWords& words) {
  Packer out;
  out.add(std::uint64_t{words.error.has_value()});
  if (words.error) out.add(*words.error);
  out.add(std::string_view(words.text));
  return out.take();
}

Result<LastWords> unpacked_words(BytesView bytes) {
  Unpacker in(bytes);
  LastWords words;
  SHW_TRY(std::uint64_t has_error, in.number());
  if (has_error != 0) {
    SHW_TRY(words.error, in.error());
  }
  SHW_TRY(words.text, in.text());
  return words;
}

namespace {

// What to do now is known to the first worker, who clears away what was made, whatever it was that
// others met.
void add_advice(const LastWords& first, std::vector<Saying>& out) {
  const std::string& advice = first.error->advice;
  if (advice.empty() || out.empty()) return;
  std::string& last = out.back().words.error->advice;
  if (last.find(advice) == std::string::npos) last += (last.empty() ? "" : "; ") + advice;
}

}  // namespace

std::vector<Saying> sayings(const std::vector<std::optional<LastWords>>& by_rank) {
  std::vector<Saying> out;
  const LastWords* hearsay = nullptr;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank] || !by_rank[rank]->error) continue;
    const LastWords& words = *by_rank[rank];
    if (is_of_another(words.error->message)) {
      if (hearsay == nullptr) hearsay = &words;
      continue;
    }
    auto known = std::find_if(out.begin(), out.end(),
                              [&](const Saying& one) { return is_same(one.words, words); });
    if (known == out.end()) known = out.insert(out.end(), Saying{{}, false, words});
    known->workers.push_back(static_cast<int>(rank));
    known->of_all = known->workers.size() == by_rank.size();
  }
  if (out.empty() && hearsay != nullptr) out.push_back({{}, true, *hearsay});
  const bool has_first = !by_rank.empty() && by_rank.front() && by_rank.front()->error;
  if (has_first && is_of_another(by_rank.front()->error->message))
    add_advice(*by_rank.front(), out);
  return out;
}

std::string who_says(const Saying& saying) {
  constexpr std::size_t kMostNamed = 3;
  const std::vector<int>& workers = saying.workers;
  if (workers.size() == 1) return fmt::format("worker {}", workers.front());
  std::string text = "workers ";
  const std::size_t named = std::min(workers.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == workers.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", workers[i]);
  }
  if (workers.size() > named) text += fmt::format(" and {} more", workers.size() - named);
  return text;
}

}  // namespace shw
