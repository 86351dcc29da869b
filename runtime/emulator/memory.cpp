// Device memory: every allocation of its own, filled with NaN, ending at pages without access.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "checks.h"
#include "emulator.h"

namespace emulator {
namespace {

constexpr size_t page = 4096;
// Wide, so that an index that is far off does not meet another allocation.
constexpr size_t guard = 1 << 20;
constexpr Address alignment = 16;

std::map<Address, Allocation> allocations;
size_t total_allocated;

}  // namespace

Result allocate(size_t size, Address &start) {
  if (size == 0) return invalid_value;
  if (size > total_bytes() || total_allocated + size > total_bytes()) return out_of_memory;
  const size_t pages = (size + page - 1) & ~(page - 1);
  const size_t mapping_size = pages + 2 * guard;
  void *mapping = mmap(nullptr, mapping_size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return out_of_memory;
  char *usable = static_cast<char *>(mapping) + guard;
  if (mprotect(usable, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, mapping_size);
    return out_of_memory;
  }
  memset(usable, 0xff, pages);
  start = reinterpret_cast<Address>(usable + pages) - ((size + alignment - 1) & ~(alignment - 1));
  allocations[start] = {start, size, static_cast<char *>(mapping), mapping_size, nullptr};
  total_allocated += size;
  return success;
}

bool release(Address start) {
  auto found = allocations.find(start);
  if (found == allocations.end()) return false;
  munmap(found->second.mapping, found->second.mapping_size);
  total_allocated -= found->second.size;
  allocations.erase(found);
  return true;
}

void release_all() {
  while (!allocations.empty()) release(allocations.begin()->first);
}

size_t allocated_bytes() { return total_allocated; }

size_t total_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) /
         2;
}

Allocation *find_allocation(Address start, size_t size) {
  auto next = allocations.upper_bound(start);
  if (next == allocations.begin()) return nullptr;
  Allocation &allocation = (--next)->second;
  const Address offset = start - allocation.start;
  return offset <= allocation.size && size <= allocation.size - offset ? &allocation : nullptr;
}

std::string describe_address(Address address) {
  for (const auto &[start, allocation] : allocations) {
    const Address first = reinterpret_cast<Address>(allocation.mapping);
    if (address - first >= allocation.mapping_size) continue;
    return "offset " + std::to_string(static_cast<int64_t>(address - start)) +
           " of an allocation of " + std::to_string(allocation.size) + " bytes";
  }
  char text[64];
  snprintf(text, sizeof text, "address %#llx, which is no device memory",
           static_cast<unsigned long long>(address));
  return text;
}

}  // namespace emulator
