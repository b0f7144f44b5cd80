#include "core/exec/team_journal.h"

#include <utility>

namespace shw {

void pack(Packer& words, const DurableFile& file) {
  words.add(file.path);
  words.add(file.size);
  words.add(std::vector<std::uint64_t>(file.checksums.begin(), file.checksums.end()));
}

Result<DurableFile> unpack_durable_file(Unpacker& words) {
  DurableFile file;
  SHW_TRY(file.path, words.text());
  SHW_TRY(file.size, words.number());
  SHW_TRY(auto checksums, words.numbers());
  for (std::uint64_t one : checksums) file.checksums.push_back(static_cast<std::uint32_t>(one));
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
