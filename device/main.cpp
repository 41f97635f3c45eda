// SPDX-License-Identifier: LGPL-2.1-or-later
// nvmepolicy-device: makes the calls that may hang with a sick drive, one controller a process, so that whoever started it
// can give up waiting and end. It knows its descriptors and decides nothing. See src/host/device_protocol.h.
//
// A thread inside such a call cannot be killed, and a process with such a thread cannot end; that is why this is a
// process of its own, and it keeps libnvme and what that brings out of the daemon's memory.
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "guard.h"
#include "requests.h"

namespace {

using namespace nvmepolicy;

constexpr std::size_t longest_request = 80;

/// One request a line; false at the end of input.
bool read_request(char* line)
{
    std::size_t used = 0;
    for (;;) {
        char c = 0;
        const ssize_t got = ::read(STDIN_FILENO, &c, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || used + 1 >= longest_request)
            return false;
        if (c == '\n')
            break;
        line[used++] = c;
    }
    line[used] = '\0';
    return true;
}

} // namespace

int main(int argc, char**)
{
    if (argc != 1 || ::fcntl(device_protocol::directory_fd, F_GETFD) < 0) {
        std::fputs("nvmepolicy-device is started by nvmepolicyd and nvmepolicyctl, with a controller's sysfs directory as "
                   "descriptor 3 and its node as descriptor 4\n",
                   stderr);
        return 2;
    }
    if (::fcntl(device_protocol::doubts_fd, F_GETFD) >= 0)
        return guard();
    // A drive is waited for from here on; starting a process may take its time on a busy machine.
    if (!answer({device_protocol::AnswerKind::ok, 0, 0}, nullptr))
        return 1;
    static std::array<std::uint8_t, device_protocol::largest_buffer> page;
    char request[longest_request];
    while (read_request(request))
        if (!answer(serve(request, page.data()), page.data()))
            return 1;
    return 0;
}
