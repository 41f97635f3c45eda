// SPDX-License-Identifier: LGPL-2.1-or-later
#include "journal.h"

#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace nvmepolicy {
namespace {

constexpr const char* journal_socket = "/run/systemd/journal/socket";

/// One field of the native protocol: a value without newline. Source: systemd.io, Native Journal Protocol.
void add_field(std::string& datagram, const char* name, std::string value)
{
    for (char& c : value)
        if (c == '\n')
            c = ' ';
    datagram += fmt::format("{}={}\n", name, value);
}

int connect_to_journal()
{
    if (!leads_to_journal(STDERR_FILENO))
        return -1;
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, journal_socket, sizeof address.sun_path - 1);
    if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return fd;
    if (fd >= 0)
        ::close(fd);
    return -1;
}

} // namespace

const char* message_id(Happening happening)
{
    switch (happening) {
    case Happening::started: return "f768064f958547ada39eed24c2c063fe";
    case Happening::stopping: return "5966eb44e0c6474495113dc30e9a8df5";
    case Happening::configuration: return "b9c48cb01720400e8ca82984fcb042d9";
    case Happening::appeared: return "a83c546dbc4d43dc96c93f01a9f18630";
    case Happening::left: return "ace970fccddb4416a3966023df2d5c05";
    case Happening::changed: return "00633256e25f471d8fe2c4e12b5eadad";
    case Happening::not_verified: return "e66c0e9819424e8ab4c6049fa9998118";
    case Happening::verified: return "3c19c840d9f94acda62d2465be71c2d9";
    case Happening::foreign_write: return "e7f137f5a11b4c7db5a6b47b57a73cab";
    case Happening::stuck: return "12f034c143d24a11a0a8a1e2fdbc4be2";
    case Happening::answered: return "83de0b93946a499896567964cfbaa4dd";
    case Happening::breaker: return "068c193bf65c49029f777337923fe54e";
    case Happening::power_source: return "c85ad6ff654644beb379782e12806dcc";
    case Happening::profile: return "b774755f500f40759df35ff11fa597a0";
    case Happening::story: return "07eb041c26fc46d180bd8097c6e5a4cc";
    case Happening::trouble: break;
    }
    return "10cc80422fb74eacb3ba20d253c80a75";
}

Journal::Journal(LogLevel most) : most_(most), socket_(connect_to_journal()) {}

Journal::~Journal()
{
    if (socket_ >= 0)
        ::close(socket_);
}

bool Journal::send(const JournalLine& line) const
{
    if (socket_ < 0) {
        // Whoever reads standard error may have stopped reading: then the line is lost, not the service.
        pollfd out{STDERR_FILENO, POLLOUT, 0};
        if (::poll(&out, 1, 0) <= 0 || (out.revents & POLLOUT) == 0)
            return false;
        // No longer than what a pipe takes in one piece, or the rest would be waited for.
        std::string text = fmt::format("nvmepolicyd: {}", line.text).substr(0, PIPE_BUF - 1);
        text += '\n';
        return ::write(STDERR_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    }
    std::string datagram;
    add_field(datagram, "MESSAGE", line.text);
    add_field(datagram, "PRIORITY", std::to_string(syslog_priority(line.level)));
    add_field(datagram, "SYSLOG_IDENTIFIER", "nvmepolicyd");
    add_field(datagram, "MESSAGE_ID", message_id(line.happening));
    for (const auto& [name, value] : line.fields)
        add_field(datagram, name, value);
    return ::send(socket_, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
           == static_cast<ssize_t>(datagram.size());
}

void Journal::say(const JournalLine& line)
{
    if (line.level > most_)
        return;
    JournalLine said = line;
    if (unsaid_ > 0)
        said.text += fmt::format(" ({} earlier lines were lost)", unsaid_);
    if (send(said)) {
        unsaid_ = 0;
        return;
    }
    ++dropped_;
    ++unsaid_;
}

} // namespace nvmepolicy
