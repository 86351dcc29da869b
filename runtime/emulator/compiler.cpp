// NVRTC's calls, with the host's C++ compiler behind them.
//
// What a host compiler cannot read as it stands is rewritten first: dynamic shared memory, and in
// checked code a gap after every shared variable. Line numbers stay.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "emulator.h"

#define API extern "C" __attribute__((visibility("default")))

extern char **environ;

// The shim's files, so that the emulator is one file wherever it lies.
#define EMBEDDED_FILE(name, file)                                              \
  asm(".section .rodata\n.globl " #name "\n.hidden " #name "\n" #name          \
      ":\n.incbin \"" file "\"\n.byte 0\n.previous\n");                        \
  extern "C" const char name[] __attribute__((visibility("hidden")));
EMBEDDED_FILE(uopc_text_module, "module.h")
EMBEDDED_FILE(uopc_text_shim, "uopc_emulator.h")
EMBEDDED_FILE(uopc_text_math, "uopc_emulator_math.h")
EMBEDDED_FILE(uopc_text_atomics, "uopc_emulator_atomics.h")
EMBEDDED_FILE(uopc_text_half, "uopc_emulator_half.h")
EMBEDDED_FILE(uopc_text_wmma, "uopc_emulator_wmma.h")
EMBEDDED_FILE(uopc_text_hooks, "uopc_emulator_hooks.h")

namespace emulator {
namespace {

enum Status : int {
  fine = 0,
  no_memory = 1,
  invalid_input = 3,
  invalid_program = 4,
  invalid_option = 5,
  compilation = 6,
};

const struct {
  const char *name, *text;
} shim_files[] = {
    {"module.h", uopc_text_module},
    {"uopc_emulator.h", uopc_text_shim},
    {"uopc_emulator_math.h", uopc_text_math},
    {"uopc_emulator_atomics.h", uopc_text_atomics},
    {"uopc_emulator_half.h", uopc_text_half},
    {"uopc_emulator_wmma.h", uopc_text_wmma},
    {"uopc_emulator_hooks.h", uopc_text_hooks},
    // What a source for a GPU includes; the shim has it all.
    {"cuda_fp16.h", ""},
    {"cuda_bf16.h", ""},
    {"cuda_pipeline.h", ""},
    {"cuda_runtime.h", ""},
    {"mma.h", ""},
};

// -- rewriting ------------------------------------------------------------------------------------

bool in_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct Token {
  size_t start, end;
  bool word;
};

// Words and single characters, without comments and what stands in quotes.
std::vector<Token> tokens_of(const std::string &text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n') i++;
    } else if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string::npos ? text.size() : end + 2;
    } else if (text[i] == '"' || text[i] == '\'') {
      const char quote = text[i++];
      while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, text.size());
    } else if (in_identifier(text[i])) {
      while (i < text.size() && in_identifier(text[i])) i++;
      tokens.push_back({start, i, true});
    } else {
      if (!isspace(static_cast<unsigned char>(text[i]))) tokens.push_back({start, i + 1, false});
      i++;
    }
  }
  return tokens;
}

class Rewriter {
 public:
  Rewriter(const std::string &text, bool checked)
      : text_(text), tokens_(tokens_of(text)), checked_(checked) {}

  std::string rewritten() {
    for (size_t i = 0; i < tokens_.size(); i++) {
      if (is(i, "{")) depth_++;
      if (is(i, "}")) depth_--;
      if (is(i, "__global__")) take_kernel(i);
      if (is(i, "__shared__")) {
        if (i > 0 && is(i - 1, "extern")) {
          rewrite_dynamic(i);
        } else if (checked_) {
          pad(i);
        }
      }
    }
    result_.append(text_, copied_, std::string::npos);
    return result_;
  }

  const std::vector<std::string> &kernels() const { return kernels_; }

 private:
  bool is(size_t index, const char *word) const {
    return index < tokens_.size() &&
           text_.compare(tokens_[index].start, tokens_[index].end - tokens_[index].start, word) == 0;
  }
  std::string spelled(size_t index) const {
    return text_.substr(tokens_[index].start, tokens_[index].end - tokens_[index].start);
  }
  size_t after_parentheses(size_t open) const {
    int nested = 0;
    for (size_t i = open; i < tokens_.size(); i++) {
      if (is(i, "(")) nested++;
      if (is(i, ")") && --nested == 0) return i + 1;
    }
    return tokens_.size();
  }
  size_t find(size_t from, const char *word) const {
    while (from < tokens_.size() && !is(from, word)) from++;
    return from;
  }

  // The name is the word before the parameters; a declaration or a template makes no entry.
  void take_kernel(size_t index) {
    for (size_t back = index; back-- > 0;) {
      if (is(back, ";") || is(back, "}") || is(back, "{")) break;
      if (is(back, "template")) return;
    }
    size_t i = index + 1;
    while (i < tokens_.size() && !is(i, "(")) {
      i = is(i, "__launch_bounds__") || is(i, "__attribute__") ? after_parentheses(i + 1) : i + 1;
    }
    if (i >= tokens_.size() || !tokens_[i - 1].word || !is(after_parentheses(i), "{")) return;
    kernels_.push_back(spelled(i - 1));
  }

  // extern __shared__ T name[];  →  T *name = uopc_dynamic_shared<T>();
  void rewrite_dynamic(size_t index) {
    const size_t end = find(index, ";"), bracket = find(index, "[");
    size_t type = index + 1;
    while (is(type, "__align__") || is(type, "alignas")) type = after_parentheses(type + 1);
    if (depth_ == 0 || end >= tokens_.size() || bracket >= end || type + 1 >= bracket) return;
    const size_t name = bracket - 1;
    const std::string spelled_type =
        text_.substr(tokens_[type].start, tokens_[name].start - tokens_[type].start);
    replace(tokens_[index - 1].start, tokens_[end].end,
            spelled_type + "*const " + spelled(name) + " = uopc_dynamic_shared<" + spelled_type +
                ">();");
  }

  // A gap after each declaration: an overflow of one array then does not fall into the next.
  void pad(size_t index) {
    const size_t end = find(index, ";");
    if (end >= tokens_.size()) return;
    const size_t position = tokens_[end].end;
    replace(position, position,
            " __shared__ char uopc_padding_" + std::to_string(padding_++) + "[256];");
  }

  void replace(size_t start, size_t end, std::string with) {
    // Newlines that were there stay, for the line numbers.
    for (size_t i = start; i < end; i++)
      if (text_[i] == '\n' && with.find('\n') == std::string::npos) with += '\n';
    result_.append(text_, copied_, start - copied_);
    result_ += with;
    copied_ = end;
  }

  const std::string &text_;
  std::vector<Token> tokens_;
  bool checked_;
  int depth_ = 0, padding_ = 0;
  size_t copied_ = 0;
  std::string result_;
  std::vector<std::string> kernels_;
};

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 32 ? '?' : c;
  }
  return result + "\"";
}

std::string translated(const std::string &source, const std::string &name, bool checked) {
  Rewriter rewriter(source, checked);
  std::string text = "#line 1 " + quoted(name) + "\n" + rewriter.rewritten();
  text += "\n#line 1 \"uopc_emulator_kernels\"\nstatic const uopc_kernel uopc_kernels[] = {\n";
  for (const std::string &kernel : rewriter.kernels()) text += "UOPC_KERNEL(" + kernel + ")\n";
  return text +
         "{nullptr, nullptr, nullptr, 0}};\n"
         "extern \"C\" { extern const uopc_module_table uopc_module; const uopc_module_table "
         "uopc_module = {UOPC_MODULE_VERSION, UOPC_IS_CHECKED, &uopc_shared_host, &uopc_current, "
         "uopc_kernels}; }\n";
}

// -- files and processes --------------------------------------------------------------------------

// A folder that goes when its holder does.
class Folder {
 public:
  Folder() {
    const char *base = getenv("TMPDIR");
    path_ = std::string(base && *base ? base : "/tmp") + "/uopc-emulator-XXXXXX";
    if (!mkdtemp(path_.data())) path_.clear();
  }
  ~Folder() {
    for (const std::string &file : files_) unlink(file.c_str());
    if (!path_.empty()) rmdir(path_.c_str());
  }
  bool exists() const { return !path_.empty(); }
  const std::string &path() const { return path_; }
  std::string file(const std::string &name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

bool write_file(const std::string &path, const std::string &text) {
  FILE *file = fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool whole = fwrite(text.data(), 1, text.size(), file) == text.size();
  return fclose(file) == 0 && whole;
}

std::string read_file(const std::string &path) {
  std::string text;
  if (FILE *file = fopen(path.c_str(), "rb")) {
    char part[65536];
    size_t count;
    while ((count = fread(part, 1, sizeof part, file)) > 0) text.append(part, count);
    fclose(file);
  }
  return text;
}

}  // namespace

int run_program(const std::vector<std::string> &words, std::string &output, int kept_descriptor) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  std::vector<char *> arguments;
  for (const std::string &word : words) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  // Onto itself: it is then open in the program, whatever its flag says.
  if (kept_descriptor >= 0)
    posix_spawn_file_actions_adddup2(&actions, kept_descriptor, kept_descriptor);
  pid_t child;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char part[4096];
  ssize_t count;
  while (!failed && (count = read(ends[0], part, sizeof part)) > 0) output.append(part, count);
  close(ends[0]);
  int status = 0;
  if (failed || waitpid(child, &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// -- programs -------------------------------------------------------------------------------------

struct Program {
  std::string source, name, log, image;
};

namespace {

struct Options {
  std::vector<std::string> flags;
  bool checked = false;
  std::string unknown;
};

bool starts_with(const std::string &text, const char *start) {
  return text.compare(0, strlen(start), start) == 0;
}

Options read_options(int count, const char *const *given) {
  Options options;
  for (int i = 0; i < count; i++) {
    const std::string option = given[i];
    const std::string value = option.substr(std::min(option.find('=') + 1, option.size()));
    if (starts_with(option, "--gpu-architecture=sm_") || starts_with(option, "-arch=sm_")) {
      const std::string digits = value.substr(3, value.find_first_not_of("0123456789", 3) - 3);
      options.flags.push_back("-D__CUDA_ARCH__=" + digits + "0");
    } else if (option == "--device-debug" || option == "-G") {
      options.checked = true;
    } else if (starts_with(option, "--define-macro=")) {
      options.flags.push_back("-D" + value);
    } else if (starts_with(option, "-D")) {
      options.flags.push_back(option);
    } else if (!starts_with(option, "--fmad=false") && !starts_with(option, "--std=c++17") &&
               !starts_with(option, "--include-path=") && option != "-lineinfo" &&
               option != "--generate-line-info" && !starts_with(option, "--diag-suppress=")) {
      options.unknown = option;
    }
  }
  return options;
}

// As the assembler for a GPU says it.
std::string too_much_shared(const std::string &image, bool checked) {
  if (checked) return "";
  std::string log;
  for (const auto &[kernel, size] : shared_sizes(image)) {
    if (size <= static_shared_limit) continue;
    char text[100];
    snprintf(text, sizeof text, "' uses too much shared data (%#zx bytes, %#x max)\n", size,
             static_shared_limit);
    log += "ptxas error   : Entry function '" + kernel + text;
  }
  return log;
}

Status compile(Program &program, const Options &options) {
  Folder folder;
  if (!folder.exists()) {
    program.log = "no temporary folder can be made; set TMPDIR\n";
    return compilation;
  }
  bool written = true;
  for (const auto &shim : shim_files)
    written = written && write_file(folder.file(shim.name), shim.text);
  const std::string source = folder.file("kernels.cpp"), image = folder.file("kernels.so");
  written = written &&
            write_file(source, translated(program.source, program.name, options.checked));
  if (!written) {
    program.log = "the temporary folder cannot be written\n";
    return compilation;
  }
  // -w: the compiler for a GPU is the one to warn. -Bsymbolic: a kernel's name may be one of libc's.
  std::vector<std::string> words = {
      UOPC_HOST_COMPILER, "-std=c++17", "-w", "-g1", "-O2", UOPC_NATIVE, "-fPIC", "-shared",
      "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fno-stack-protector",
      // A frame that is larger than a guard page must not step over it.
      "-fstack-clash-protection",
      "-U_FORTIFY_SOURCE", "-nostdinc++", "-Wl,-Bsymbolic", "-fno-exceptions",
      "-fno-asynchronous-unwind-tables"};
  if (options.checked)
    words.insert(words.end(), {"-fsanitize=thread", "-fno-toplevel-reorder", "-DUOPC_CHECKED"});
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  words.insert(words.end(), {"-I", folder.path(), "-include", "uopc_emulator.h"});
  if (options.checked) {
    // Linking with the flag would ask for the sanitizer's own library.
    const std::string object = folder.file("kernels.o");
    std::vector<std::string> first = words;
    first.insert(first.end(), {"-c", source, "-o", object});
    if (run_program(first, program.log) != 0) return compilation;
    words = {UOPC_HOST_COMPILER, "-shared", "-Wl,-Bsymbolic", object};
  } else {
    words.push_back(source);
  }
  words.insert(words.end(), {"-o", image, "-lm"});
  const int status = run_program(words, program.log);
  if (status < 0) program.log += "the host compiler " UOPC_HOST_COMPILER " cannot be run\n";
  if (status != 0) return compilation;
  program.image = read_file(image);
  program.log += too_much_shared(program.image, options.checked);
  if (program.log.find("ptxas error") == std::string::npos) return fine;
  program.image.clear();
  return compilation;
}

}  // namespace
}  // namespace emulator

using emulator::Program;

API int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return emulator::fine;
}

API const char *nvrtcGetErrorString(int status) {
  switch (status) {
    case emulator::fine: return "NVRTC_SUCCESS";
    case emulator::no_memory: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case emulator::invalid_input: return "NVRTC_ERROR_INVALID_INPUT";
    case emulator::invalid_program: return "NVRTC_ERROR_INVALID_PROGRAM";
    case emulator::invalid_option: return "NVRTC_ERROR_INVALID_OPTION";
    case emulator::compilation: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR unknown";
  }
}

API int nvrtcCreateProgram(Program **program, const char *source, const char *name, int headers,
                           const char *const *, const char *const *) {
  if (!program || !source || headers) return emulator::invalid_input;
  *program = new Program{source, name && *name ? name : "default_program", "", ""};
  return emulator::fine;
}

API int nvrtcDestroyProgram(Program **program) {
  if (!program || !*program) return emulator::invalid_program;
  delete *program;
  *program = nullptr;
  return emulator::fine;
}

API int nvrtcCompileProgram(Program *program, int count, const char *const *given) {
  if (!program) return emulator::invalid_program;
  const emulator::Options options = emulator::read_options(count, given);
  if (!options.unknown.empty()) {
    program->log = "nvrtc: error: unrecognized option " + options.unknown + " found\n";
    return emulator::invalid_option;
  }
  program->log.clear();
  return emulator::compile(*program, options);
}

API int nvrtcGetCUBINSize(Program *program, size_t *size) {
  if (!program) return emulator::invalid_program;
  *size = program->image.size();
  return emulator::fine;
}

API int nvrtcGetCUBIN(Program *program, char *image) {
  if (!program) return emulator::invalid_program;
  memcpy(image, program->image.data(), program->image.size());
  return emulator::fine;
}

API int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  if (!program) return emulator::invalid_program;
  *size = program->log.size() + 1;
  return emulator::fine;
}

API int nvrtcGetProgramLog(Program *program, char *log) {
  if (!program) return emulator::invalid_program;
  memcpy(log, program->log.c_str(), program->log.size() + 1);
  return emulator::fine;
}
