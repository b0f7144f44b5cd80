// A store for tests that fails at chosen operations.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/store.h"

namespace shw {

// Forwards every call to another store; derived classes override some.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& inner) : inner_(inner) {}
  bool exists(const std::string& path) const override;
  bool is_free_for_folder(const std::string& path) const override;
  Result<std::string> resolved(const std::string& path) const override;
  Result<std::uint64_t> free_bytes(const std::string& path) const override;
  bool can_reflink(const std::string& folder, const ByteSource& source) const override;
  std::vector<std::string> names(const std::string& folder) const override;
  Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const override;
  Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) override;
  Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) override;
  Status publish(const std::string& temporary, const std::string& final_path) override;
  Status discard(const std::string& path, const std::string& marker) override;

 protected:
  Store& inner() const { return inner_; }

 private:
  Store& inner_;
};

// Called before every modifying operation ("create", "write", "share", "finish", "copy", "rename",
// "remove", "sync", "make directory", "publish", "discard"); a returned Error replaces the
// operation. Calls are serialised.
using WriteFault =
    std::function<std::optional<Error>(const std::string& step, const std::string& path)>;

class FaultyStore final : public ForwardingStore {
 public:
  // `reads` is called before every file read; null: no read fails.
  FaultyStore(Store& inner, WriteFault decide, ReadFault reads = nullptr);
  Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const override;
  Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) override;
  Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) override;
  Status publish(const std::string& temporary, const std::string& final_path) override;
  Status discard(const std::string& path, const std::string& marker) override;

 private:
  WriteFault decide_;
  ReadFault reads_;
};

}  // namespace shw
