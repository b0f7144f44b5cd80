// For tests: a store in memory that knows what is durable, and loses the rest when told to.
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

  // A durable file, and the folders on the way to it.
  void put(const std::string& path, Bytes bytes);
  std::optional<Bytes> get(const std::string& path) const;  // nothing where there is no such file

  // From now on it is one that shares blocks between files; how many bytes were.
  void share_blocks();
  std::uint64_t shared_bytes() const;

  // What files without a name hold now, and held at most.
  struct Scratch {
    std::uint64_t now = 0, most = 0;
  };
  Scratch scratch() const;

  // A file's bytes are durable once it is finished or copied, a name once its folder is synced. The
  // system may have written more than it was asked to: with kNames every name is as it was last.
  enum class Survives : std::uint8_t { kOnlySynced, kNames };
  void cut_power(Survives what);

  bool exists(const std::string& path) const override;
  Result<std::string> resolved(const std::string& path) const override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  bool can_share(const std::string& folder, const ByteSource& source) const override;
  std::vector<std::string> names(const std::string& folder) const override;
  Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const override;
  Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) override;
  Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) override;
  Status publish(const std::string& temporary, const std::string& final_path) override;
  Status discard(const std::string& path, const std::string& marker) override;

  struct Tree;

 private:
  std::shared_ptr<Tree> tree_;  // folders and files that are open hold it too
};

}  // namespace shw
