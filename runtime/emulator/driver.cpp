// The calls of the CUDA driver that the runtime makes: devices, memory, streams, launches, graphs.
//
// Work is done when it is asked for, which is one of the orders that a GPU may take. As there, a
// kernel's fault is told by the next call, and by every call until the context is reset.
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>

#include "emulator.h"

#define API extern "C" __attribute__((visibility("default")))

namespace emulator {
namespace {

struct Graph {
  std::vector<std::function<Result()>> steps;
};

struct Stream {
  Graph *capture = nullptr;
};

struct Event {
  double milliseconds = -1;
};

struct LoadedModule {
  std::unique_ptr<Module> module;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

struct Device {
  bool initialized = false;
  int retained = 0;
  Fault fault;
  std::set<LoadedModule *> modules;
  std::set<Stream *> streams;
} device;

std::recursive_mutex mutex;
thread_local bool has_context = false;
thread_local Fault last_refusal;  // what the next error text says, beyond the code's own
char primary_context;

Result refuse(Result result, const std::string &why) {
  last_refusal = {result, why};
  return result;
}

Result state() {
  if (!device.initialized) return not_initialized;
  if (!has_context || !device.retained) return invalid_context;
  return device.fault.result;
}

// Every call that needs a context begins with it.
#define ENTER                                       \
  std::lock_guard<std::recursive_mutex> hold(mutex); \
  if (Result before = state()) return before

// Does `step` now, or at each launch of the graph that the stream records.
Result do_or_record(void *stream, std::function<Result()> step) {
  if (stream && static_cast<Stream *>(stream)->capture) {
    static_cast<Stream *>(stream)->capture->steps.push_back(std::move(step));
    return success;
  }
  return step();
}

// Device memory is what was allocated, and the variables of modules.
Result in_memory(Address start, size_t size) {
  if (size == 0 || find_allocation(start, size)) return success;
  for (const LoadedModule *loaded : device.modules)
    if (start >= loaded->module->bias && size <= loaded->module->end - start &&
        start < loaded->module->end)
      return success;
  return refuse(invalid_value, std::to_string(size) + " bytes at " + describe_address(start));
}

// -- launches -------------------------------------------------------------------------------------

Result check_launch(const Launch &launch) {
  const uopc_index &grid = launch.grid, &block = launch.block;
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return refuse(invalid_value, "a grid of " + place(grid) +
                                     " blocks; it may be (1..2147483647,1..65535,1..65535)");
  if (!threads || threads > most_threads || block.x > 1024 || block.y > 1024 || block.z > 64)
    return refuse(invalid_value, "a block of " + place(block) +
                                     " threads; it may be (1..1024,1..1024,1..64), 1024 in all");
  // Checked code has gaps between its shared variables, which count for nothing: sizes do.
  const size_t shared = launch.function->static_shared + launch.dynamic_shared;
  const size_t limit = launch.dynamic_shared ? launch.function->dynamic_limit : static_shared_limit;
  if (launch.dynamic_shared > limit || shared > std::max<size_t>(limit, static_shared_limit))
    return refuse(invalid_value, std::to_string(shared) + " bytes of shared memory, " +
                                     std::to_string(limit) + " allowed");
  return success;
}

Result launch_now(const Launch &launch) {
  if (device.fault.result) return success;  // of an earlier step of the same graph
  device.fault = run(launch);
  return success;
}

// The parameters' values, which the caller may change after the call.
struct Parameters {
  std::vector<uint64_t> storage;
  std::vector<void *> pointers;
  Parameters(const uopc_kernel &kernel, void **given) {
    size_t words = 0;
    for (unsigned i = 0; i < kernel.parameter_count; i++)
      words += (kernel.parameter_sizes[i] + 15) / 16 * 2;
    storage.resize(words + 1);
    char *next = reinterpret_cast<char *>(storage.data());
    for (unsigned i = 0; i < kernel.parameter_count; i++) {
      memcpy(next, given[i], kernel.parameter_sizes[i]);
      pointers.push_back(next);
      next += (kernel.parameter_sizes[i] + 15) / 16 * 16;
    }
  }
};

// -- errors ---------------------------------------------------------------------------------------

const struct {
  int result;
  const char *name, *text;
} known_results[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {misaligned_address, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

}  // namespace
}  // namespace emulator

using namespace emulator;

API int cuGetErrorName(int result, const char **name) {
  for (const auto &known : known_results)
    if (known.result == result) {
      *name = known.name;
      return success;
    }
  *name = nullptr;
  return invalid_value;
}

API int cuGetErrorString(int result, const char **text) {
  thread_local std::string whole;
  for (const auto &known : known_results) {
    if (known.result != result) continue;
    std::lock_guard<std::recursive_mutex> hold(mutex);
    const Fault &fault = device.fault.result == result ? device.fault : last_refusal;
    whole = known.text;
    if (result && fault.result == result && !fault.message.empty()) whole += ": " + fault.message;
    *text = whole.c_str();
    return success;
  }
  *text = nullptr;
  return invalid_value;
}

// -- device and context ---------------------------------------------------------------------------

API int cuInit(unsigned) {
  device.initialized = true;
  return success;
}

API int cuDriverGetVersion(int *version) {
  *version = 13000;
  return success;
}

API int cuDeviceGetCount(int *count) {
  *count = 1;
  return device.initialized ? success : not_initialized;
}

API int cuDeviceGet(int *handle, int ordinal) {
  *handle = 0;
  return ordinal == 0 ? success : invalid_device;
}

API int cuDeviceGetName(char *name, int size, int) {
  snprintf(name, size_t(size), "emulated device");
  return success;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = total_bytes();
  return success;
}

API int cuDeviceGetAttribute(int *value, int attribute, int) {
  static const std::map<int, int> attributes = {
      {1, most_threads},         // threads a block
      {2, 1024},                 // block dimensions
      {3, 1024},
      {4, 64},
      {5, 2147483647},           // grid dimensions
      {6, 65535},
      {7, 65535},
      {8, static_shared_limit},  // shared memory a block
      {10, 32},                  // lanes a warp
      {12, 65536},               // registers a block
      {16, 1},                   // multiprocessors
      {39, 2048},                // threads a multiprocessor
      {75, 9},                   // compute capability
      {76, 0},
      {81, 228 << 10},           // shared memory a multiprocessor
      {97, shared_limit},        // shared memory a block, if asked for
      {106, 32},                 // blocks a multiprocessor
      {111, 1024},               // shared memory the system takes of each block
  };
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return invalid_value;
  *value = found->second;
  return success;
}

API int cuDevicePrimaryCtxRetain(void **context, int) {
  std::lock_guard<std::recursive_mutex> hold(mutex);
  if (!device.initialized) return not_initialized;
  device.retained++;
  *context = &primary_context;
  return success;
}

API int cuDevicePrimaryCtxReset_v2(int) {
  std::lock_guard<std::recursive_mutex> hold(mutex);
  device.fault = {};
  release_all();
  for (LoadedModule *module : device.modules) delete module;
  device.modules.clear();
  for (Stream *stream : device.streams) delete stream;
  device.streams.clear();
  return success;
}

API int cuDevicePrimaryCtxRelease_v2(int number) {
  std::lock_guard<std::recursive_mutex> hold(mutex);
  if (device.retained == 0) return invalid_context;
  return --device.retained == 0 ? cuDevicePrimaryCtxReset_v2(number) : int(success);
}

API int cuCtxSetCurrent(void *context) {
  if (context && context != &primary_context) return invalid_context;
  has_context = context != nullptr;
  return success;
}

API int cuCtxSynchronize() {
  ENTER;
  return success;
}

// -- memory ---------------------------------------------------------------------------------------

API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER;
  *total = total_bytes();
  *free_bytes = *total - allocated_bytes();
  return success;
}

API int cuMemAlloc_v2(Address *start, size_t size) {
  ENTER;
  return allocate(size, *start);
}

API int cuMemFree_v2(Address start) {
  ENTER;
  return release(start) ? success : refuse(invalid_value, describe_address(start));
}

API int cuMemHostAlloc(void **start, size_t size, unsigned) {
  ENTER;
  *start = size ? aligned_alloc(4096, (size + 4095) & ~size_t(4095)) : nullptr;
  return *start ? success : size ? out_of_memory : invalid_value;
}

API int cuMemFreeHost(void *start) {
  std::lock_guard<std::recursive_mutex> hold(mutex);
  free(start);
  return success;
}

API int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t size, void *stream) {
  ENTER;
  if (Result result = in_memory(to, size)) return result;
  return do_or_record(stream, [=] {
    memcpy(reinterpret_cast<void *>(to), from, size);
    return success;
  });
}

API int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t size, void *stream) {
  ENTER;
  if (Result result = in_memory(from, size)) return result;
  return do_or_record(stream, [=] {
    memcpy(to, reinterpret_cast<void *>(from), size);
    return success;
  });
}

API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void *stream) {
  ENTER;
  if (Result result = in_memory(from, size)) return result;
  if (Result result = in_memory(to, size)) return result;
  return do_or_record(stream, [=] {
    memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size);
    return success;
  });
}

API int cuMemsetD8Async(Address start, unsigned char value, size_t size, void *stream) {
  ENTER;
  if (Result result = in_memory(start, size)) return result;
  return do_or_record(stream, [=] {
    memset(reinterpret_cast<void *>(start), value, size);
    return success;
  });
}

// -- modules and functions ------------------------------------------------------------------------

API int cuModuleLoadData(void **handle, const void *image) {
  ENTER;
  Result result;
  std::string why;
  auto module = load_module(image, result, why);
  if (!module) return refuse(result, why);
  auto *loaded = new LoadedModule{std::move(module), {}};
  device.modules.insert(loaded);
  *handle = loaded;
  return success;
}

API int cuModuleUnload(void *handle) {
  ENTER;
  auto *loaded = static_cast<LoadedModule *>(handle);
  if (!device.modules.erase(loaded)) return invalid_handle;
  delete loaded;
  return success;
}

API int cuModuleGetFunction(void **handle, void *module, const char *name) {
  ENTER;
  auto *loaded = static_cast<LoadedModule *>(module);
  if (!device.modules.count(loaded)) return invalid_handle;
  auto &function = loaded->functions[name];
  if (!function) function = find_function(*loaded->module, name);
  *handle = function.get();
  return function ? success : not_found;
}

API int cuModuleGetGlobal_v2(Address *start, size_t *size, void *module, const char *name) {
  ENTER;
  auto *loaded = static_cast<LoadedModule *>(module);
  if (!device.modules.count(loaded)) return invalid_handle;
  const auto found = loaded->module->globals.find(name);
  if (found == loaded->module->globals.end()) return not_found;
  if (start) *start = found->second.start;
  if (size) *size = found->second.size;
  return success;
}

API int cuFuncGetAttribute(int *value, int attribute, void *handle) {
  ENTER;
  const auto *function = static_cast<Function *>(handle);
  switch (attribute) {
    case 0: *value = most_threads; return success;
    case 1: *value = int(function->static_shared); return success;
    case 2: case 3: case 4: *value = 0; return success;  // constants, local memory, registers
    case 8: *value = int(function->dynamic_limit); return success;
    default: return invalid_value;
  }
}

API int cuFuncSetAttribute(void *handle, int attribute, int value) {
  ENTER;
  auto *function = static_cast<Function *>(handle);
  if (attribute != 8) return invalid_value;
  if (value < 0 || size_t(value) + function->static_shared > shared_limit)
    return refuse(invalid_value, std::to_string(value) + " bytes of dynamic shared memory beside " +
                                     std::to_string(function->static_shared) + " of static, " +
                                     std::to_string(shared_limit) + " allowed");
  function->dynamic_limit = unsigned(value);
  return success;
}

API int cuLaunchKernel(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       void *stream, void **parameters, void **) {
  ENTER;
  const auto *function = static_cast<Function *>(handle);
  Launch launch{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, nullptr};
  if (Result result = check_launch(launch)) return result;
  auto copied = std::make_shared<Parameters>(*function->kernel, parameters);
  launch.parameters = copied->pointers.data();
  return do_or_record(stream, [launch, copied] { return launch_now(launch); });
}

// -- streams, events, graphs ----------------------------------------------------------------------

API int cuStreamCreate(void **stream, unsigned) {
  ENTER;
  auto *created = new Stream;
  device.streams.insert(created);
  *stream = created;
  return success;
}

API int cuStreamDestroy_v2(void *stream) {
  ENTER;
  if (!device.streams.erase(static_cast<Stream *>(stream))) return invalid_handle;
  delete static_cast<Stream *>(stream);
  return success;
}

API int cuStreamSynchronize(void *stream) {
  ENTER;
  return stream && static_cast<Stream *>(stream)->capture ? capture_unsupported : success;
}

API int cuStreamWaitEvent(void *, void *, unsigned) {
  ENTER;
  return success;
}

API int cuEventCreate(void **event, unsigned) {
  ENTER;
  *event = new Event;
  return success;
}

API int cuEventDestroy_v2(void *event) {
  delete static_cast<Event *>(event);
  return success;
}

API int cuEventRecord(void *event, void *stream) {
  ENTER;
  return do_or_record(stream, [event] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static_cast<Event *>(event)->milliseconds = double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
    return success;
  });
}

API int cuEventSynchronize(void *) {
  ENTER;
  return success;
}

API int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  ENTER;
  const double from = static_cast<Event *>(start)->milliseconds;
  const double to = static_cast<Event *>(end)->milliseconds;
  if (from < 0 || to < 0) return invalid_handle;
  *milliseconds = float(to - from);
  return success;
}

API int cuStreamBeginCapture_v2(void *stream, int) {
  ENTER;
  if (!stream || static_cast<Stream *>(stream)->capture) return invalid_value;
  static_cast<Stream *>(stream)->capture = new Graph;
  return success;
}

API int cuStreamEndCapture(void *stream, void **graph) {
  ENTER;
  if (!stream || !static_cast<Stream *>(stream)->capture) return invalid_value;
  *graph = static_cast<Stream *>(stream)->capture;
  static_cast<Stream *>(stream)->capture = nullptr;
  return success;
}

API int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  ENTER;
  *executable = new Graph(*static_cast<Graph *>(graph));
  return success;
}

API int cuGraphLaunch(void *executable, void *stream) {
  ENTER;
  return do_or_record(stream, [executable] {
    for (const auto &step : static_cast<Graph *>(executable)->steps)
      if (Result result = step()) return result;
    return success;
  });
}

API int cuGraphDestroy(void *graph) {
  delete static_cast<Graph *>(graph);
  return success;
}

API int cuGraphExecDestroy(void *executable) {
  delete static_cast<Graph *>(executable);
  return success;
}
