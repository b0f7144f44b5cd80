#include "core/exec/team_journal.h"

#include <utility>

namespace shw {

void pack(Encoder& payload, const DurableFile& file) {
  payload.add(file.path);
  payload.add(file.size);
  std::vector<std::uint64_t> numbers;
  for (const auto& [fingerprint, out_of_range] : file.elements)
    numbers.insert(numbers.end(), {fingerprint.a, fingerprint.b, out_of_range});
  payload.add(numbers);
}

Result<DurableFile> unpack_durable_file(Decoder& payload) {
  DurableFile file;
  SHW_TRY(file.path, payload.text());
  SHW_TRY(file.size, payload.number());
  SHW_TRY(auto numbers, payload.numbers());
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3)
    file.elements.push_back({{numbers[i], numbers[i + 1]}, numbers[i + 2]});
  return file;
}

Status TeamJournal::add(const DurableFile& file) {
  if (journal_ != nullptr) return journal_->add(file);
  std::lock_guard lock(guard_);
  unsent_.push_back(file);
  return {};
}

Bytes TeamJournal::news() {
  std::lock_guard lock(guard_);
  if (unsent_.empty()) return {};
  Encoder payload;
  for (const DurableFile& file : unsent_) pack(payload, file);
  unsent_.clear();
  return payload.take();
}

Status TeamJournal::receive(std::size_t member, BytesView news) {
  if (journal_ == nullptr || member == team_.rank()) return {};
  Decoder payload(news);
  while (!payload.is_at_end()) {
    SHW_TRY(DurableFile file, unpack_durable_file(payload));
    SHW_CHECK(journal_->add(file));
  }
  return {};
}

}  // namespace shw
