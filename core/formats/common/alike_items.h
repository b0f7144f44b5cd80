// Items that are alike but for their payload, as torch.save writes them: what stands around it is
// made once for all of a dtype and sizes, and told the CRC-32 of each. Of millions of small tiles
// that is a tenth of making each anew.
#pragma once

#include <cstdint>

#include "core/formats/common/torch_item_write.h"

namespace shw {

class AlikeItems {
 public:
  // `length` of the payload.
  static Result<AlikeItems> of(Dtype dtype, ExtentsView sizes, std::uint64_t length);

  bool are(Dtype dtype, ExtentsView sizes) const { return dtype == dtype_ && same(sizes, sizes_); }
  std::uint64_t length() const { return length_; }          // of an item
  std::uint64_t payload() const { return before_.size(); }  // where it begins in one
  BytesView before() const { return before_; }
  // Behind the payload, of the one with this CRC; until it is asked for another one.
  BytesView behind(std::uint32_t crc);

 private:
  AlikeItems() = default;
  std::uint64_t begin_behind() const { return length_ - behind_.size(); }

  Dtype dtype_ = Dtype::kUnknown;
  Extents sizes_;
  std::uint64_t length_ = 0, payload_length_ = 0;
  Bytes before_, behind_;
  StorageMarks marks_;
};

}  // namespace shw
