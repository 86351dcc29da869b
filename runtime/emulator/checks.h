// What is known of four bytes of memory during a checked launch.
#pragma once

#include <cstdint>

namespace emulator {

struct Access {
  uint32_t block = 0;  // serial number of the block; below the launch's first: nothing known
  uint32_t barrier_epoch = 0;
  uint32_t line = 0;  // offset of the access in the module's code
  uint16_t thread = 0;
  uint16_t warp_epoch = 0;
  uint8_t bytes = 0;  // which of the four, a bit each
  bool atomic = false;
  bool by_others = false;         // a read: another thread of the block read as well, in this epoch
  bool by_other_blocks = false;   // a read: another block read as well, in this launch
};

struct Cell {
  Access write, read;
  uint32_t written_block = 0;  // for shared memory: of which block
  uint8_t written = 0;         // and which bytes were written
};

}  // namespace emulator
