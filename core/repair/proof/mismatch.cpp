#include "core/repair/proof/mismatch.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/tensor/element_text.h"

namespace shw {
namespace {

// Different NaNs have one text, as do both zeros of some dtypes, so bytes are shown too.
std::string bytes_text(BytesView bytes) {
  std::string text = " (bytes";
  for (std::byte one : bytes) text += fmt::format(" {:02x}", static_cast<unsigned>(one));
  return text + ")";
}

}  // namespace

Mismatch first_mismatch(Dtype dtype, const Box& box, BytesView there, BytesView expected) {
  auto [a, b] = std::mismatch(there.begin(), there.end(), expected.begin(), expected.end());
  std::size_t size = size_of(dtype);
  std::size_t element = static_cast<std::size_t>(a - there.begin()) / size;
  Mismatch found;
  found.index = box.offsets;
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = box.sizes.size(); d-- > 0;) {
    found.index[d] += rest % box.sizes[d];
    rest /= box.sizes[d];
  }
  found.value = element_text(dtype, there, element);
  found.expected = element_text(dtype, expected, element);
  if (found.value != found.expected) return found;
  found.value += bytes_text(there.subspan(element * size, size));
  found.expected += bytes_text(expected.subspan(element * size, size));
  return found;
}

}  // namespace shw
