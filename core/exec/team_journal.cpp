#include "core/exec/team_journal.h"

#include <utility>

namespace shw {

void pack(Packer& words, const DurableFile& file) {
  words.add(file.path);
  words.add(file.size);
  std::vector<std::uint64_t> numbers;
  for (const auto& [fingerprint, out_of_range] : file.elements)
    numbers.insert(numbers.end(), {fingerprint.a, fingerprint.b, out_of_range});
  words.add(numbers);
}

Result<DurableFile> unpack_durable_file(Unpacker& words) {
  DurableFile file;
  SHW_TRY(file.path, words.text());
  SHW_TRY(file.size, words.number());
  SHW_TRY(auto numbers, words.numbers());
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3)
    file.elements.push_back({{numbers[i], numbers[i + 1]}, numbers[i + 2]});
  return file;
}

Status TeamJournal::add(const DurableFile& file) {
  if (journal_ != nullptr) return journal_->add(file);
  std::lock_guard lock(guard_);
  untold_.push_back(file);
  return {};
}

Bytes TeamJournal::news() {
  std::lock_guard lock(guard_);
  if (untold_.empty()) return {};
  Packer words;
  for (const DurableFile& file : untold_) pack(words, file);
  untold_.clear();
  return words.take();
}

Status TeamJournal::hear(std::size_t member, BytesView news) {
  if (journal_ == nullptr || member == team_.rank()) return {};
  Unpacker words(news);
  while (!words.is_at_end()) {
    SHW_TRY(DurableFile file, unpack_durable_file(words));
    SHW_CHECK(journal_->add(file));
  }
  return {};
}

}  // namespace shw
