// What a test may ask of the double of libnccl beyond NCCL's own calls; found by dlsym, as those
// are.
//
// The double moves host memory between the threads and processes of one machine, is as strict as
// NCCL's documentation allows (a send ends when it has been received, nothing is buffered, a group
// enters its stream some time after ncclGroupEnd) and holds every call against what that demands.
// What breaks a rule is told on stderr and ends the process, unless a test said that it only
// counts.
#pragma once

extern "C" {

struct NcclDoubleCounts {
  long begun;       // communicators
  long alive;       // of them
  long groups;      // given to streams
  long violations;  // counted since tolerated
};

void ncclDoubleCounts(NcclDoubleCounts* counts);
// 1 where all that entered the stream has been done.
int ncclDoubleStreamIdle(void* stream);
// What is to go wrong from now on, instead of what was before; also $SHW_NCCL_DOUBLE_FAULT.
//   ""                 nothing
//   hang-init:R        the communicator of rank R never comes up
//   hang:R:K           the K-th group of rank R never moves
//   fail:R:K:CODE      instead of it an error turns up, asynchronously
//   lose:R:K           with it rank R is gone: its connections close, and it hears nothing more
//   die:R:K            with it the process of rank R is killed
//   call:NAME:CODE     the call ncclNAME fails
void ncclDoubleFault(const char* fault);
// Violations are counted, and the last one is remembered.
void ncclDoubleTolerate(int tolerate);
const char* ncclDoubleViolation();
}
