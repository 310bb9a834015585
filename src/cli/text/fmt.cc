// fmt, compiled once. Debian has libfmt only as a shared library, and the binary should need no
// library but libc. As a header-only library, fmt would be compiled in every file that formats,
// at 2.3 s each.

// Without this, fmt would need the C++ library's locales, for formats that are not used here. Their
// tables would be relocated at each start.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// The functions that fmt's headers declare for char but do not define.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
// fmt 9 and 10 name the type of the arguments differently.
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>,
                                 locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
