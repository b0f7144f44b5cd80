#include "core/exec/file_parts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/checked.h"

namespace shw {
namespace {

// The lists of a layout, numbered consecutively.
class NumberedParts {
 public:
  explicit NumberedParts(const LaidOut& laid_out) : laid_out_(laid_out) {}

  FilePart at(std::uint32_t number) const {
    const std::size_t copies = laid_out_.before.size(), made = copies + laid_out_.copies.size();
    if (number < copies) {
      const OutputBytes& bytes = laid_out_.before[number];
      return {FilePart::Kind::kBytes, bytes.file, number, 0, bytes.offset, bytes.bytes.size()};
    }
    if (number < made) {
      const auto index = static_cast<std::uint32_t>(number - copies);
      const OutputCopy& copy = laid_out_.copies[index];
      return {FilePart::Kind::kCopy, copy.file, index, 0, copy.offset, copy.length};
    }
    const auto index = static_cast<std::uint32_t>(number - made);
    const WrittenTile& tile = laid_out_.made[index];
    return {FilePart::Kind::kMade, tile.file, index, 0, tile.offset, tile.length};
  }

  // Part numbers grouped by file: those of file f are [begins[f], begins[f + 1]).
  std::vector<std::uint32_t> by_file(std::vector<std::size_t>& begins) const {
    const std::size_t count = file_part_count(laid_out_);
    begins.assign(laid_out_.files.size() + 1, 0);
    for (std::uint32_t number = 0; number < count; ++number) ++begins[at(number).file + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t number = 0; number < count; ++number)
      order[next[at(number).file]++] = number;
    return order;
  }

 private:
  const LaidOut& laid_out_;
};

// Sorts by position. Empty parts come first: they begin where the next part does.
void sort_by_file_offset(const NumberedParts& parts, std::span<std::uint32_t> of_file) {
  struct Place {
    std::uint64_t offset = 0, length = 0;
    std::uint32_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  places.reserve(of_file.size());
  for (std::uint32_t number : of_file) {
    const FilePart part = parts.at(number);
    places.push_back({part.offset, part.length, number});
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) of_file[i] = places[i].number;
}

// Checks that a part is inside its file and not before `end`; sets `end` to the part's end.
Status check_part(const LaidOut& laid_out, const FilePart& part, std::uint64_t& end) {
  const LaidOut::File& file = laid_out.files[part.file];
  auto next = checked_add(part.offset, part.length);
  if (part.offset < end)
    return fail(ErrorKind::kIo, "two parts of a new file would be at one place",
                {file.path, part.offset});
  if (!next || *next > file.size)
    return fail(ErrorKind::kIo, "a part of a new file would be beyond its end",
                {file.path, part.offset});
  end = *next;
  return {};
}

}  // namespace

std::vector<OutputId> outputs_in_file_order(const LaidOut& laid_out,
                                            std::span<const OutputId> made) {
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

std::size_t file_part_count(const LaidOut& laid_out) {
  return laid_out.before.size() + laid_out.copies.size() + laid_out.made.size();
}

Status for_each_file_part(const LaidOut& laid_out,
                          const std::function<void(const FilePart&)>& then) {
  const NumberedParts parts(laid_out);
  std::vector<std::size_t> begins;
  std::vector<std::uint32_t> order = parts.by_file(begins);
  for (std::size_t file = 0; file < laid_out.files.size(); ++file) {
    const auto of_file = std::span(order).subspan(begins[file], begins[file + 1] - begins[file]);
    sort_by_file_offset(parts, of_file);
    std::uint64_t end = 0;
    for (std::uint32_t number : of_file) {
      const FilePart part = parts.at(number);
      SHW_CHECK(check_part(laid_out, part, end));
      then(part);
    }
  }
  return {};
}

}  // namespace shw
