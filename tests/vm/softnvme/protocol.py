# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of the NVMe base, NVM command set, fabrics and TCP transport specifications, under names that can be read."""

# PDU types and flags of NVMe/TCP
ICREQ, ICRESP, H2CTERM, C2HTERM, CMD, RSP, H2CDATA, C2HDATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9
LAST_PDU, SUCCESS = 0x04, 0x08
MAX_H2C_DATA = 0x20000

# status codes: type << 8 | code; DNR is bit 14
OK, INVALID_OPCODE, INVALID_FIELD, INTERNAL = 0x0, 0x1, 0x2, 0x6
INVALID_NAMESPACE, LBA_RANGE = 0xb, 0x80
INVALID_LOG, TOO_MANY_EVENT_REQUESTS, NOT_SAVEABLE, NOT_CHANGEABLE = 0x109, 0x105, 0x10d, 0x10e
CONNECT_INVALID = 0x182
DNR = 0x4000

FLUSH, WRITE, READ, COMPARE, WRITE_ZEROES, DATASET_MANAGEMENT = 0x00, 0x01, 0x02, 0x05, 0x08, 0x09
IO_COMMANDS = {FLUSH: "flush", WRITE: "write", READ: "read", COMPARE: "compare", WRITE_ZEROES: "write_zeroes",
               DATASET_MANAGEMENT: "dsm"}

GET_LOG, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT_REQUEST, KEEP_ALIVE = 0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18
ADMIN_COMMANDS = {GET_LOG: "get_log", IDENTIFY: "identify", ABORT: "abort", SET_FEATURES: "set_features",
                  GET_FEATURES: "get_features", EVENT_REQUEST: "event_request", KEEP_ALIVE: "keep_alive"}

SAVE, FUA = 1 << 31, 1 << 30                    # CDW10 of Set Features, CDW12 of Write
CURRENT, DEFAULT, SAVED, CAPABILITIES = range(4)                                            # Select of Get Features
SAVEABLE, PER_NAMESPACE, CHANGEABLE = 1, 2, 4                                               # what Select 3 answers
ONCS_SAVE_AND_SELECT = 0x10
NOTICE, NAMESPACES_CHANGED, CHANGED_NAMESPACES_LOG = 2, 0, 4                                # of an asynchronous event

FABRICS = 0x7f
PROPERTY_SET, CONNECT, PROPERTY_GET = 0x00, 0x01, 0x04
FABRICS_COMMANDS = {PROPERTY_SET: "property_set", CONNECT: "connect", PROPERTY_GET: "property_get"}

FEATURE_POWER, FEATURE_WRITE_CACHE, FEATURE_QUEUES, FEATURE_EVENTS, FEATURE_APST, FEATURE_KEEP_ALIVE = \
    0x02, 0x06, 0x07, 0x0b, 0x0c, 0x0f

REGISTER_CAP, REGISTER_VS, REGISTER_CC, REGISTER_CSTS = 0x00, 0x08, 0x14, 0x1c
