// Where every new payload comes to lie in its file, known before a byte is written.
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/safetensors/safetensors_header.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

// Counts what a writer writes.
class CountingSink final : public ByteSink {
 public:
  Status write(std::span<const std::byte> bytes) override { return skip(bytes.size()); }
  Status write_at(std::uint64_t, std::span<const std::byte>) override { return {}; }
  Status skip(std::uint64_t length) override {
    end_ += length;
    return {};
  }
  std::uint64_t position() const override { return end_; }
  Status finish() override { return {}; }

 private:
  std::uint64_t end_ = 0;
};

// A new file has the metadata of the one it begins as, and none of its tensors.
Status drop_all_others(const ByteSource& source, SafetensorsChange& change) {
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(source));
  for (const SafetensorsEntry& entry : header.entries) {
    if (!change.written.contains(entry.name)) change.dropped.insert(entry.name);
  }
  return {};
}

}  // namespace

Result<std::vector<PayloadPlace>> lay_out_items(const Checkpoint& checkpoint, const Plan& plan,
                                                const std::vector<NewItemFile>& files) {
  std::vector<PayloadPlace> places;
  for (const NewItemFile& file : files) {
    CountingSink counter;
    for (const NewChunk& id : file.chunks) {
      const PlannedTensor& tensor = plan.tensors[id.first];
      const Extents& sizes = tensor.chunks[id.second].box.sizes;
      Dtype dtype = checkpoint.dtype(tensor.tensor);
      PayloadWriter payload;
      payload.length = static_cast<std::uint64_t>(volume(sizes).value_or(0)) * size_of(dtype);
      payload.write = [&](ByteSink& sink) -> Result<std::uint32_t> {
        places.push_back({id, file.name, sink.position()});
        SHW_CHECK(sink.skip(payload.length));
        return 0;
      };
      SHW_TRY(std::uint64_t length, write_torch_item(counter, dtype, sizes, payload));
      static_cast<void>(length);
    }
  }
  return places;
}

Status lay_out_safetensors(const Checkpoint& checkpoint, const Plan& plan, NewSafetensors& made) {
  std::map<std::string, std::map<std::string, std::uint64_t>> offsets;
  for (auto& [path, change] : made.changes) {
    auto added = made.added.find(path);
    SHW_TRY(auto source,
            checkpoint.directory()->open(added == made.added.end() ? path : added->second));
    if (added != made.added.end()) SHW_CHECK(drop_all_others(*source, change));
    if (change.written.empty()) continue;
    SHW_TRY(offsets[path], payload_offsets(*source, change));
  }
  for (PayloadPlace& place : made.places) {
    std::string fqn(checkpoint.fqn(plan.tensors[place.chunk.first].tensor));
    place.offset = offsets.at(place.file).at(fqn);
  }
  return {};
}

void give_payloads(const Checkpoint& checkpoint, const Plan& plan, Payloads& payloads,
                   NewSafetensors& made) {
  for (const PayloadPlace& place : made.places) {
    std::string fqn(checkpoint.fqn(plan.tensors[place.chunk.first].tensor));
    made.changes.at(place.file).written.at(fqn).write =
        [writer = payloads.writer_of(place.chunk)](ByteSink& sink) -> Status {
      SHW_TRY(std::uint32_t crc, writer.write(sink));
      static_cast<void>(crc);  // a safetensors file has none
      return {};
    };
  }
}

}  // namespace shw
