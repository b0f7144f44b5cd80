#include "core/verbs/names/folded_names.h"

#include <algorithm>
#include <cstring>

namespace shw {
namespace {

// One bit per letter and digit, a few for other characters.
std::uint64_t sign_of(char c) {
  auto byte = static_cast<unsigned char>(c);
  unsigned bit = 36 + byte % 28;
  if (c >= 'a' && c <= 'z') bit = static_cast<unsigned>(c - 'a');
  if (c >= '0' && c <= '9') bit = 26 + static_cast<unsigned>(c - '0');
  return std::uint64_t{1} << bit;
}
}  // namespace

std::uint64_t character_set_mask(std::string_view text) {
  std::uint64_t signs = 0;
  for (char c : text) signs |= sign_of(lower(c));
  return signs;
}

std::size_t FoldedNames::common_prefix_length(std::uint32_t first, std::uint32_t second) const {
  if (second <= first) return 0;
  return *std::min_element(shared.begin() + first + 1, shared.begin() + second + 1);
}

FoldedNames fold_names(const Checkpoint& checkpoint) {
  FoldedNames names;
  std::size_t bytes = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    bytes += checkpoint.fqn(TensorId{t}).size() + 1;
  names.text.reserve(bytes);
  names.begin.reserve(checkpoint.tensor_count() + 1);
  names.shared.reserve(checkpoint.tensor_count());
  names.signs.reserve(checkpoint.tensor_count());
  std::string_view before;  // view into the text, whose capacity is reserved
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    names.begin.push_back(names.text.size());
    for (char c : checkpoint.fqn(TensorId{t})) names.text += lower(c);
    std::string_view name = std::string_view(names.text).substr(names.begin.back());
    names.signs.push_back(character_set_mask(name));
    names.text += '\0';
    auto front = std::mismatch(before.begin(), before.end(), name.begin(), name.end()).first;
    names.shared.push_back(
        static_cast<std::uint16_t>(std::min<std::ptrdiff_t>(front - before.begin(), 0xFFFF)));
    before = name;
  }
  names.begin.push_back(names.text.size());
  return names;
}

std::vector<std::uint32_t> tensors_with_word(const FoldedNames& names, const std::string& word) {
  std::vector<std::uint32_t> found;
  const char *text = names.text.data(), *end = text + names.text.size();
  auto next = names.begin.begin();  // the first name that begins after the match
  for (const char* at = text; at < end;) {
    const void* hit = ::memmem(at, static_cast<std::size_t>(end - at), word.data(), word.size());
    if (hit == nullptr) break;
    auto place = static_cast<std::size_t>(static_cast<const char*>(hit) - text);
    next = std::upper_bound(next, names.begin.end(), place);
    bool inside = place + word.size() < *next;  // the match must not extend into the next name
    if (inside) found.push_back(static_cast<std::uint32_t>(next - names.begin.begin() - 1));
    at = inside ? text + *next : text + place + 1;
  }
  return found;
}

}  // namespace shw
