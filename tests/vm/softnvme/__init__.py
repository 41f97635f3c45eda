# SPDX-License-Identifier: LGPL-2.1-or-later
"""softnvme: an NVMe/TCP controller in user space that sleeps as its drive file says.

The kernel of a test machine connects to it as to any NVMe-oF target. It reports the power states of a drive, takes the
APST table that the kernel builds from them, walks that table while no I/O is outstanding, and counts what it was sent.
Faults can be injected, and a control channel shows and changes everything from inside or outside the test machine.

    protocol     numbers and layouts of NVMe and NVMe/TCP
    power        power state descriptors, the APST walk
    namespace    a block device in memory
    identify     what Identify and Get Log Page return
    scenario     the JSON file that describes the drives
    controller   one controller: its features and its admin and I/O commands
    fabrics      Connect and the property commands
    transport    one TCP connection: PDUs in, PDUs out
    faults       rules that make a command fail, hang or drop the connection
    server       the event loop
    control      the control channel (HTTP)
"""
