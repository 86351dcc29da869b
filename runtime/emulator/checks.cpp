// Checks of single accesses: bounds, races between barriers, reads of what nobody wrote.
//
// A race is two accesses of one place by two threads, one of them a write and not both atomic, with
// no barrier between them (for lanes of one warp: no __syncwarp either), or from two blocks of one
// launch. Per four bytes the last write and the last read are kept, so a race may be missed where
// many threads touch one place; none is reported that is not there, but for hand-made protocols
// of fences and flags, which are not understood.
#include "checks.h"

#include <algorithm>
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

std::vector<Cell> static_cells, dynamic_cells;
Address static_start, static_end;

const char *verb(uopc_access kind) {
  return kind == UOPC_READ ? "a load" : kind == UOPC_WRITE ? "a store" : "an atomic operation";
}

std::string bytes_text(unsigned size) {
  return std::to_string(size) + (size == 1 ? " byte" : " bytes");
}

[[noreturn]] void fail_at(const void *pc, Result result, const std::string &what) {
  fail(result, source_line(*running().launch->function->module, pc), what);
}

// -- where an address lies ------------------------------------------------------------------------

[[noreturn]] void fail_shared_bounds(Address address, unsigned size, uopc_access kind,
                                     const void *pc) {
  const Variable *nearest = nullptr;
  for (const Variable &variable : running().launch->function->shared)
    if (variable.start <= address || !nearest) nearest = &variable;
  std::string where = "outside the kernel's shared variables";
  if (nearest)
    where = "at offset " + std::to_string(static_cast<int64_t>(address - nearest->start)) +
            " of shared `" + nearest->name + "` of " + std::to_string(nearest->size) + " bytes";
  fail_at(pc, illegal_address, std::string(verb(kind)) + " of " + bytes_text(size) + " " + where);
}

struct Place {
  Cell *cell = nullptr;  // of the first byte; null where nothing is checked
  unsigned offset = 0;   // of that byte in the cell
  bool shared = false;
};

Place find_static(Address address, unsigned size, uopc_access kind, const void *pc) {
  for (const Variable &variable : running().launch->function->shared) {
    if (address - variable.start >= variable.size) continue;
    if (address + size > variable.start + variable.size) break;
    const size_t offset = address - static_start;
    return {&static_cells[offset / 4], unsigned(offset % 4), true};
  }
  fail_shared_bounds(address, size, kind, pc);
}

Place find_global(Address address, unsigned size, uopc_access kind, const void *pc) {
  Allocation *allocation = find_allocation(address, size);
  if (!allocation)
    fail_at(pc, illegal_address,
            std::string(verb(kind)) + " of " + bytes_text(size) + " at " +
                describe_address(address));
  if (!allocation->cells) allocation->cells.reset(new Cell[allocation->size / 4 + 5]);
  const size_t offset = address - allocation->start;
  return {&allocation->cells[offset / 4], unsigned(offset % 4), false};
}

Place find_place(Address address, unsigned size, uopc_access kind, const void *pc) {
  if (is_private(address)) return {};
  if (address >= static_start && address < static_end) return find_static(address, size, kind, pc);
  const Running &now = running();
  const Address dynamic = reinterpret_cast<Address>(now.dynamic_shared);
  const size_t offset = address - dynamic;
  if (offset < now.launch->dynamic_shared + 4096) {
    if (offset + size > now.launch->dynamic_shared)
      fail_at(pc, illegal_address,
              std::string(verb(kind)) + " of " + bytes_text(size) + " at offset " +
                  std::to_string(offset) + " of dynamic shared memory of " +
                  std::to_string(now.launch->dynamic_shared) + " bytes");
    return {&dynamic_cells[offset / 4], unsigned(offset % 4), true};
  }
  const Module &module = *now.launch->function->module;
  // Constants, and the variables by which kernel and emulator know each other.
  if (address >= module.bias && address < module.end) return {};
  return find_global(address, size, kind, pc);
}

// -- races ----------------------------------------------------------------------------------------

// Whether an earlier access may run at the same time as one by the thread that runs now.
bool unordered(const Access &earlier, const Running &now, bool shared) {
  if (earlier.block < now.first_serial) return false;
  if (earlier.block != now.block_serial) return !shared;
  if (earlier.thread == now.linear || earlier.barrier_epoch != now.barrier_epoch) return false;
  return earlier.thread / 32 != now.warp || earlier.warp_epoch == now.warp_epoch;
}

bool conflicts_with_reads(const Access &read, const Running &now, bool shared) {
  if (unordered(read, now, shared)) return true;
  if (read.block < now.first_serial) return false;
  if (!shared && read.by_other_blocks) return true;
  return read.by_others && read.block == now.block_serial &&
         read.barrier_epoch == now.barrier_epoch && read.thread == now.linear;
}

[[noreturn]] void fail_race(const Access &earlier, uopc_access earlier_kind, uopc_access kind,
                            bool shared, const void *pc) {
  const Running &now = running();
  const Module &module = *now.launch->function->module;
  const std::string line =
      source_line(module, reinterpret_cast<const void *>(module.bias + earlier.line));
  const std::string who = earlier.block == now.block_serial
                              ? "thread " + place(thread_index(earlier.thread))
                              : "another block's thread " + place(thread_index(earlier.thread));
  fail_at(pc, launch_failed,
          std::string("a race in ") + (shared ? "shared" : "global") + " memory: " + verb(kind) +
              ", with " + verb(earlier_kind) + " by " + who +
              (line.empty() ? "" : " at " + line) + " and no barrier between them");
}

void note(Access &access, const Running &now, uint8_t bytes, bool atomic, const void *pc) {
  const Module &module = *now.launch->function->module;
  access.block = now.block_serial;
  access.barrier_epoch = now.barrier_epoch;
  access.line = uint32_t(reinterpret_cast<Address>(pc) - module.bias);
  access.thread = uint16_t(now.linear);
  access.warp_epoch = uint16_t(now.warp_epoch);
  access.bytes = bytes;
  access.atomic = atomic;
}

void note_read(Access &read, const Running &now, uint8_t bytes, const void *pc) {
  const bool known = read.block >= now.first_serial && (read.bytes & bytes);
  const bool same_block = known && read.block == now.block_serial;
  const bool same_epoch = same_block && read.barrier_epoch == now.barrier_epoch;
  const bool by_others = same_epoch && (read.by_others || read.thread != now.linear);
  const bool by_other_blocks = known && (read.by_other_blocks || !same_block);
  note(read, now, bytes, false, pc);
  read.by_others = by_others;
  read.by_other_blocks = by_other_blocks;
}

void check_cell(Cell &cell, uint8_t bytes, uopc_access kind, bool shared, const void *pc) {
  const Running &now = running();
  if (shared) {
    if (cell.written_block != now.block_serial) {
      cell.written_block = now.block_serial;
      cell.written = 0;
    }
    if (kind != UOPC_WRITE && (bytes & ~cell.written))
      fail_at(pc, launch_failed,
              std::string(verb(kind)) + " from shared memory that no thread of the block has written yet");
  }
  const bool atomic = kind == UOPC_ATOMIC;
  if ((cell.write.bytes & bytes) && !(atomic && cell.write.atomic) &&
      unordered(cell.write, now, shared))
    fail_race(cell.write, cell.write.atomic ? UOPC_ATOMIC : UOPC_WRITE, kind, shared, pc);
  if (kind == UOPC_READ) {
    note_read(cell.read, now, bytes, pc);
    return;
  }
  if ((cell.read.bytes & bytes) && conflicts_with_reads(cell.read, now, shared))
    fail_race(cell.read, UOPC_READ, kind, shared, pc);
  note(cell.write, now, bytes, atomic, pc);
  cell.written |= bytes;
}

}  // namespace

void check_access(const void *pointer, unsigned size_and_flag, uopc_access kind, const void *pc) {
  const unsigned size = size_and_flag & 0xff;
  const Address address = reinterpret_cast<Address>(pointer);
  const Place found = find_place(address, size, kind, pc);
  if (!found.cell) return;
  if (size == size_and_flag && address % size)
    fail_at(pc, misaligned_address,
            std::string(verb(kind)) + " of " + bytes_text(size) +
                " at an address that is not aligned to it");
  unsigned offset = found.offset;
  Cell *cell = found.cell;
  for (unsigned left = size; left > 0; cell++, offset = 0) {
    const unsigned count = std::min(4 - offset, left);
    check_cell(*cell, uint8_t(((1u << count) - 1) << offset), kind, found.shared, pc);
    left -= count;
  }
}

void checks_begin_launch(const Launch &launch) {
  const std::vector<Variable> &shared = launch.function->module->shared;
  static_start = shared.empty() ? 0 : shared.front().start & ~Address(3);
  // Past the last variable too, as far as a small overflow reaches.
  static_end = shared.empty() ? 0 : shared.back().start + shared.back().size + 256;
  static_cells.assign((static_end - static_start) / 4 + 5, Cell());
  dynamic_cells.assign(launch.dynamic_shared / 4 + 5, Cell());
}

}  // namespace emulator
