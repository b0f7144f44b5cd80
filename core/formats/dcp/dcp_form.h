// Details in which `.metadata` pickles differ between torch versions. torch only unpickles classes
// that it has, so a repair writes the form it found: 2.2 has its tensor properties in another
// module, 2.3 has no StorageMeta, and neither has any version before 2.9.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/io/source.h"

namespace shw {

// Defaults are those of torch 2.9 to 2.14.
struct PickledForm {
  enum class Field : std::uint8_t { kAbsent, kNone, kSubmitted };
  std::string properties_module = "torch.distributed.checkpoint.metadata";
  std::string memory_format = "_MEM_FORMAT_ENCODING";                      // in that module
  std::string storage_module = "torch.distributed.checkpoint.filesystem";  // of _StorageInfo
  Field planner_data = Field::kSubmitted;
  Field storage_meta = Field::kSubmitted;
  Field version = Field::kSubmitted;
  std::string version_text = "1.0.0";
  std::vector<std::string> storage_meta_fields = {"checkpoint_id", "save_id", "load_id", "modules"};
};

// The form of the directory's .metadata, or if there is none, of its first `__R.metadata`.
Result<PickledForm> read_pickled_form(const Directory& directory);

// Writes metadata like write_dcp_metadata(), but in the pickle form `form`. An empty checkpoint_id
// or save_id is written as None.
Status write_dcp_metadata_as(const PickledForm& form, const DcpMetadata& metadata, ByteSink& sink);

}  // namespace shw
