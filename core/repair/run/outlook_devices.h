// How long a run would take with each device that is there.
#pragma once

#include "core/exec/device.h"
#include "core/program/program.h"
#include "core/repair/run/outlook.h"

namespace shw {

// Fills `devices` and `no_gpu` beside the forecast, which is of the CPU: only the making of
// elements depends on the device.
void predict_devices(const Program& program, const DeviceOptions& options, RepairOutlook& outlook);

}  // namespace shw
