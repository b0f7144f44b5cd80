// Items that differ only in their payload, as torch.save writes them. The bytes around a payload
// are computed once per dtype and sizes; per item only checksums are updated. For millions of small
// chunks this takes a tenth of the time.
#pragma once

#include <cstdint>

#include "core/formats/common/torch_item_write.h"

namespace shw {

class ItemTemplate {
 public:
  // `length`: bytes of the payload.
  static Result<ItemTemplate> of(Dtype dtype, ExtentsView sizes, std::uint64_t length);

  bool are(Dtype dtype, ExtentsView sizes) const { return dtype == dtype_ && same(sizes, sizes_); }
  std::uint64_t length() const { return length_; }          // bytes of an item
  std::uint64_t payload() const { return before_.size(); }  // offset of the payload in an item
  BytesView before() const { return before_; }
  // The bytes after a payload with this CRC-32; valid until the next call.
  BytesView behind(std::uint32_t crc);

 private:
  ItemTemplate() = default;
  std::uint64_t trailing_begin() const { return length_ - bytes_after_.size(); }

  Dtype dtype_ = Dtype::kUnknown;
  Extents sizes_;
  std::uint64_t length_ = 0, payload_length_ = 0;
  Bytes before_, bytes_after_;
  StorageMarks marks_;
};

}  // namespace shw
