// Repairs on a store that loses everything not durable.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "core/dead_process.h"
#include "core/formats/open.h"
#include "core/io/owner.h"
#include "core/io/path_text.h"
#include "core/memory_store.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/killed_repair.h"

namespace shw::test {

struct InMemory {
  MemoryStore store;
  InMemory() {
    // Made once, since its .metadata names the folder.
    static const Files files = [] {
      TemporaryFolder folder;
      write_three(folder / "ckpt");
      return files_below(posix_store(), folder / "ckpt");
    }();
    for (const auto& [path, bytes] : files) store.put("/ckpt/" + path, bytes);
  }
  std::shared_ptr<const Checkpoint> open(const std::string& path) const {
    auto folder = store.read_folder(path);
    REQUIRE(folder.has_value());
    auto checkpoint = open_checkpoint(*folder);
    if (!checkpoint) FAIL(checkpoint.error().message);
    return *checkpoint;
  }
  std::vector<std::string> half_made() const {
    std::vector<std::string> found;
    for (const std::string& name : store.names("/")) {
      if (name.find(kPartialMark) != std::string::npos) found.push_back("/" + name);
    }
    return found;
  }
  // Kills the process that makes it: all steps that it could still do fail.
  void bury() {
    auto bytes = std::as_bytes(std::span(dead));
    for (const std::string& path : half_made()) {
      if (!store.get(path + "/" + kOwnerFile)) continue;
      store.put(path + "/" + kOwnerFile, {bytes.begin(), bytes.end()});
      // The name may show that this running process took it over.
      if (path.find("taken") != std::string::npos)
        REQUIRE(store.publish(path, std::string("/out") + kPartialMark + "1"));
    }
  }
  std::string dead = dead_process();
};

inline Result<RepairResult> repair_in(Store& store, const InMemory& made, bool moves = true) {
  auto checkpoint = made.open("/ckpt");
  return apply_plan(store, *checkpoint, plan_of_rows(*checkpoint, moves), {"/out"});
}

}  // namespace shw::test
