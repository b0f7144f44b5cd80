#include "core/exec/file_parts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/checked.h"

namespace shw {
namespace {

std::vector<FilePart> sorted_parts(const LaidOut& laid_out) {
  std::vector<FilePart> parts;
  parts.reserve(laid_out.before.size() + laid_out.copies.size() + laid_out.made.size());
  for (std::size_t i = 0; i < laid_out.before.size(); ++i) {
    const OutputBytes& bytes = laid_out.before[i];
    parts.push_back({FilePart::Is::kBytes, bytes.file, i, bytes.offset, bytes.bytes.size()});
  }
  for (std::size_t i = 0; i < laid_out.copies.size(); ++i) {
    const OutputCopy& copy = laid_out.copies[i];
    parts.push_back({FilePart::Is::kCopy, copy.file, i, copy.offset, copy.length});
  }
  for (std::size_t i = 0; i < laid_out.made.size(); ++i) {
    const MadeTile& made = laid_out.made[i];
    parts.push_back({FilePart::Is::kMade, made.file, i, made.offset, made.length});
  }
  // A sort that keeps the order of equals by itself would take half as much again, of millions.
  std::sort(parts.begin(), parts.end(), [](const FilePart& a, const FilePart& b) {
    // Of nothing comes first: it begins where the next one does.
    return std::tuple(a.file, a.offset, a.length, a.is, a.index) <
           std::tuple(b.file, b.offset, b.length, b.is, b.index);
  });
  return parts;
}

// Each lies inside of its file, behind the one before.
Status check_parts(const LaidOut& laid_out, const std::vector<FilePart>& parts) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const FilePart& part = parts[i];
    if (i == 0 || parts[i - 1].file != part.file) end = 0;
    const LaidOut::File& file = laid_out.files[part.file];
    auto next = checked_add(part.offset, part.length);
    if (part.offset < end)
      return fail(ErrorKind::kIo, "two parts of a new file would lie at one place",
                  {file.path, part.offset});
    if (!next || *next > file.size)
      return fail(ErrorKind::kIo, "a part of a new file would lie beyond its end",
                  {file.path, part.offset});
    end = *next;
  }
  return {};
}

}  // namespace

std::vector<OutputId> outputs_in_order(const LaidOut& laid_out, std::span<const OutputId> made) {
  std::vector<std::uint32_t> order(made.size());
  std::iota(order.begin(), order.end(), 0u);
  auto place = [&](std::uint32_t i) {
    return std::tuple(laid_out.made[i].file, laid_out.made[i].offset, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  std::vector<OutputId> outputs;
  for (std::uint32_t i : order) outputs.push_back(made[i]);
  return outputs;
}

Result<std::vector<FilePart>> file_parts_of(const LaidOut& laid_out) {
  std::vector<FilePart> parts = sorted_parts(laid_out);
  SHW_CHECK(check_parts(laid_out, parts));
  return parts;
}

}  // namespace shw
