// Predicts how long a run would take with each available device.
#pragma once

#include "core/exec/device.h"
#include "core/program/program.h"
#include "core/repair/run/estimate.h"

namespace shw {

// Fills `devices` and `no_gpu`. The forecast is for the CPU; only computing elements depends on the
// device.
void estimate_devices(const Program& program, const DeviceOptions& options,
                      RepairEstimate& outlook);

}  // namespace shw
