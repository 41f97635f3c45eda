// SPDX-License-Identifier: LGPL-2.1-or-later
#include "requests.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "drive.h"
#include "leaf.h"

namespace nvmepolicy {
namespace {

using namespace device_protocol;

constexpr const char* tolerance_file = "power/pm_qos_latency_tolerance_us";

AnswerLine read_attribute(const char* path, std::uint8_t* page)
{
    const int fd = ::openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_answer();
    const ssize_t got = ::read(fd, page, largest_buffer);
    const AnswerLine line = got < 0 ? error_answer() : AnswerLine{AnswerKind::ok, 0, static_cast<std::uint32_t>(got)};
    ::close(fd);
    return line;
}

AnswerLine write_tolerance(std::string_view text)
{
    const int fd = ::openat(directory_fd, tolerance_file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_answer();
    const ssize_t put = ::write(fd, text.data(), text.size());
    const AnswerLine line = put < 0 ? error_answer() : AnswerLine{AnswerKind::ok, 0, 0};
    ::close(fd);
    return line;
}

/// The other mode is a guard's alone (S2).
AnswerLine write_back(const char* leaf)
{
    const int fd = open_cache_mode(leaf);
    if (fd < 0)
        return error_answer();
    const AnswerLine line = write_cache_mode(fd, CacheMode::write_back);
    ::close(fd);
    return line;
}

AnswerLine flush_leaf(const char* leaf)
{
    FlushRoute route;
    AnswerLine line = open_flush_route(leaf, route);
    if (line.kind == AnswerKind::ok)
        line = flush(route.node, route.nsid);
    close_flush_route(route);
    return line;
}

AnswerLine serve_identify(Words& words, std::uint8_t* page)
{
    const auto cns = words.number(UINT8_MAX);
    const auto nsid = words.number(UINT32_MAX);
    constexpr std::uint8_t controller = 0x01, attached_controllers = 0x12;
    if (!cns || !nsid || !words.at_end() || (*cns != controller && *cns != attached_controllers))
        return error_answer(EINVAL);
    return identify(static_cast<std::uint8_t>(*cns), static_cast<std::uint32_t>(*nsid), page);
}

AnswerLine serve_get_log(Words& words, std::uint8_t* page)
{
    const auto id = words.number(UINT8_MAX);
    const auto length = words.number(largest_buffer);
    if (!id || !length || !words.at_end() || *length == 0 || *length % sizeof(std::uint32_t) != 0)
        return error_answer(EINVAL);
    return get_log(static_cast<std::uint8_t>(*id), static_cast<std::uint32_t>(*length), page);
}

AnswerLine serve_get_feature(Words& words, std::uint8_t* page)
{
    const auto feature = words.number(UINT8_MAX);
    const auto select = words.number(7);
    const auto length = words.number(largest_buffer);
    if (!feature || !select || !length || !words.at_end())
        return error_answer(EINVAL);
    return get_feature(static_cast<std::uint8_t>(*feature), static_cast<std::uint8_t>(*select),
                       static_cast<std::uint32_t>(*length), page);
}

AnswerLine serve_set_write_cache(Words& words)
{
    const auto enabled = words.number(1);
    const auto save = words.number(1);
    if (!enabled || !save || !words.at_end())
        return error_answer(EINVAL);
    return set_write_cache(*enabled == 1, *save == 1);
}

AnswerLine serve_leaf(Words& words, AnswerLine (*what)(const char* leaf))
{
    char leaf[leaf_name_size];
    return words.leaf(leaf) && words.at_end() ? what(leaf) : error_answer(EINVAL);
}

bool write_all(const void* data, std::size_t length)
{
    const auto* at = static_cast<const std::uint8_t*>(data);
    while (length > 0) {
        const ssize_t put = ::write(STDOUT_FILENO, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        length -= static_cast<std::size_t>(put);
    }
    return true;
}

} // namespace

std::string_view Words::word()
{
    const std::size_t blank = rest_.find(' ');
    const std::string_view found = rest_.substr(0, blank);
    blank_behind_ = blank != std::string_view::npos;
    rest_.remove_prefix(blank_behind_ ? blank + 1 : rest_.size());
    return found;
}

std::optional<std::uint64_t> Words::number(std::uint64_t largest)
{
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > largest)
        return std::nullopt;
    return value;
}

bool Words::leaf(char (&name)[32])
{
    const std::string_view text = word();
    if (!is_leaf_name(text))
        return false;
    *std::copy(text.begin(), text.end(), name) = '\0';
    return true;
}

AnswerLine serve(const char* request, std::uint8_t* page)
{
    // A command that moves less than it promises must not hand out what an earlier one left here.
    std::memset(page, 0, largest_buffer);
    Words words(request);
    const std::string_view what = words.word();
    if (what == "identify")
        return serve_identify(words, page);
    if (what == "get-log")
        return serve_get_log(words, page);
    if (what == "get-feature")
        return serve_get_feature(words, page);
    if (what == "set-write-cache")
        return serve_set_write_cache(words);
    if (what == "read-attribute")
        return read_attribute(words.rest().data(), page); // It ends where the request does.
    if (what == "read-tolerance" && words.at_end())
        return read_attribute(tolerance_file, page);
    if (what == "write-tolerance")
        return write_tolerance(words.rest());
    if (what == "write-back")
        return serve_leaf(words, write_back);
    if (what == "flush")
        return serve_leaf(words, flush_leaf);
    return error_answer(EINVAL);
}

bool answer(const AnswerLine& line, const std::uint8_t* page)
{
    const std::string text = format(line);
    return write_all(text.data(), text.size()) && write_all(page, line.length);
}

} // namespace nvmepolicy
