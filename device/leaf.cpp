// SPDX-License-Identifier: LGPL-2.1-or-later
#include "leaf.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace nvmepolicy {
namespace {

using device_protocol::AnswerKind;
using device_protocol::AnswerLine;
using device_protocol::directory_fd;
using device_protocol::node_fd;

constexpr AnswerLine done{AnswerKind::ok, 0, 0};
constexpr std::size_t path_size = 96;

bool take(std::string_view& text, std::string_view word)
{
    if (!text.starts_with(word))
        return false;
    text.remove_prefix(word.size());
    return true;
}

bool take_number(std::string_view& text)
{
    constexpr std::size_t most_digits = 9; // as many as fit an int of the kernel's
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
        ++digits;
    text.remove_prefix(digits);
    return digits > 0 && digits <= most_digits;
}

/// PREFIX and a number.
bool take_part(std::string_view& text, std::string_view prefix)
{
    return take(text, prefix) && take_number(text);
}

bool is_path(std::string_view leaf)
{
    return leaf.substr(1).find('c') != std::string_view::npos;
}

/// The "n1" of nvme0n1: the same for its generic node, while the number before may be another. Source: nvme_add_ns_cdev() takes
/// that of the controller, nvme_alloc_ns() that of the subsystem.
std::string_view namespace_part(std::string_view name)
{
    return name.substr(name.rfind('n'));
}

bool is_generic_node(std::string_view name)
{
    return take_part(name, "ng") && take_part(name, "n") && name.empty();
}

/// What is below the controller's directory.
class Children {
public:
    Children()
    {
        const int fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        directory_ = fd < 0 ? nullptr : ::fdopendir(fd);
        if (fd >= 0 && !directory_)
            ::close(fd);
    }
    ~Children()
    {
        if (directory_)
            ::closedir(directory_);
    }
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;
    Children(Children&&) = delete;
    Children& operator=(Children&&) = delete;
    /// Nothing at the end, and where they cannot be read.
    [[nodiscard]] const char* next()
    {
        const dirent* entry = directory_ ? ::readdir(directory_) : nullptr;
        return entry ? entry->d_name : nullptr;
    }

private:
    DIR* directory_ = nullptr;
};

int namespaces_of_controller()
{
    int count = 0;
    Children children;
    while (const char* name = children.next())
        count += is_leaf_name(name) ? 1 : 0;
    return count;
}

/// The one generic node of this namespace.
bool find_generic_node(std::string_view leaf, char* found)
{
    bool any = false;
    Children children;
    while (const char* name = children.next()) {
        if (!is_generic_node(name) || namespace_part(name) != namespace_part(leaf) || std::strlen(name) >= leaf_name_size)
            continue;
        if (any)
            return false;
        any = true;
        std::memcpy(found, name, std::strlen(name) + 1);
    }
    return any;
}

/// The name may have passed to something else since. Opened first, compared then: a node of an earlier owner of the number is
/// dead and answers ENODEV.
bool is_the_device(int node, const char* in_sysfs)
{
    struct stat status {};
    char path[path_size], number[32], expected[32];
    std::snprintf(path, sizeof path, "%s/dev", in_sysfs);
    if (::fstat(node, &status) < 0 || !S_ISCHR(status.st_mode) || read_line(path, number, sizeof number) < 0)
        return false;
    std::snprintf(expected, sizeof expected, "%u:%u", major(status.st_rdev), minor(status.st_rdev));
    return std::strcmp(number, expected) == 0;
}

AnswerLine open_generic_node(const char* leaf, FlushRoute& route)
{
    char name[leaf_name_size];
    if (!find_generic_node(leaf, name))
        return error_answer(ENXIO);
    route.node = open_node(name);
    if (route.node < 0)
        return error_answer();
    if (is_the_device(route.node, name))
        return done;
    close_flush_route(route);
    return error_answer(ESTALE);
}

/// The starter has compared the number of that one.
AnswerLine borrow_controller_node(FlushRoute& route)
{
    if (namespaces_of_controller() != 1)
        return error_answer(EOPNOTSUPP); // S11
    route.node = ::fcntl(node_fd, F_DUPFD_CLOEXEC, 0);
    return route.node < 0 ? error_answer() : done;
}

} // namespace

bool is_leaf_name(std::string_view text)
{
    if (text.size() >= leaf_name_size || !take_part(text, "nvme"))
        return false;
    if (text.starts_with('c') && !take_part(text, "c"))
        return false;
    return take_part(text, "n") && text.empty();
}

int read_line(const char* path, char* to, std::size_t size)
{
    const int fd = ::openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t got = ::read(fd, to, size);
    const int error = got < 0 ? errno : EFBIG;
    ::close(fd);
    if (got < 0 || static_cast<std::size_t>(got) >= size) {
        errno = error;
        return -1;
    }
    to[got] = '\0';
    to[std::strcspn(to, "\n")] = '\0';
    return 0;
}

int open_cache_mode(const char* leaf)
{
    char path[path_size];
    std::snprintf(path, sizeof path, "%s/queue/write_cache", leaf);
    return ::openat(directory_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

AnswerLine write_cache_mode(int fd, CacheMode mode)
{
    const std::string_view text = mode == CacheMode::write_back ? "write back\n" : "write through\n";
    for (;;) {
        const ssize_t put = ::write(fd, text.data(), text.size());
        if (put < 0 && errno == EINTR)
            continue;
        return put < 0 ? error_answer() : done;
    }
}

AnswerLine open_flush_route(const char* leaf, FlushRoute& route)
{
    char path[path_size], text[16];
    std::snprintf(path, sizeof path, "%s/nsid", leaf);
    if (read_line(path, text, sizeof text) < 0)
        return error_answer();
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), route.nsid);
    // FFFFFFFFh would be all namespaces, 0 none.
    if (error != std::errc{} || *end != '\0' || route.nsid == 0 || route.nsid == UINT32_MAX)
        return error_answer(EINVAL);
    return is_path(leaf) ? borrow_controller_node(route) : open_generic_node(leaf, route);
}

void close_flush_route(FlushRoute& route)
{
    if (route.node >= 0)
        ::close(route.node);
    route.node = -1;
}

} // namespace nvmepolicy
