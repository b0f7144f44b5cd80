// Devices recorded for the storages of a torch.save file: "cpu", "cuda:0". torch.load without
// map_location moves each storage back there, and fails for an unknown device.
#pragma once

#include <string>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/model/finding.h"

namespace shw {

// One finding for devices unknown to torch itself, one for known backends outside of torch. The
// data is intact in both cases and can be read here.
std::vector<Finding> storage_device_findings(const PickleTree& tree, const std::string& path);

}  // namespace shw
