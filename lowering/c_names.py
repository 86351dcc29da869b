"""Names and comments for C text, from whatever the IR holds.

An identifier that leaves this module is valid in C11, C17, C23 and C++17, is none of their
keywords or reserved names, and hides no function of the C library. Text that leaves
`comment_text` cannot end or open a comment.
"""

from __future__ import annotations

import keyword
import re

_KEYWORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool
break case catch char char8_t char16_t char32_t class co_await co_return co_yield compl concept
const const_cast consteval constexpr constinit continue decltype default delete do double
dynamic_cast else enum explicit export extern false float for friend goto if import inline int long
module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private
protected public reflexpr register reinterpret_cast requires restrict return short signed sizeof
static static_assert static_cast struct switch synchronized template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t
while xor xor_eq final fortran near far huge pascal cdecl
"""

# Functions, objects and macros of the C and POSIX libraries, and what compilers predefine.
_LIBRARY = """
abort abs access acos acosh alarm alloca aligned_alloc asctime asin asinh assert at_quick_exit atan
atan2 atanh atexit atof atoi atol atoll basename bcmp bcopy bind bsearch btowc bzero cabs cacos
cacosh calloc carg casin casinh catan catanh cbrt ccos ccosh ceil cexp chdir chmod chown cimag
clearenv clock clog close closedir complex conj connect copysign cos cosh cpow cproj creal creat
csin csinh csqrt ctan ctanh ctime dcgettext dgettext difftime dirname div drem dup dup2 environ erf
erfc errno execl execle execlp execv execve execvp exit exp exp10 exp2 expm1 fabs fclose fdim
feclearexcept fegetenv fegetround feof ferror fesetround fflush ffs ffsl ffsll fgetc fgetpos fgets
fileno floor fma fmax fmin fmod fopen fork fprintf fputc fputs fread free freopen frexp fscanf
fseek fsetpos fstat ftell fwrite gamma getc getchar getcwd getenv getopt getpid gets gettext
getuid gmtime htonl htons hypot ilogb imaxabs imaxdiv index initstate ioctl isalnum isalpha isascii
isatty isblank iscntrl isdigit isfinite isgraph isgreater isinf isless islower isnan isnormal
isprint ispunct isspace isunordered isupper iswalnum iswalpha isxdigit j0 j1 jn kill labs ldexp ldiv
lgamma link listen llabs lldiv llrint llround localeconv localtime log log10 log1p log2 logb
longjmp lrint lround lseek main malloc mblen mbrlen mbtowc memccpy memchr memcmp memcpy memmem
memmove mempcpy memset mkdir mktime mmap modf mprotect munmap nan nanosleep nearbyint nextafter
nexttoward nice ntohl ntohs offsetof open opendir optarg optind pause perror pipe poll pow pow10
printf putc putchar putenv puts qsort quick_exit raise rand rand_r random read readdir readlink
realloc realpath recv regcomp register remainder remove remquo rename rewind rindex rint rmdir round
roundeven scalb scalbln scalbn scanf select send setbuf setenv setjmp setlocale setstate setvbuf
shutdown sigaction sigaddset signal signbit significand sin sincos sinh sleep snprintf socket
sprintf sqrt srand srandom sscanf stat stderr stdin stdout stpcpy strcasecmp strcat strchr strcmp
strcoll strcpy strcspn strdup strerror strftime strlen strncasecmp strncat strncmp strncpy strndup
strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold strtoll strtoul
strtoull strxfrm symlink sync sysconf syscall system tan tanh tgamma time timegm times timezone
tmpfile tmpnam tolower toupper towctrans trunc truncate ttyname tzname umask uname ungetc unlink
unsetenv usleep utime va_arg va_copy va_end va_list va_start valloc vfork vfprintf vfscanf vprintf
vscanf vsnprintf vsprintf vsscanf wait waitpid wcscpy wcslen wctomb write y0 y1 yn signgam daylight
linux unix i386 vax sun mips sparc arm arm64 BSD NULL EOF BUFSIZ RAND_MAX CHAR_BIT NAN HUGE_VAL
INFINITY MATH_ERRNO MATH_ERREXCEPT math_errhandling EXIT_FAILURE EXIT_SUCCESS DOMAIN SING OVERFLOW
UNDERFLOW PLOSS TLOSS X_TLOSS MAXFLOAT I size_t ptrdiff_t wchar_t wint_t float_t double_t
max_align_t uint ushort ulong u_char u_short u_int u_long quad_t key_t caddr_t daddr_t fsid_t
div_t ldiv_t lldiv_t FILE fpos_t time_t clock_t ssize_t off_t pid_t uid_t gid_t mode_t dev_t ino_t
threadIdx blockIdx blockDim gridDim warpSize std
"""

# A C name also shadows these families: float and long double versions, intN_t and INTN_MAX, M_PI,
# FP_NAN, E2BIG, SIGINT; and the helpers and vector types that the emitter itself defines.
_FAMILIES = re.compile(
    r"u?int(_least|_fast)?\d+_t|u?int(ptr|max)_t"
    r"|U?INT\d*(_LEAST|_FAST|PTR|MAX)?\d*(_MIN|_MAX|_C|_WIDTH)?"
    r"|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC|S?CHAR|UCHAR|U?SHRT|U?L?LONG)_(MIN|MAX|WIDTH)"
    r"|(M|FP|FLT|DBL|LDBL|FE|LC|SIG|TIME|SEEK|L|CLOCKS|DECIMAL)_[A-Z0-9_]+|E[A-Z0-9]+|SIG[A-Z]+"
    r"|UOPC_\w*|uopc_\w*|(INF|NAN)_F(32|64)"
    r"|(b?f|i|u)\d+x\d+|[a-z0-9_]+_(b?f|i|u)\d+x\d+(_[a-z0-9_]+)?"
    r"|(abs|alloc|bits|ceildiv|ceildivu|clz|ctz|div|divu|extend|floordiv|fma|from_bits|max|maxnum"
    r"|maxu|min|minnum|minu|mulhi|mulhiu|popcount|pow|powi|rem|remu|round|rsqrt|shl|shr|shru|step"
    r"|to)_(b?f|i|u)\d+|(b?f|i|u)\d+_(to|from)_\w+"
)

_LIBRARY_WORDS = frozenset(_LIBRARY.split())
_PARTS = frozenset(["part_body", "part_runner", "run_in_order", "run_parts"])  # c_threads.py
_RESERVED = frozenset(_KEYWORDS.split()) | _LIBRARY_WORDS | _PARTS
_SHORT_LOCALS = frozenset(["j0", "j1", "jn", "y0", "y1", "yn"])
"""Bessel functions: no name for a symbol, but the best name for a split loop's counter. No C
compiler minds a local variable of that name."""

_LONGEST = 60
"""Characters of a name that are kept: C promises 31 to 63 significant ones."""


def is_reserved(name: str) -> bool:
    """Whether an identifier has a meaning of its own in C, C++ or their libraries."""
    if name in _RESERVED or "__" in name or name[:1] == "_" or _FAMILIES.fullmatch(name):
        return True
    return name[-1:] in "fl" and name[:-1] in _LIBRARY_WORDS  # expf, sqrtl


def sanitize(name: str, fallback: str = "v") -> str:
    """An identifier that resembles `name`: letters, digits and single underscores.

    >>> sanitize("layer1.weight"), sanitize("a b"), sanitize("0x"), sanitize("for")
    ('layer1_weight', 'a_b', 'v0x', 'for_')
    """
    text = re.sub(r"[^A-Za-z0-9]+", "_", name[: 4 * _LONGEST]).strip("_")[:_LONGEST].rstrip("_")
    if not text:
        return fallback
    if text[0].isdigit():
        text = fallback + text
    return f"{text}_" if is_reserved(text) else text


def sanitize_local(name: str, fallback: str = "v") -> str:
    """As `sanitize`, for a variable inside a function: the names j0, j1, y0 and y1 stay."""
    return name if name in _SHORT_LOCALS else sanitize(name, fallback)


def is_plain_identifier(name: str) -> bool:
    """Whether `name` can be used in C unchanged."""
    return (
        name.isascii()
        and name.isidentifier()
        and len(name) <= _LONGEST
        and not is_reserved(name)
        and not keyword.iskeyword(name)
    )


def comment_text(text: str) -> str:
    """Text that is safe inside `/* … */`: one line, printable, no comment mark or trigraph."""
    text = "".join(c if c.isprintable() else " " for c in text)
    text = re.sub(r"\*(?=/)", "* ", text)
    text = re.sub(r"/(?=\*)", "/ ", text)
    text = re.sub(r"\?(?=\?)", "? ", text)
    text = text.rstrip("\\ *")
    return f" {text}" if text[:1] == "/" else text


def comment(text: str, indent: str = "", width: int = 96) -> list[str]:
    """A block comment as lines, broken between words."""
    words = comment_text(text[:4000]).split()
    lines: list[str] = []
    current = ""
    for word in words:
        if current and len(indent) + len(current) + len(word) + 7 > width:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    lines.append(current)
    # A line break may have put a star before a slash of the next line's end mark.
    lines = [line.rstrip("\\ ") for line in lines]
    if len(lines) == 1:
        return [f"{indent}/* {lines[0]} */"]
    return [
        f"{indent}/* {lines[0]}",
        *(f"{indent} * {line}" for line in lines[1:-1]),
        f"{indent} * {lines[-1]} */",
    ]


class Names:
    """Unique identifiers in nested scopes; a name is free again when its scope closes.

    `x`, then `x_1`, `x_2`: the number grows through a function, so naming stays linear.
    """

    def __init__(self, outer: frozenset[str] | set[str] = frozenset()) -> None:
        self._taken = set(outer)
        self._scopes: list[list[str]] = [[]]
        self._next: dict[str, int] = {}

    def open(self) -> None:
        """Enter a block."""
        self._scopes.append([])

    def close(self) -> None:
        """Leave a block."""
        self._taken.difference_update(self._scopes.pop())

    def visible(self) -> set[str]:
        """The names in use."""
        return set(self._taken)

    def take(self, base: str) -> str:
        """A name for `base` (an identifier already) that nothing visible has."""
        name = base
        if name in self._taken:
            count = self._next.get(base, 0)
            joint = "" if base in _COUNTED else "_"
            while name in self._taken:
                count += 1
                name = f"{base.rstrip('_')}{joint}{count}"
            self._next[base] = count
        self._taken.add(name)
        self._scopes[-1].append(name)
        return name


_COUNTED = frozenset({"v", "i", "j", "k"})
"""Names that nobody chose: v, v1, v2."""
