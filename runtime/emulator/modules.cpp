// Modules: shared objects that are given as bytes, and the variables and kernels in them.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

constexpr unsigned machine_of_gpus = 190;
const char shared_section[] = "uopc_shared";
const char padding_name[] = "uopc_padding_";

#if defined(__x86_64__)
constexpr unsigned machine_of_host = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned machine_of_host = EM_AARCH64;
#else
constexpr unsigned machine_of_host = EM_NONE;
#endif

// A view of an ELF image that stays inside its bytes.
class Image {
 public:
  Image(const char *bytes, size_t size) : bytes_(bytes), size_(size) {}

  const Elf64_Ehdr *header() const { return at<Elf64_Ehdr>(0); }
  const Elf64_Shdr *section(unsigned index) const {
    return index < header()->e_shnum ? at<Elf64_Shdr>(header()->e_shoff + index * sizeof(Elf64_Shdr))
                                     : nullptr;
  }
  std::string text(unsigned table, uint64_t offset) const {
    const Elf64_Shdr *strings = section(table);
    if (!strings || strings->sh_offset > size_) return "";
    const uint64_t start = strings->sh_offset + offset;
    if (start >= size_) return "";
    return std::string(bytes_ + start, strnlen(bytes_ + start, size_ - start));
  }
  template <class T> const T *at(uint64_t offset) const {
    return offset <= size_ && sizeof(T) <= size_ - offset
               ? reinterpret_cast<const T *>(bytes_ + offset)
               : nullptr;
  }

 private:
  const char *bytes_;
  size_t size_;
};

// What precedes the section table's end is the whole file, as linkers write it.
size_t image_size(const Elf64_Ehdr *header) {
  return header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
}

// `_ZZ6matmulE4tile` is `tile` in `matmul`; `_ZL4tile` is `tile` of the file.
std::string take_name(const char *&text) {
  size_t length = 0;
  while (*text >= '0' && *text <= '9' && length < 10000) length = length * 10 + size_t(*text++ - '0');
  length = std::min(length, strlen(text));
  std::string name(text, length);
  text += length;
  return name;
}

Variable named(const std::string &symbol) {
  Variable variable{symbol, "", 0, 0};
  const char *text = symbol.c_str();
  if (strncmp(text, "_ZL", 3) == 0) {
    text += 3;
    variable.name = take_name(text);
  } else if (strncmp(text, "_ZZ", 3) == 0) {
    text += 3;
    std::string function = take_name(text);
    if (function.empty()) {  // a function that is not extern "C": its name has a longer form
      const size_t end = symbol.rfind('E');
      text = symbol.c_str() + (end == std::string::npos ? 0 : end + 1);
      variable.name = take_name(text);
    } else if (*text == 'E') {
      text++;
      variable.kernel = function;
      variable.name = take_name(text);
    }
  }
  return variable;
}

struct Symbols {
  std::vector<Variable> shared;
  std::map<std::string, Variable> others;
  Address table = 0;  // of uopc_module
  Address end = 0;
};

Symbols read_symbols(const Image &image) {
  Symbols found;
  const Elf64_Ehdr *header = image.header();
  for (unsigned index = 0; index < header->e_shnum; index++) {
    const Elf64_Shdr *section = image.section(index);
    if (!section) break;
    if (section->sh_flags & SHF_ALLOC)
      found.end = std::max<Address>(found.end, section->sh_addr + section->sh_size);
    if (section->sh_type != SHT_SYMTAB) continue;
    for (uint64_t i = 0; i < section->sh_size / sizeof(Elf64_Sym); i++) {
      const Elf64_Sym *symbol = image.at<Elf64_Sym>(section->sh_offset + i * sizeof(Elf64_Sym));
      if (!symbol) break;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0) continue;
      const std::string name = image.text(section->sh_link, symbol->st_name);
      const Elf64_Shdr *owner = image.section(symbol->st_shndx);
      if (name == "uopc_module") found.table = symbol->st_value;
      Variable variable = named(name);
      variable.start = symbol->st_value;
      variable.size = symbol->st_size;
      if (owner && image.text(header->e_shstrndx, owner->sh_name) == shared_section) {
        if (variable.name.compare(0, sizeof padding_name - 1, padding_name) != 0)
          found.shared.push_back(variable);
      } else {
        found.others[name] = variable;
      }
    }
  }
  std::sort(found.shared.begin(), found.shared.end(),
            [](const Variable &one, const Variable &other) { return one.start < other.start; });
  return found;
}

bool belongs(const Variable &variable, const std::string &kernel) {
  return variable.kernel.empty() || variable.kernel == kernel;
}

}  // namespace

Module::~Module() {
  if (handle) dlclose(handle);
  if (descriptor >= 0) close(descriptor);
}

std::unique_ptr<Module> load_module(const void *bytes, Result &result, std::string &why) {
  const Elf64_Ehdr *header = static_cast<const Elf64_Ehdr *>(bytes);
  result = invalid_image;
  if (!bytes || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    why = "the image is no ELF file";
    return nullptr;
  }
  if (header->e_machine != machine_of_host) {
    result = header->e_machine == machine_of_gpus ? no_binary_for_gpu : invalid_image;
    why = "the image is for another machine";
    return nullptr;
  }
  const size_t size = image_size(header);
  Symbols symbols = read_symbols(Image(static_cast<const char *>(bytes), size));
  auto module = std::make_unique<Module>();
  module->descriptor = memfd_create("uopc_module", 0);
  if (module->descriptor < 0 || write(module->descriptor, bytes, size) != ssize_t(size)) {
    result = out_of_memory;
    return nullptr;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module->descriptor);
  module->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->handle) {
    why = dlerror();
    return nullptr;
  }
  void *table = dlsym(module->handle, "uopc_module");
  module->table = static_cast<const uopc_module_table *>(table);
  if (!table || module->table->version != UOPC_MODULE_VERSION) {
    why = "the image was not made by this emulator's compiler";
    return nullptr;
  }
  module->bias = reinterpret_cast<Address>(table) - symbols.table;
  module->end = module->bias + symbols.end;
  for (Variable &variable : symbols.shared) variable.start += module->bias;
  for (auto &[name, variable] : symbols.others) variable.start += module->bias;
  module->shared = std::move(symbols.shared);
  module->globals = std::move(symbols.others);
  result = success;
  return module;
}

std::unique_ptr<Function> find_function(Module &module, const std::string &name) {
  // A kernel that is not extern "C" has another symbol, here as on a GPU.
  if (!dlsym(module.handle, name.c_str())) return nullptr;
  for (const uopc_kernel *kernel = module.table->kernels; kernel->name; kernel++) {
    if (name != kernel->name) continue;
    auto function = std::make_unique<Function>();
    function->module = &module;
    function->kernel = kernel;
    for (const Variable &variable : module.shared) {
      if (!belongs(variable, name)) continue;
      function->shared.push_back(variable);
      function->static_shared += (variable.size + 15) & ~size_t(15);
    }
    return function;
  }
  return nullptr;
}

std::map<std::string, size_t> shared_sizes(const std::string &bytes) {
  const Symbols symbols = read_symbols(Image(bytes.data(), bytes.size()));
  std::map<std::string, size_t> sizes;
  for (const Variable &variable : symbols.shared)
    if (!variable.kernel.empty()) sizes[variable.kernel] += variable.size;
  return sizes;
}

std::string source_line(const Module &module, const void *pc) {
  const Address offset = reinterpret_cast<Address>(pc) - module.bias;
  if (!pc || offset >= module.end - module.bias) return "";
  char position[32];
  // A return address may already belong to the next line.
  snprintf(position, sizeof position, "%#llx", static_cast<unsigned long long>(offset - 1));
  std::string output;
  const std::string file = "/proc/self/fd/" + std::to_string(module.descriptor);
  if (run_program({"addr2line", "-i", "-e", file, position}, output, module.descriptor) != 0)
    return "";
  // The innermost function first; those of the shim were inlined into the kernel's line.
  size_t start = 0;
  while (start < output.size()) {
    size_t end = output.find('\n', start);
    if (end == std::string::npos) end = output.size();
    std::string line = output.substr(start, end - start);
    line = line.substr(0, line.find(" ("));
    const size_t slash = line.rfind('/');
    if (slash != std::string::npos) line = line.substr(slash + 1);
    if (!line.empty() && line[0] != '?' && line.compare(0, 14, "uopc_emulator_") != 0 &&
        line.compare(0, 15, "uopc_emulator.h") != 0)
      return line;
    start = end + 1;
  }
  return "";
}

}  // namespace emulator
