// SPDX-License-Identifier: LGPL-2.1-or-later
#include "drive.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <libnvme.h>

namespace nvmepolicy {
namespace {

using device_protocol::AnswerKind;
using device_protocol::AnswerLine;
using device_protocol::node_fd;

/// libnvme returns 0, a positive NVMe status, or -1 with errno.
AnswerLine command_answer(int returned, std::uint32_t result, std::uint32_t length)
{
    if (returned < 0)
        return error_answer();
    if (returned > 0)
        return {AnswerKind::status, static_cast<std::uint32_t>(returned), 0};
    return {AnswerKind::ok, result, length};
}

} // namespace

// The helpers nvme_get_features_auto_pst() and friends send the wrong feature in libnvme 1.3; only the args form is used.
// Timeout 0 is the kernel's own: a shorter one would reset a PCIe controller. `returned` is taken before result is looked at.

AnswerLine identify(std::uint8_t cns, std::uint32_t nsid, std::uint8_t* page)
{
    std::uint32_t result = 0;
    nvme_identify_args args{};
    args.result = &result;
    args.data = page;
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.cns = static_cast<nvme_identify_cns>(cns);
    args.csi = NVME_CSI_NVM;
    args.nsid = nsid;
    args.cntid = NVME_CNTLID_NONE;
    args.cns_specific_id = NVME_CNSSPECID_NONE;
    args.uuidx = NVME_UUID_NONE;
    const int returned = nvme_identify(&args);
    return command_answer(returned, result, NVME_IDENTIFY_DATA_SIZE);
}

AnswerLine get_log(std::uint8_t page_id, std::uint32_t length, std::uint8_t* page)
{
    std::uint32_t result = 0;
    nvme_get_log_args args{};
    args.result = &result;
    args.log = page;
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.lid = static_cast<nvme_cmd_get_log_lid>(page_id);
    args.len = length;
    args.nsid = NVME_NSID_ALL;
    args.csi = NVME_CSI_NVM;
    args.lsi = NVME_LOG_LSI_NONE;
    args.lsp = NVME_LOG_LSP_NONE;
    args.uuidx = NVME_UUID_NONE;
    const int returned = nvme_get_log(&args);
    return command_answer(returned, result, length);
}

AnswerLine get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length, std::uint8_t* page)
{
    std::uint32_t result = 0;
    nvme_get_features_args args{};
    args.result = &result;
    args.data = length ? page : nullptr;
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.sel = static_cast<nvme_get_features_sel>(select);
    args.data_len = length;
    args.fid = feature;
    args.uuidx = NVME_UUID_NONE;
    const int returned = nvme_get_features(&args);
    return command_answer(returned, result, length);
}

AnswerLine set_write_cache(bool enabled, bool save)
{
    std::uint32_t result = 0;
    nvme_set_features_args args{};
    args.result = &result;
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.cdw11 = enabled ? 1 : 0;
    args.save = save;
    args.uuidx = NVME_UUID_NONE;
    args.fid = NVME_FEAT_FID_VOLATILE_WC;
    const int returned = nvme_set_features(&args);
    return command_answer(returned, result, 0);
}

int open_node(const char* name)
{
    char path[64];
    std::snprintf(path, sizeof path, "/dev/%s", name);
    return ::open(path, O_RDONLY | O_CLOEXEC);
}

AnswerLine flush(int node, std::uint32_t nsid)
{
    const int returned = nvme_flush(node, nsid);
    return command_answer(returned, 0, 0);
}

AnswerLine error_answer()
{
    return error_answer(errno);
}

} // namespace nvmepolicy
