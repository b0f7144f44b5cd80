// A store in memory for tests. It tracks durable data and can drop the rest, as a crash does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/store.h"

namespace shw {

class MemoryStore final : public Store {
 public:
  MemoryStore();
  ~MemoryStore() override;

  // Adds a durable file and its parent folders.
  void put(const std::string& path, Bytes bytes);
  std::optional<Bytes> get(const std::string& path) const;  // nullopt if there is no such file

  // Enables block sharing between files; the counter returns how many bytes were shared.
  void share_blocks();
  std::uint64_t shared_bytes() const;

  // Bytes in unnamed scratch files: now, and the maximum so far.
  struct Scratch {
    std::uint64_t now = 0, most = 0;
  };
  Scratch scratch() const;

  // What survives a simulated crash. Bytes are durable after finish() or copy, names after a sync
  // of their folder. A real system may have written more: kNames keeps every name.
  enum class Survives : std::uint8_t { kOnlySynced, kNames };
  void cut_power(Survives what);

  bool exists(const std::string& path) const override;
  Result<std::string> resolved(const std::string& path) const override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  bool can_reflink(const std::string& folder, const ByteSource& source) const override;
  std::vector<std::string> names(const std::string& folder) const override;
  Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const override;
  Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) override;
  Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) override;
  Status publish(const std::string& temporary, const std::string& final_path) override;
  Status discard(const std::string& path, const std::string& marker) override;

  struct Tree;

 private:
  std::shared_ptr<Tree> tree_;  // shared with open folders and files
};

}  // namespace shw
