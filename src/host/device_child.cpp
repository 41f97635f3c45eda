// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_child.h"

#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "device_process.h"
#include "device_protocol.h"
#include "errno_refusal.h"
#include "laned_device.h"
#include "nvmepolicy/decode.h"

namespace nvmepolicy {
namespace {

using Clock = Patience::Clock;

} // namespace

DeviceChild::DeviceChild(std::string name, int directory, std::uint64_t object, std::string program, Patience patience,
                         LeftBehind& left_behind)
    : name_(std::move(name))
    , object_(object)
    , program_(std::move(program))
    , patience_(patience)
    , left_behind_(left_behind)
    , directory_(duplicate_for_device(directory))
{
}

DeviceChild::~DeviceChild()
{
    socket_.reset(); // End of input: the child ends, now or when its call comes back.
    if (pid_ >= 0 && !hangs_)
        ::waitpid(pid_, nullptr, 0);
}

Result<void> DeviceChild::open_node()
{
    if (node_)
        return {};
    if (pid_ >= 0)
        return Refusal{"/dev/" + name_, "", "not asked: the node could not be opened when this look began",
                       RefusalKind::try_later};
    auto node = open_controller_node(name_, directory_);
    if (!node)
        return node.error();
    node_ = *std::move(node);
    return {};
}

Result<void> DeviceChild::start()
{
    if (pid_ >= 0)
        return {};
    if (left_behind_.waits_for(object_))
        return still_waited_for(name_);
    auto started = start_device(program_, {directory_, node_, {}});
    if (!started)
        return started.error();
    pid_ = started->pid;
    socket_ = std::move(started->socket);
    const auto greeting = read_answer(program_, std::min(Clock::now() + time_to_start, patience_.end));
    return greeting ? Result<void>{} : Result<void>(greeting.error());
}

Refusal DeviceChild::give_up(const std::string& where)
{
    hangs_ = true;
    left_behind_.add(object_, pid_);
    return {where, "",
            fmt::format("no answer within {} s; the request is left to the kernel, which gives it 60 s by default",
                        std::chrono::duration<double>(patience_.per_call).count()),
            RefusalKind::timed_out};
}

Result<void> DeviceChild::read_exactly(const std::string& where, std::uint8_t* to, std::size_t length, Deadline deadline)
{
    while (length > 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd waiting{socket_.get(), POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return give_up(where);
        const ssize_t got = ::read(socket_.get(), to, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return Refusal{where, "", program_ + " ended before it answered", RefusalKind::failed};
        to += got;
        length -= static_cast<std::size_t>(got);
    }
    return {};
}

Result<FeatureReply> DeviceChild::ask(const std::string& where, const std::string& request)
{
    if (hangs_)
        return still_waited_for(where);
    if (const auto started = start(); !started)
        return started.error();
    const std::string line = request + "\n";
    if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        return Refusal{where, "", program_ + " ended before it was asked", RefusalKind::failed};

    return read_answer(where, patience_.deadline(Clock::now()));
}

Result<FeatureReply> DeviceChild::read_answer(const std::string& where, Deadline deadline)
{
    std::string text;
    for (std::uint8_t c = 0;;) {
        if (const auto read = read_exactly(where, &c, 1, deadline); !read)
            return read.error();
        if (c == '\n')
            break;
        text += static_cast<char>(c);
        if (text.size() > 64)
            break;
    }
    device_protocol::AnswerLine answer;
    if (!device_protocol::parse(text, answer))
        return Refusal{where, printable_ascii(text), "not an answer of " + program_, RefusalKind::failed};
    FeatureReply reply{answer.number, std::vector<std::uint8_t>(answer.length)};
    if (const auto read = read_exactly(where, reply.buffer.data(), reply.buffer.size(), deadline); !read)
        return read.error();
    switch (answer.kind) {
    case device_protocol::AnswerKind::ok: return reply;
    case device_protocol::AnswerKind::error_number: return errno_refusal(where, "", static_cast<int>(answer.number));
    case device_protocol::AnswerKind::status: return status_refusal(where, answer.number);
    }
    return Refusal{where, "", "unreachable", RefusalKind::failed};
}

Result<FeatureReply> DeviceChild::ask_drive(const std::string& where, const std::string& request)
{
    // The node goes to the child when that starts, so it is opened first; a tolerance can be read without it.
    if (const auto opened = open_node(); !opened)
        return opened.error();
    return ask(where, request);
}

} // namespace nvmepolicy
