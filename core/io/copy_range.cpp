#include "core/io/copy_range.h"

#include <algorithm>

namespace shw {
namespace {

// Bytes between two checks for cancellation. File systems share extents of megabytes at once.
constexpr std::uint64_t kSharedAtOnce = std::uint64_t{256} << 20;

// Splits a range that goes to `at`: bytes before the first whole block, and whole blocks.
struct ReflinkableBlocks {
  std::uint64_t head = 0, length = 0;
};
ReflinkableBlocks reflinkable_blocks(std::uint64_t offset, std::uint64_t length, std::uint64_t at) {
  if (length < kMinShared || reflink_alignment_padding(offset, at) != 0) return {};
  const std::uint64_t head = (kShareBlock - offset % kShareBlock) % kShareBlock;
  return {head, (length - head) / kShareBlock * kShareBlock};
}

Status copy_bytes(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const ExtentVisitor* passing) {
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    if (passing != nullptr) SHW_CHECK(passing->bytes(bytes));
    SHW_CHECK(out.write_at(at, bytes));
    at += bytes.size();
    return {};
  };
  parts.hole = [&](std::uint64_t hole) -> Status {
    at += hole;
    return passing == nullptr ? Status{} : passing->hole(hole);
  };
  return read_through(source, offset, length, parts, progress);
}

// Shares whole blocks of both files; returns the number of shared bytes.
Result<std::uint64_t> share_blocks(const ByteSource& source, std::uint64_t offset,
                                   std::uint64_t length, OutputFile& out, std::uint64_t at,
                                   Progress* progress) {
  std::uint64_t done = 0;
  while (done < length) {
    if (is_cancelled(progress)) return cancelled_error();
    const std::uint64_t part = std::min(length - done, kSharedAtOnce);
    SHW_TRY(bool is_shared, out.reflink_at(at + done, source, offset + done, part));
    if (!is_shared) break;
    if (progress != nullptr) progress->add(part);
    done += part;
  }
  return done;
}

}  // namespace

std::uint64_t shared_in(std::uint64_t offset, std::uint64_t length, std::uint64_t at) {
  return reflinkable_blocks(offset, length, at).length;
}

Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const ExtentVisitor* passing) {
  const ReflinkableBlocks blocks = reflinkable_blocks(offset, length, at);
  SHW_TRY(const std::uint64_t shared, share_blocks(source, offset + blocks.head, blocks.length, out,
                                                   at + blocks.head, progress));
  if (shared == 0) return copy_bytes(source, offset, length, out, at, progress, passing);
  SHW_CHECK(copy_bytes(source, offset, blocks.head, out, at, progress, nullptr));
  const std::uint64_t end = blocks.head + shared;
  return copy_bytes(source, offset + end, length - end, out, at + end, progress, nullptr);
}

Status reflink_or_write(const ByteSource& source, std::uint64_t offset, BytesView bytes,
                        OutputFile& out, std::uint64_t at) {
  const ReflinkableBlocks blocks = reflinkable_blocks(offset, bytes.size(), at);
  SHW_TRY(const std::uint64_t shared, share_blocks(source, offset + blocks.head, blocks.length, out,
                                                   at + blocks.head, nullptr));
  if (shared == 0) return out.write_at(at, bytes);
  SHW_CHECK(out.write_at(at, bytes.first(static_cast<std::size_t>(blocks.head))));
  const std::uint64_t end = blocks.head + shared;
  return out.write_at(at + end, bytes.subspan(static_cast<std::size_t>(end)));
}

}  // namespace shw
